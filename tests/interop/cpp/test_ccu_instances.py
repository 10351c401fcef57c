"""Instances of the CCU: HCCL counts a kernel's registers, and makes an instance of as many."""

from pathlib import Path

import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.export.starting import starting_project
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.expansion import ExpansionMode
from hccl_py.scaffold import write_project
from hccl_py.verifier import Report
from tests.interop.cpp.ccu_edits import HOST, KERNEL
from tests.interop.cpp.kit import builder, check

GIVEN = "    CHK_RET(HcclCommQueryCcuIns(comm, &instance, &count));\n"
ARGUMENTS = "    const void* arguments[] = {&param};\n"
COUNTED = """\
    const uint32_t die = 1;  // servers of one NPU meet on the Clos network
    if (HcclCommQueryAssignedCcuIns(comm, &instance, &count) != HCCL_E_UNAVAIL) {
        return HCCL_E_INTERNAL;
    }
    HcommCcuResDescHandle desc;
    CHK_RET(HcommCcuInsResDescCreate(die, &desc));
    CHK_RET(HcommCcuKernelQueryResReq(reinterpret_cast<void*>(MineKernel), arguments, 1, desc));
    uint32_t needed = 0;
    CHK_RET(HcommCcuInsResDescQueryNum(desc, HCOMM_CCU_RES_TYPE_VARIABLE, &needed));
    CHK_RET(HcommCcuInsResDescSetNum(desc, HCOMM_CCU_RES_TYPE_VARIABLE, needed - LESS));
    CHK_RET(HcommCcuInsCreate(&desc, 1, &instance));
    CHK_RET(HcclCommAssignCcuIns(comm, instance));
"""


def report(folder: Path, edits: dict[str, tuple[str, str]], mode: ExpansionMode) -> Report:
    files = starting_project("mine", "all_gather", "ccu")
    for path, (old, new) in edits.items():
        assert old in files[path]
        files[path] = files[path].replace(old, new, 1)
    write_project(files, folder / "mine")
    shop = CustomOp(find_project(str(folder / "mine")), builder())
    cluster = ClusterSpec("ascend950-4x1")
    spec = CallSpec("all_gather", bytes=1 << 12, cluster=cluster)
    where = spec.topology()
    return check(shop.record(CppCall(spec.param(where.size), where, expansion=mode)))


@pytest.mark.parametrize(("less", "name"), [(0, None), (1, "RESOURCE_EXCEEDED")])
def test_an_instance_of_as_many_registers_as_counted(
    less: int, name: str | None, tmp_path: Path
) -> None:
    counted = ARGUMENTS + COUNTED.replace("LESS", str(less))
    found = report(tmp_path, {HOST.format(op="all_gather"): (GIVEN + ARGUMENTS, counted)}, "AI_CPU")
    assert {one.name for one in found.every()} == ({name} if name else set())


@pytest.mark.parametrize(("mode", "name"), [("CCU_MS", None), ("CCU_SCHED", "RESOURCE_EXCEEDED")])
def test_an_instance_has_more_buffers_in_mode_ccu_ms(
    mode: ExpansionMode, name: str | None, tmp_path: Path
) -> None:
    more = "    ccu::Event arrived;\n"
    edit = {KERNEL: (more, f"{more}    ccu::Array<ccu::CcuBuffer> buffers(1024);\n")}
    found = report(tmp_path, edit, mode)
    assert {one.name for one in found.every()} == ({name} if name else set())
