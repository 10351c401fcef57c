"""Groups: members, names, independence of each other, and hybrid parallelism's layout."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_py.errors import ConfigError, HcclError, ParameterError
from hccl_py.plugins.executor import ResourceRequest
from tests.groups import group_of

ANY: Any = hccl
"""The package without its types, for calls that break them."""


def ones(size: int, value: float, count: int = 8) -> list[Any]:
    return [np.full(count, value + rank, np.float32) for rank in range(size)]


@given(data=st.data(), servers=st.integers(1, 4), devices=st.integers(1, 5))
def test_a_group_s_ops_are_among_its_ranks(data: st.DataObject, servers: int, devices: int) -> None:
    size = servers * devices
    members = data.draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    with (
        hccl.Communicator(servers=servers, devices=devices) as world,
        group_of(world, members) as group,
    ):
        assert (group.size, group.ranks) == (len(members), tuple(members))
        inputs = ones(size, 1)
        mine = [inputs[rank] for rank in group.ranks]
        gathered = group.all_gather(mine).outputs
        assert all(np.array_equal(o, np.concatenate(mine)) for o in gathered)
        assert all(np.array_equal(o, sum(mine)) for o in group.all_reduce(mine).outputs)
        group.all_reduce(mine, out=mine)
        others = set(range(size)) - set(members)
        assert all((inputs[rank] == 1 + rank).all() for rank in others)


def test_a_group_lies_where_its_ranks_lie() -> None:
    with hccl.Communicator(servers=3, devices=4) as world:
        group = group_of(world, [0, 1, 4, 5, 8])
        assert group.topology.servers == (2, 2, 1)
        assert group_of(world, [4, 5, 6]).topology.is_single_server
        inner = group_of(group, [3, 0])
        assert inner.ranks == (3, 0)
        assert inner.topology.servers == (1, 1)
        assert [o.tolist() for o in inner.all_gather([[5], [7]]).outputs] == [[5, 7]] * 2


def test_names_are_in_tags() -> None:
    with hccl.Communicator(ranks=4) as world:
        named = group_of(world, [0, 1], name="attention")
        unnamed = [group_of(world, [0, 1]) for _ in range(2)]
        tags = [c.barrier().selection.tag for c in (world, named, *unnamed)]
        assert "AllReduce_attention" in tags[1]
        assert all(c.name in tag for c, tag in zip((world, named, *unnamed), tags, strict=True))
        assert len(set(tags)) == 4


def test_settings_are_the_parent_s_unless_given() -> None:
    with hccl.Communicator(ranks=4, buffsize_mb=7, mode="graph", strict=True) as world:
        group = group_of(world, [1, 2])
        assert group.config == world.config
        other = group_of(world, [1, 2], buffsize_mb=3, deterministic="strict")
        assert (other.config.buffsize_mb, other.config.deterministic) == (3, "strict")
        assert other.config.mode is world.config.mode
        with pytest.raises(ConfigError, match="buffsize_mb has the illegal value 0"):
            group_of(world, [1], buffsize_mb=0)


def test_executors_of_the_parent_are_the_group_s() -> None:
    class Copies:
        op: str | tuple[str, ...] = "all_gather"
        algorithm = "level0:NA"

        def suits(self, op: Any, topology: Any) -> bool:
            return True

        def resources(self, op: Any, rank: Any) -> Any:
            return ResourceRequest()

        def orchestrate(self, op: Any, rank: Any) -> None:
            for slot in rank.user_out:
                rank.main.copy(slot, rank.user_in)

    with hccl.Communicator(ranks=3, executors=[Copies]) as world:
        result = group_of(world, [2, 0]).all_gather([[1], [2]], executor="Copies")
        assert [o.tolist() for o in result.outputs] == [[1, 1], [2, 2]]


@pytest.mark.parametrize("first", ["parent", "child"])
def test_parent_and_children_close_in_any_order(first: str) -> None:
    world = hccl.Communicator(ranks=4)
    group = group_of(world, [0, 2])
    inner = group_of(group, [1])
    (world if first == "parent" else group).close()
    rest = group if first == "parent" else world
    assert rest.all_reduce(ones(rest.size, 1)).outputs[0][0] == sum(range(1, rest.size + 1))
    assert inner.all_gather([[3]]).outputs[0].tolist() == [3]
    closed = world if first == "parent" else group
    with pytest.raises(ParameterError, match="is closed"):
        closed.create_group([0])
    for comm in (world, group, inner):
        comm.close()


def test_split() -> None:
    with hccl.Communicator(ranks=6) as world:
        groups = world.split(["b", "a", "b", None, "a", "b"], keys=[0, 5, -1, 0, 2, 0])
        assert list(groups) == ["b", "a"]
        assert groups["b"].ranks == (2, 0, 5)
        assert groups["a"].ranks == (4, 1)
        assert [g.ranks for g in world.split([0, 1] * 3).values()] == [(0, 2, 4), (1, 3, 5)]
        swapped = world.split(np.array([0, 1] * 3), keys=np.arange(6)[::-1])
        assert [g.ranks for g in swapped.values()] == [(4, 2, 0), (5, 3, 1)]
        assert [g.ranks for g in world.split(iter("aaabbb")).values()] == [(0, 1, 2), (3, 4, 5)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.create_group([]), "has no ranks"),
        (lambda c: c.create_group([0, 4]), "Rank 4 of the group is out of range"),
        (lambda c: c.create_group([-1]), "Rank -1 of the group is out of range"),
        (lambda c: c.create_group([1, 2, 1]), "Rank 1 is in the group twice"),
        (lambda c: c.create_group([0.5]), "A rank of the group is 0.5"),
        (lambda c: c.create_group(3), "create_group got 3 as ranks"),
        (lambda c: c.create_group([True, False]), "A rank of the group is True"),
        (lambda c: c.create_group([0], name=""), "name of the group is ''"),
        (lambda c: c.create_group([0], name="x" * 128), "Give 1 to 127 characters"),
        (lambda c: c.split([0, 1]), "split got 2 colors for 4 ranks"),
        (lambda c: c.split([0] * 4, keys=[1]), "split got 1 keys for 4 ranks"),
        (lambda c: c.split([0] * 4, keys=["a"] * 4), "A key is 'a'"),
        (lambda c: c.split(None), "split got None as colors"),
        (lambda c: c.split([0] * 4, keys=3), "split got 3 as keys"),
        (lambda c: c.split([[0], [0], [1], [1]]), r"The color of rank 0 is \[0\]"),
        (lambda c: ANY.parallel_groups(c, tp=True), "tp is True"),
        (lambda c: hccl.parallel_groups(c, tp=3), "tp 3 x pp 1 are 3 ranks, the world has 4"),
        (lambda c: hccl.parallel_groups(c, tp=2, dp=3), "are 6 ranks, the world has 4"),
        (lambda c: hccl.parallel_groups(c, pp=0), "pp is 0"),
        (lambda c: ANY.parallel_groups(c, tp=2.5), "tp is 2.5"),
        (lambda c: hccl.parallel_groups(c, tp=2).of(4), "Rank 4 is in no group"),
    ],
)
def test_what_is_refused_and_why(call: Any, words: str) -> None:
    with hccl.Communicator(ranks=4) as comm, pytest.raises(HcclError, match=words) as caught:
        call(comm)
    assert caught.value.hint


def test_megatron_s_layout() -> None:
    with (
        hccl.Communicator(servers=2, devices=8) as world,
        hccl.parallel_groups(world, tp=2, pp=4) as groups,
    ):
        assert [g.ranks for g in groups.tp][:3] == [(0, 1), (2, 3), (4, 5)]
        assert [g.ranks for g in groups.dp][:3] == [(0, 2), (1, 3), (4, 6)]
        assert [g.ranks for g in groups.pp] == [(r, r + 4, r + 8, r + 12) for r in range(4)]
        assert [g.name for g in groups.of(6)] == [
            "hccl_world_group_tp_3",
            "hccl_world_group_dp_2",
            "hccl_world_group_pp_2",
        ]


@given(tp=st.integers(1, 4), dp=st.integers(1, 3), pp=st.integers(1, 3))
def test_every_rank_is_in_one_group_of_each_kind(tp: int, dp: int, pp: int) -> None:
    with hccl.Communicator(ranks=tp * dp * pp) as world:
        groups = hccl.parallel_groups(world, tp=tp, dp=dp, pp=pp)
        for kind, size in ((groups.tp, tp), (groups.dp, dp), (groups.pp, pp)):
            assert {group.size for group in kind} == {size}
            assert sorted(r for group in kind for r in group.ranks) == list(range(world.size))
        for rank in range(world.size):
            mine = [set(group.ranks) for group in groups.of(rank)]
            assert set.intersection(*mine) == {rank}
        groups.close()
        with pytest.raises(ParameterError, match="is closed"):
            groups.tp[0].barrier()
        world.barrier()


def test_groups_of_the_same_ranks_run_at_once_and_do_not_meet() -> None:
    wrong: list[str] = []
    with hccl.Communicator(ranks=8) as world:
        groups = [world, group_of(world, range(8)), group_of(world, [7, 1, 0, 4])]
        groups += hccl.parallel_groups(world, tp=4).tp
        gate = threading.Barrier(len(groups))

        def work(comm: hccl.Communicator, value: int) -> None:
            gate.wait()
            for turn in range(8):
                count = 200_000 if turn % 2 else 50
                inputs = [np.full(count, value * turn + r, np.int32) for r in range(comm.size)]
                total = comm.all_reduce(inputs).outputs
                first = comm.broadcast(inputs, comm.size - 1).outputs
                right = sum(int(i[0]) for i in inputs)
                if any((o != right).any() for o in total):
                    wrong.append(f"all_reduce of {comm.name}")
                if any((o != inputs[-1]).any() for o in first):
                    wrong.append(f"broadcast of {comm.name}")

        threads = [threading.Thread(target=work, args=pair[::-1]) for pair in enumerate(groups)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
