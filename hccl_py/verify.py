"""The package `hccl_py.verifier` had this name once; `hccl_py.verify` is a function."""

raise ImportError(
    "hccl_py.verify is a function. Its package is hccl_py.verifier: "
    "write `from hccl_py.verifier import ...`."
)
