"""Selection by cost and by tuning tables: what is chosen, why, and that results are right."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hccl_executors.pipelines import AllReduceMeshOpbasePipelineExecutor
from hccl_executors.templates.star import star_broadcast
from hccl_py import Communicator, OpParam, Selection
from hccl_py.communicator.arrays import flat_arrays
from hccl_py.communicator.data import expected_outputs, first_wrong, inputs_of
from hccl_py.errors import FileError, ParameterError
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.orchestration.region import Region
from hccl_py.plugins.executor import (
    Executor,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.simulator import COSTS, CostModel, LinkCost, simulate_batches
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import topology_of
from hccl_py.tuning.candidates import candidates
from hccl_py.tuning.points import Point, evaluate
from hccl_py.tuning.table import TuningTable
from hccl_py.tuning.tune import alternatives, tune
from tests.groups import group_of
from tests.recording import filled, op_of
from tests.tuning.evaluations import point

COST = CostModel.of("atlas-800t-a2")

ROOT = Path(__file__).parents[2]
TWO_BY_TWO = topology_of(servers=2, devices=2)


def select(comm: Communicator, count: int = 1 << 18, **about: Any) -> Selection:
    return comm.select(op_of("all_reduce", count, **about))[0]


class Shortcut:
    """Faster than anything, and wrong: nobody talks to anybody."""

    op = "all_reduce"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        rank.main.copy(rank.user_out, rank.user_in)


class Broken(Shortcut):
    """Suits, and cannot be recorded."""

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        raise RuntimeError("not today")


@cache
def two_by_two() -> TuningTable:
    """A table of all_reduce and all_gather on two servers of two, from 1K to 64M."""
    sizes = (1 << 10, 1 << 18, 1 << 26)
    about = {"servers": 2, "devices": 2, "ranks": None}
    calls = [point(size, op=op, **about) for op in ("all_reduce", "all_gather") for size in sizes]
    points: list[Point] = [one for call in calls for one in alternatives(call)]
    return tune(points, [evaluate(one) for one in points])


@pytest.mark.parametrize(("count", "cost"), [(1, None), (1 << 20, COST.formula())])
def test_the_cheapest_is_taken(count: int, cost: CostModel | None) -> None:
    with Communicator(servers=2, devices=2, selection="cost", cost=cost) as comm:
        op = op_of("all_reduce", count)
        times = {}
        for one in candidates(op, comm.topology, comm.config, comm.registry):
            with Communicator(topology=comm.topology) as plain:
                program = plain._planner.plan(op, one.executor, one.levels).program
            time = simulate_batches(program, comm.topology, cost or COST).total_us
            time = max(time, busiest_us(program, comm.topology, cost or COST))
            times[one.executor, tuple(one.levels.values())] = time
        plan = comm.plan(op)
    taken = simulate_batches(plan.program, comm.topology, cost or COST).total_us
    taken = max(taken, busiest_us(plan.program, comm.topology, cost or COST))
    assert taken == min(times.values())
    why = plan.selection.reasons[0]
    name = "formula" if cost else "atlas-800t-a2"
    assert why.startswith(f"the cheapest of {len(times)} ways by the cost model {name}: ")
    assert f": {taken:.1f} us, " in why


def test_what_hccl_takes_is_still_said() -> None:
    with (
        Communicator(topology=TWO_BY_TWO) as rules,
        Communicator(topology=TWO_BY_TWO, selection="cost") as cost,
    ):
        wanted, found = select(rules), select(cost)
    assert found.executor != wanted.executor
    assert (found.hccl_executor, found.hccl_algorithm) == (wanted.executor, wanted.hccl_algorithm)
    against = {r.executor: r.reason for r in found.rejected}
    assert f"HCCL's rules choose {wanted.executor} ring: " in found.reasons[0]
    assert against[wanted.executor].startswith("by atlas-800t-a2 takes ")
    assert against["AllReduceSingleExecutor"] == "needs one rank, there are 4"


class Endless(Shortcut):
    """Never ends recording, and stops for no exception that an author may catch."""

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        while True:
            try:
                rank.main.copy(rank.user_out, rank.user_in)
            except Exception:
                continue


def test_what_records_too_much_is_given_up() -> None:
    with Communicator(topology=TWO_BY_TWO, selection="cost", executors=[Endless]) as comm:
        found = select(comm)
    assert found.reasons[0].endswith(
        "; not timed, as they record more than 50 000 instructions: Endless"
    )
    against = {r.executor: r.reason for r in found.rejected}
    assert against["Endless"] == "it records more than 50 000 instructions"


CHOOSES = """
import sys
from hccl_py import Communicator
from tests.recording import op_of

def slower(frame, event, argument):
    for _ in range(int(sys.argv[1])):
        pass

sys.setprofile(slower if int(sys.argv[1]) else None)
with Communicator(servers=2, devices=3, selection="cost") as comm:
    found = comm.select(op_of("all_reduce", 1 << 18))[0]
    print(found.executor, dict(found.algorithm), found.reasons, found.rejected)
"""


@pytest.mark.sweep
def test_a_slow_machine_chooses_the_same() -> None:
    command = [sys.executable, "-c", CHOOSES]
    fast, slow = (
        subprocess.run([*command, delay], cwd=ROOT, capture_output=True, text=True, check=True)
        for delay in ("0", "100")
    )
    assert "the cheapest of " in fast.stdout
    assert slow.stdout == fast.stdout


def test_ties_go_to_hccls_choice() -> None:
    free = COSTS["selection"].model_copy(
        update={link: LinkCost(alpha_us=0.0, gbps=None) for link in ("hccs", "sio", "pcie", "roce")}
    )
    with (
        Communicator(topology=TWO_BY_TWO) as rules,
        Communicator(topology=TWO_BY_TWO, selection="cost", cost=free) as cost,
    ):
        wanted, found = select(rules), select(cost)
    assert (found.executor, found.algorithm) == (wanted.executor, wanted.algorithm)
    assert found.reasons[0].endswith(": 0.0 us, as HCCL's rules choose")


class AheadOfAll(AllReduceMeshOpbasePipelineExecutor):
    """As fast as the fastest on two servers of two, and its name comes before."""


def test_plugins_take_part_and_broken_ones_do_not_stop_it() -> None:
    plugins: list[type[Executor]] = [AheadOfAll, Shortcut, Broken]
    with Communicator(topology=TWO_BY_TWO, selection="cost", executors=plugins) as comm:
        found = select(comm)
    assert found.executor == "AheadOfAll"
    against = {r.executor: r.reason for r in found.rejected}
    assert against["Shortcut"].endswith(" us, less than anything right can")
    assert against["Broken"].startswith("could not be timed: ")
    assert "not today" in against["Broken"]


class Crowd(Shortcut):
    """The root writes to everybody at once, through its one port."""

    op = "broadcast"

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),))

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        assert op.root is not None
        data = rank.ccl_in.head(rank.user_in.size)
        if rank.id == op.root:
            rank.main.copy(data, rank.user_in)
        star_broadcast(rank.main, rank.flat, data, op.root)
        rank.main.copy(rank.user_out, data)


def test_who_crowds_a_port_waits_for_it() -> None:
    size, wire = 64 << 20, COST.roce.gbps
    assert wire is not None
    with Communicator(servers=5, devices=1, selection="cost", executors=[Crowd]) as comm:
        found = comm.select(filled(op_of("broadcast", size // 4), 5))[0]
    reason = next(r.reason for r in found.rejected if r.executor == "Crowd")
    assert float(reason.split()[-2]) >= 4 * size / wire * 1e-3  # to four peers, in µs


def test_the_caller_has_the_last_word() -> None:
    with Communicator(4, selection="cost", executors=[Shortcut]) as comm:
        found, _ = comm.select(op_of("all_reduce"), "AllReduceRing")
    assert (found.executor, found.reasons[0]) == ("AllReduceRing", "named by the caller")


def test_demands_for_determinism_are_kept() -> None:
    with Communicator(4, selection="cost", cost=CostModel.of("study")) as comm:
        assert select(comm).executor == "AllReduceMeshOpbaseLoopExecutor"  # adds on arrival
        with group_of(comm, range(4), deterministic="true") as fixed:
            assert select(fixed).executor == "AllReduceMeshOneshotLoopExecutor"
        with group_of(comm, range(4), deterministic="strict") as strict:
            assert select(strict).executor == "AllReduceOrderPreservedExecutor"


def test_a_choice_is_made_once() -> None:
    class Counting(Shortcut):
        recorded = 0

        def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
            Counting.recorded += 1
            super().orchestrate(op, rank)

    with Communicator(4, selection="cost", executors=[Counting]) as comm:
        first = comm.plan(op_of("all_reduce"))
        once = Counting.recorded
        assert comm.plan(op_of("all_reduce")) is first
        assert select(comm, 1000) is first.selection
        assert Counting.recorded == once


def test_groups_select_as_their_communicator_does() -> None:
    with Communicator(4, selection="cost") as comm, group_of(comm, [0, 2]) as group:
        assert select(group).reasons[0].startswith("the cheapest of ")


@pytest.mark.parametrize("name", OPERATORS)
def test_results_are_right(name: str) -> None:
    with Communicator(topology=TWO_BY_TWO, selection="cost") as comm:
        operator = make_operator(name)
        op = filled(op_of(name, 300 if name != "barrier" else 8), 4)
        inputs = inputs_of(op, 4)
        arrays = flat_arrays(operator, op, inputs, 4, comm.local_ranks)
        comm.run_plan(comm.plan(op), arrays)
        right = expected_outputs(operator, op, inputs)
        assert first_wrong(arrays.outputs, right, comm.local_ranks) is None


def test_one_way_needs_no_timing() -> None:
    with Communicator(4, selection="cost") as comm:
        found, _ = comm.select(filled(op_of("send_recv"), 4))
    assert found.reasons[0] == "the only one that suits"


# ---- tuning tables ----


def test_a_table_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    two_by_two().write(path)
    for table in (path, str(path), two_by_two()):
        name = "given" if isinstance(table, TuningTable) else "tuned.json"
        with Communicator(servers=2, devices=2, selection=table) as comm:
            for entry in two_by_two().entries:
                for winner in entry.winners:
                    count = make_operator(entry.op).count(winner.sample.bytes, 4, 4)
                    found, _ = comm.select(op_of(entry.op, count))
                    assert found.executor == winner.executor
                    assert winner.levels.items() <= dict(found.algorithm).items()
                    assert found.reasons[0].startswith(f"the tuning table {name} has it for sizes")


def test_the_nearest_entry_is_taken() -> None:
    with Communicator(servers=2, devices=2, selection=two_by_two()) as comm:
        own = select(comm, 1 << 16)
        assert select(comm, 1 << 17, dtype="fp16").executor == own.executor
        other = select(comm, 1 << 15, dtype="int64")  # links do not add it
    assert other.reasons[0] == (
        "the tuning table given has no entry for all_reduce on atlas-800t-a2, 2 x 2: "
        "HCCL's rules choose"
    )


@pytest.mark.parametrize("kept", [100, 300])
def test_of_entries_for_two_buffer_sizes_the_nearer_one_is_taken(kept: int) -> None:
    tables = {kept: two_by_two(), 400 - kept: changed(executor="Gone", levels={})}
    entries = [
        entry.model_copy(update={"buffsize_mb": size})
        for size in (100, 300)
        for entry in tables[size].entries
    ]
    table = TuningTable(costs=two_by_two().costs, entries=tuple(entries))
    for size, nearer in ((50, 100), (190, 100), (210, 300), (400, 300)):
        with Communicator(topology=TWO_BY_TWO, selection=table, buffsize_mb=size) as comm:
            reason = select(comm).reasons[0]
        assert ("names Gone" in reason) == (nearer != kept)
        assert ("has it for sizes" in reason) == (nearer == kept)


@pytest.mark.parametrize(("devices", "mode"), [(4, "op_base"), (2, "graph")])
def test_without_an_entry_hccls_rules_choose(devices: int, mode: str) -> None:
    topology = topology_of(servers=4 // devices, devices=devices)
    with Communicator(topology=topology, mode=mode, selection=two_by_two()) as comm:
        found = comm.select(op_of("all_reduce", mode=comm.config.mode))[0]
    with Communicator(topology=topology, mode=mode) as rules:
        wanted = rules.select(op_of("all_reduce", mode=rules.config.mode))[0]
    assert found.executor == wanted.executor
    assert "has no entry for all_reduce on" in found.reasons[0]
    assert found.reasons[1:] == wanted.reasons


def changed(**about: Any) -> TuningTable:
    """The table, naming other executors everywhere."""
    table = two_by_two()
    entries = [
        entry.model_copy(
            update={"ranges": tuple(one.model_copy(update=about) for one in entry.ranges)}
        )
        for entry in table.entries
    ]
    return TuningTable.joined(table.costs, entries)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"executor": "Gone"}, "Executor 'Gone' is unknown"),
        ({"executor": "AllReduceSingleExecutor", "levels": {}}, "does not suit this call"),
        ({"executor": "AllReduceComm", "levels": {"level1": "magic"}}, "does not do magic"),
    ],
)
def test_what_cannot_be_taken_is_said(about: dict[str, Any], why: str) -> None:
    with Communicator(servers=2, devices=2, selection=changed(**about)) as comm:
        found = select(comm)
    assert f"names {about['executor']}, which cannot be taken: " in found.reasons[0]
    assert why in found.reasons[0]
    assert found.reasons[0].endswith(": HCCL's rules choose")


def test_a_table_does_not_break_determinism() -> None:
    table = changed(executor="AllReduceMeshOpbasePipelineExecutor", levels={})
    entries = [e.model_copy(update={"deterministic": "true"}) for e in table.entries]
    bad = TuningTable.joined(table.costs, entries)
    with Communicator(servers=2, devices=2, selection=bad, deterministic="true") as comm:
        found = select(comm)
    assert "which adds in the order in which data arrives" in found.reasons[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"selection": "costs"},
            ParameterError,
            r"Selection 'costs' is unknown.\nDid you mean cost",
        ),
        ({"selection": "gone.json"}, FileError, r"gone\.json: the file cannot be read"),
        ({"selection": 7}, ParameterError, r"selection is 7\."),
        ({"cost": COST}, ParameterError, r"A cost model does not go with selection by rules"),
        (
            {"selection": TuningTable(costs=(), entries=()), "cost": COST},
            ParameterError,
            "does not go with selection by a tuning table",
        ),
        ({"selection": "cost", "strict": True}, ParameterError, "Strict asks for what HCCL takes"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Communicator(4, **options)
