"""The package `hccl_py.formats` had this name once."""

raise ImportError(
    "Program files are read and written by hccl_py.formats: write `from hccl_py.formats import ...`."
)
