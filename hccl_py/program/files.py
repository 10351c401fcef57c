"""The package `hccl_py.formats` had this name once."""

raise ImportError(
    "hccl_py.program.files is hccl_py.formats now: write `from hccl_py.formats import ...`."
)
