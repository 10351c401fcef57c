"""Sums in buffers of the CCU: in the order of the buffers, in fp32, rounded once.

The reference is numpy's own sum in fp32, made here from the inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import Builder
from hccl_interop.cpp.export.starting import starting_project
from hccl_platform.lowering.part import part_of
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError, OrchestrationError
from hccl_py.formats.json_read import from_json
from hccl_py.formats.json_write import to_json
from hccl_py.formats.npz import to_npz
from hccl_py.formats.npz_read import from_npz
from hccl_py.numerics.bit_witness import run_elements
from hccl_py.numerics.element_trees import trees_of
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.instruction import ONE_SUM, Instruction
from hccl_py.program.program import Program
from hccl_py.scaffold import write_project
from tests.interop.cpp.ccu_edits import KERNEL
from tests.interop.cpp.kit import builder, check

Array = npt.NDArray[Any]

BEGIN, END = "    ccu::LocalCopy(to, own", "    Finish(param);"
GATHERED = """\
    ccu::Array<ccu::CcuBuffer> parts(param.ranks);
    for (uint32_t k = 0; k < param.ranks; ++k) {
        const uint32_t peer = (param.rank + 1 + k) % param.ranks;
        if (peer == param.rank) {
            ccu::LocalCopy(parts[k], own, bytes, arrived, uint16_t(1U << k));
            continue;
        }
        ccu::RemoteAddr from;
        from.addr = peers.address[peer];
        from.token = peers.token[peer];
        ccu::Read(param.channels[peer], parts[k], from, bytes, arrived, uint16_t(1U << k));
    }
    ccu::EventWait(arrived, uint16_t((1U << param.ranks) - 1));
    const HcclDataType type = param.dataType;
    ccu::LocalReduce(parts.data(), param.ranks, type, type, param.reduceOp, bytes, arrived);
    ccu::EventWait(arrived);
    ccu::LocalCopy(to, parts[0], bytes, arrived);
    ccu::EventWait(arrived);
"""
RANKS, COUNT = 8, 1024


def in_buffers(folder: Path, dtype: str, reduce: str = "sum") -> Program:
    """An all_reduce whose rank r adds the inputs of ranks r + 1, r + 2, ... and its own, last."""
    files = starting_project("mine", "all_reduce", "ccu")
    begin, end = files[KERNEL].index(BEGIN), files[KERNEL].rindex(END)
    files[KERNEL] = files[KERNEL][:begin] + GATHERED + files[KERNEL][end:]
    write_project(files, folder / "mine")
    shop = CustomOp(find_project(str(folder / "mine")), builder())
    bytes_ = COUNT * DataType(dtype).itemsize
    cluster = ClusterSpec("ascend950", ranks=RANKS)
    spec = CallSpec("all_reduce", bytes=bytes_, dtype=dtype, reduce_op=reduce, cluster=cluster)
    where = spec.topology()
    recording = shop.record(CppCall(spec.param(where.size), where))
    assert not list(check(recording).every())
    return recording.require()


def some_inputs(dtype: DataType, ranks: int, count: int) -> list[Array]:
    """Half of them of the normal distribution, half of values that tell orders apart."""
    draw = np.random.default_rng(31)
    found = draw.standard_normal((ranks, count), np.float32)
    found[:, ::2] = draw.choice(
        [1, 256, 0.5, -256, 2.0**-9, 1 + 2.0**-7], (ranks, (count + 1) // 2)
    )
    return list(found.astype(dtype.numpy))


def in_fp32(parts: Sequence[Array]) -> Array:
    total = parts[0].astype(np.float32)
    for part in parts[1:]:
        total = total + part.astype(np.float32)
    return total.astype(parts[0].dtype)


def rounded_each(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = (total.astype(np.float32) + part.astype(np.float32)).astype(total.dtype)
    return total


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_sums_of_buffers_are_rounded_once(dtype: str, tmp_path: Path) -> None:
    program = in_buffers(tmp_path, dtype)
    inputs = some_inputs(DataType(dtype), RANKS, COUNT)
    trees = trees_of(program)
    for schedule in (None, Schedule(3)):
        found = run_elements(program, inputs, schedule)
        for rank in range(RANKS):
            parts = [inputs[(rank + 1 + k) % RANKS] for k in range(RANKS)]
            np.testing.assert_array_equal(found[rank], in_fp32(parts))
            assert (found[rank] != rounded_each(parts)).any()
            by_tree = trees.of(rank, 0).value(np.array(inputs))
            np.testing.assert_array_equal(by_tree, found[rank])
    assert trees.is_fixed
    assert not trees.agrees  # ranks begin with other buffers
    assert trees.of(7, 0).formula() == f"{dtype}(((((((0 + 1) + 2) + 3) + 4) + 5) + 6) + 7)"


@pytest.mark.parametrize(("dtype", "reduce"), [("fp32", "sum"), ("bf16", "max"), ("int32", "sum")])
def test_other_reductions_of_buffers_need_no_second_type(
    dtype: str, reduce: str, tmp_path: Path
) -> None:
    program = in_buffers(tmp_path, dtype, reduce)
    assert not program.tasks.adds_to_sum.any()


def test_sums_of_buffers_survive_files_and_are_part_of_the_digest(tmp_path: Path) -> None:
    program = in_buffers(tmp_path, "bf16")
    for back in (from_json(to_json(program)), from_npz(to_npz(program))):
        assert back.digest == program.digest
        assert back.tasks.adds_to_sum.sum() == RANKS * (RANKS - 2)
    assert without_sums(program).digest != program.digest


def test_what_rounds_each_sum_is_refused(tmp_path: Path) -> None:
    program = in_buffers(tmp_path, "bf16")
    with pytest.raises(NotSupportedError, match="this platform rounds each sum"):
        part_of(program, 0)
    part_of(without_sums(program), 0)


def test_a_chain_that_is_no_sum_is_refused(tmp_path: Path) -> None:
    as_max = lambda task: task._replace(reduce=int(ReduceOp.MAX))  # noqa: E731
    program = edited(in_buffers(tmp_path, "bf16"), as_max)
    with pytest.raises(OrchestrationError, match="no sum into the same bytes"):
        run_elements(program, some_inputs(DataType.BF16, RANKS, COUNT))


def without_sums(program: Program) -> Program:
    """The program as if the CCU rounded each sum."""
    return edited(program, lambda task: task._replace(joined=0))


def edited(program: Program, edit: Callable[[Instruction], Instruction]) -> Program:
    """The program with an edit of the tasks that go on with a sum."""
    batches = tuple(
        batch._replace(
            instructions=tuple(edit(i) if i.joined == ONE_SUM else i for i in batch.instructions)
        )
        for batch in program.batches
    )
    return replace(program, batches=batches)


FOLDER = os.environ.get("ORACLE_CCU_FOLDER", "")


@pytest.mark.skipif(not FOLDER, reason="ORACLE_CCU_FOLDER names no folder of `oracle build ccu`")
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_hccls_own_kernel_adds_its_peers_in_order_and_itself_last(dtype: str) -> None:
    """CreateMultiOpReduceV1 (ccu_kernel_alg_base.cc) reads the peers into the first buffers, in the
    order of ranks, and copies the own input into the last one; rank r reduces the r-th part.
    """
    shop = CustomOp(find_project(FOLDER), Builder.from_environment())
    cluster = ClusterSpec("ascend950", servers=1, devices=RANKS)
    spec = CallSpec("all_reduce", bytes=1 << 18, dtype=dtype, cluster=cluster)
    where = spec.topology()
    program = shop.record(CppCall(spec.param(where.size), where, expansion="CCU_MS")).require()
    count = (1 << 18) // 2
    inputs = some_inputs(DataType(dtype), RANKS, count)
    found, part = run_elements(program, inputs), count // RANKS
    for rank in range(RANKS):
        mine = slice(rank * part, (rank + 1) * part)
        order = [*(peer for peer in range(RANKS) if peer != rank), rank]
        wanted = in_fp32([inputs[peer][mine] for peer in order])
        for output in found:
            np.testing.assert_array_equal(output[mine], wanted)
        assert (wanted != rounded_each([inputs[peer][mine] for peer in order])).any()
