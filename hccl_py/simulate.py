"""The package `hccl_py.simulator` had this name once; `hccl_py.simulate` is a function."""

raise ImportError(
    "hccl_py.simulate is a function. Its package is hccl_py.simulator: "
    "write `from hccl_py.simulator import ...`."
)
