"""HCCL's own host code and CCU kernels as the folder of a custom op, which `hccl-py check` records.

The folder has HCCL's sources unchanged, the stand-ins of `ccu/` and hccl-py.toml, which lists what
is compiled: the ops' entries, selectors, executors and CCU templates, without other engines.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from scripts.oracle.building import HERE, unpack

LEFT_OUT = re.compile(
    "/op_graph/|/aiv/|/aicpu/|/dpu/|/(send|recv|barrier|batch_send_recv|interface_graph_mode)/|"
    "scatter/algo|static_restore|device_compat|hcomm_device|hccl_device_comm|hcomm_dlsym/hccl_dl|"
    "aicpu_task_cache|aiv_alg|dpu_alg|hccl_mc2|adapter_error|inconsistent_check|cost_table|"
    "selector_engine|tuner"
)
"""Sources of other engines and of graphs, and those that stand-ins replace."""

CLASS = re.compile(r"^\s*class (\w+)\b[^;]*?[:{]", re.MULTILINE)

SETTINGS = """\
engine = "ccu"
host = [{host}]
device = ["stand_in/runtime.cc"]
include = [{include}]
defines = ["ORION_MODE", "OPEN_BUILD_PROJECT", "CANN_VERSION_NUM=90200000"]
"""


def make_ccu_folder(
    hccl: Path, hcomm: Path, work: Path, commit: str, ops: tuple[str, ...] = ()
) -> Path:
    """Unpack HCCL and make the folder; `ops` names those to compile, all by default."""
    folder = unpack(hccl, commit, work / "hccl-ccu", ("src", "include"))
    inner = "pkg_inc/legacy/hccl/hccl_inner.h"
    header = unpack(hcomm, "HEAD", work / "hcomm-ccu", (inner,)) / inner
    shutil.copytree(HERE / "ccu", folder / "stand_in", dirs_exist_ok=True)
    shutil.copy(header, folder / "stand_in")
    left_out = folder / "stand_in" / "left_out.cc"
    left_out.write_text(left_out.read_text("utf-8").replace("CLASSES\n", _tables(folder)), "utf-8")
    host = [*_sources(folder, ops), "stand_in/runtime.cc", "stand_in/left_out.cc"]
    include = ["stand_in", "stand_in/acl", *_header_folders(folder), "include", "include/hccl"]
    text = SETTINGS.format(host=_quoted(host), include=_quoted(include))
    (folder / "hccl-py.toml").write_text(text, "utf-8")
    return folder


def _sources(folder: Path, ops: tuple[str, ...]) -> list[str]:
    found = [path.relative_to(folder).as_posix() for path in folder.glob("src/**/*.cc")]
    wanted = "|".join((*ops, "op_common")) if ops else ""
    return sorted(
        name
        for name in found
        if not LEFT_OUT.search(name)
        and (not wanted or re.match(f"src/(common|ops/({wanted}))/", name))
    )


def _tables(folder: Path) -> str:
    """Return lines for the table of virtual functions and the type of every class of other engines,
    which the code of HCCL's executors asks for when it is loaded.
    """
    names: set[str] = set()
    for path in folder.glob("src/ops/**/*.h"):
        if re.search("/(aicpu|aiv|dpu)/", path.as_posix()):
            names.update(CLASS.findall(path.read_text("utf-8", "replace")))
    return "".join(
        f"TABLE_OF(_Z{what}N8ops_hccl{len(name)}{name}E)\n"
        for name in sorted(names)
        for what in ("TV", "TI")
    )


def _header_folders(folder: Path) -> list[str]:
    headers = list(folder.glob("src/**/*.h*"))
    near = {up for path in headers for up in (path.parent, path.parent.parent)}
    found = {path.relative_to(folder).as_posix() for path in near if path != folder}
    own = ("hcomm_dlsym/ccu", "op_graph", "aiv_interface", "aiv/kernel")
    return sorted(name for name in found if not any(part in name for part in own))


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
