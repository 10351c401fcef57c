"""Sources of HCCL's own algorithms: files of two public repositories, as of one commit each.

    april("coll_all_reduce_mesh_executor", "all_gather_mesh_atomic")    April 2026
    newest("coll_all_gather_hccs_sio_executor")                         August 2026

A name is that of a C++ file without `.cc`. Executors, which begin with `coll_`, and templates lie
in the folder of the op that their names contain, those of Atlas 300I in its folder `310P/`. Any
other place is given as a path: from the folder of all executors, or of all templates, or from
`base/`.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_py.plugins.executor import Fidelity, SourceFile, same, steps

_OPS: tuple[str, ...] = (
    *("all_gather", "all_reduce", "all_to_all", "broadcast", "gather"),
    *("reduce", "reduce_scatter", "scatter"),
)
_EXECUTOR_OPS: tuple[str, ...] = (*_OPS, "all_gather_v", "reduce_scatter_v")


def april(*names: str) -> tuple[SourceFile, ...]:
    """Return files as of April 2026."""
    found = [f"src/algorithm/{_path(name)}" for name in names]
    return tuple(SourceFile("xiaobingling93-pixel/cann-hcomm", "b5f3e5b", file) for file in found)


def newest(*names: str) -> tuple[SourceFile, ...]:
    """Return files of A2, A3, 910A and 310P as of August 2026."""
    found = [f"src/legacy/ascend910/algorithm/{_path(name)}" for name in names]
    return tuple(SourceFile("libochao-huawei/hcomm", "8958adb", file) for file in found)


def like_ascend950(*paths: str) -> Fidelity:
    """Declare that an executor does the same as these files of the Ascend 950, as of August 2026;
    paths begin in the folder of all ops.
    """
    files = (f"src/ops/{path}.cc" for path in paths)
    return same(*(SourceFile("hicann/hccl", "09300b7", file) for file in files))


SCATTER_NHR = "scatter/template/aicpu/ins_temp_scatter_nhr"
"""The template of the tree over which Scatter and, in two stages, Broadcast send slices."""


def over_tree(fidelity: Fidelity, *paths: str) -> Fidelity:
    """Declare that slices are left out where HCCL's trees send some that the sender lacks."""
    files = (SourceFile("hicann/hccl", "09300b7", f"src/ops/{path}.cc") for path in paths)
    left_out = steps(
        "Of 7, 11, 13, 14, 15, 19 and some more ranks HCCL's also send slices that the sender does "
        "not have, which would be READ_UNDEFINED; they are not read, and are left out.",
        *files,
    )
    return fidelity.with_cases({"uneven_tree": left_out})


def like_april(*names: str) -> Fidelity:
    """Declare that an executor does the same as these files of April 2026."""
    return same(*april(*names))


def like_newest(*names: str) -> Fidelity:
    """Declare that an executor does the same as these files of August 2026."""
    return same(*newest(*names))


def adding_in_scratch(found: Fidelity) -> Fidelity:
    """Return the fidelity of a reduce-scatter with the case in which data lands before it is added,
    and no CCL buffer is used.
    """
    sources = found.sources
    beside = steps(
        "Works on a copy of the input in scratch, and what is to be added lands behind that; "
        "HCCL's adds to the caller's input, and has scratch to itself.",
        *sources,
    )
    graph = found.cases.get("graph", replace(found, cases={}))
    return found.with_cases({"graph": graph.with_cases({"local_reduce": beside})})


def _path(name: str) -> str:
    """Return the path of a file in the folder `algorithm`."""
    folder, _, stem = name.rpartition("/")
    if folder.startswith("base"):
        return f"{name}.cc"
    kind, root, ops = "temp", "base/alg_template", _OPS
    if stem.lower().startswith("coll_"):
        kind, root, ops = "coll", "impl/coll_executor", _EXECUTOR_OPS
    named = [op for op in ops if op in stem]
    if named and folder in ("", "310P"):
        return f"{root}/{kind}_{max(named, key=len)}/{name}.cc"
    return f"{root}/{name}.cc"
