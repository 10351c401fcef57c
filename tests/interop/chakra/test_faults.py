"""What is no trace: one sentence that says where, status 2, soon, and never a traceback."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hccl_py
from hccl_interop.chakra import job_of, read_trace, write_trace
from hccl_interop.chakra.schema import messages
from hccl_py.cli import main
from hccl_py.errors import HcclError
from hccl_py.jobs import Job
from tests.cpu import cpu_of_children
from tests.interop.chakra.ets import (
    ALL_GATHER,
    ALL_REDUCE,
    COLL,
    COMP,
    METADATA,
    RECV,
    SCATTER,
    SEND,
    Et,
    Value,
    attr,
    coll,
    encode,
    framed,
    groups,
    write,
)

Ranks = list[list[Et]]


def step() -> Ranks:
    """Two ranks: a kernel, a sum behind it, a message behind that, process groups."""
    ranks: Ranks = []
    for rank in range(2):
        message: dict[str, Value] = {
            "comm_size": 64,
            ("comm_src" if rank else "comm_dst"): 1 - rank,
        }
        sums = coll(2, ALL_REDUCE, 4096, "1")
        sums.deps = [1]
        last = Et(3, RECV if rank else SEND, "message", [2], attrs={**message})
        ranks.append([groups(0, {"1": [0, 1]}), Et(1, COMP, "kernel", us=7), sums, last])
    return ranks


def changed(change: Callable[[Ranks], object]) -> Ranks:
    ranks = step()
    change(ranks)
    return ranks


def with_attr(rank: int, node: int, name: str, value: Any) -> Callable[[Ranks], object]:
    return lambda ranks: ranks[rank][node].attrs.update({name: value})


def both(change: Callable[[list[Et]], object]) -> Callable[[Ranks], object]:
    return lambda ranks: [change(nodes) for nodes in ranks]


def rooted(node: Et, root: int) -> Et:
    node.attrs["hccl_py.root"] = root
    return node


FAULTS: dict[str, tuple[Callable[[Ranks], object], str]] = {
    "a dependency on nothing": (
        lambda ranks: setattr(ranks[1][1], "deps", [99]),
        "own.1.et: node 1: dependencies: expected nodes of this file, found node 99.",
    ),
    "a cycle": (
        lambda ranks: setattr(ranks[0][1], "ctrl", [3]),
        ": dependencies: expected nodes that end before it, found itself, by way of others.",
    ),
    "a node that waits for itself": (
        lambda ranks: setattr(ranks[0][1], "deps", [1]),
        "own.0.et: node 1: dependencies: expected nodes that end before it, found itself",
    ),
    "an id twice": (
        lambda ranks: setattr(ranks[0][2], "id", 1),
        "own.0.et: node 1: expected an id of its own, found it twice.",
    ),
    "an unknown type": (
        lambda ranks: setattr(ranks[0][1], "type", 99),
        "own.0.et: node 1: type: expected a node type, found 99.",
    ),
    "an unknown collective": (
        with_attr(0, 2, "comm_type", 42),
        "own.0.et: node 2: comm_type: expected a collective, found 42.",
    ),
    "a collective of no kind": (
        lambda ranks: ranks[0][2].attrs.pop("comm_type"),
        "own.0.et: node 2: comm_type: expected an integer, found none.",
    ),
    "a collective without a size": (
        lambda ranks: ranks[0][2].attrs.pop("comm_size"),
        "own.0.et: node 2: comm_size: expected an integer, found none.",
    ),
    "a size that no device holds": (
        both(lambda nodes: nodes[2].attrs.update(comm_size=1 << 61)),
        "own.0.et: node 2: comm_size: expected an integer from 0 to 68719476736, found 23058430092",
    ),
    "a size below nothing": (
        with_attr(0, 2, "comm_size", -1),
        "own.0.et: node 2: comm_size: expected an integer from 0 to 68719476736, found -1.",
    ),
    "a size that is a text": (
        with_attr(0, 2, "comm_size", "much"),
        'own.0.et: node 2: comm_size: expected an integer from 0 to 68719476736, found "much".',
    ),
    "an endless kernel": (
        lambda ranks: setattr(ranks[0][1], "us", 1 << 62),
        "own.0.et: node 1: duration_micros: expected an integer from 0 to 1000000000000, found 46",
    ),
    "a kernel of no known duration": (
        lambda ranks: ranks[0].append(Et(9, COMP, attrs={"num_ops": 5})),
        "own.0.et: node 9: duration_micros: expected a duration, found num_ops only.",
    ),
    "sizes that differ": (
        with_attr(1, 2, "comm_size", 8),
        "rank 1: node 2: expected all_reduce of 4096 bytes, call 1 of group 1 on rank 0, found "
        "all_reduce of 8 bytes.",
    ),
    "collectives that differ": (
        with_attr(1, 2, "comm_type", ALL_GATHER),
        "found all_gather of 4096 bytes.",
    ),
    "a collective that one rank lacks": (
        lambda ranks: ranks[0].append(coll(9, ALL_REDUCE, 8, "1")),
        "group 1: expected 2 calls, as of rank 0, found 1 of rank 1.",
    ),
    "a group with ranks beyond the files": (
        lambda ranks: ranks[0].insert(0, groups(8, {"5": [0, 7]})),
        "own.0.et: group 5: expected ranks from 0 to 1, those with files, found rank 7.",
    ),
    "a group with a rank twice": (
        lambda ranks: ranks[0].insert(0, groups(8, {"5": [1, 1]})),
        "own.0.et: group 5: expected every rank once, found one twice.",
    ),
    "a group that is two": (
        lambda ranks: ranks[1].insert(0, groups(8, {"1": [1, 0]})),
        "own.1.et: node 0: group 1: expected the ranks that a node before states, found others.",
    ),
    "a group that is another one elsewhere": (
        lambda ranks: ranks[1].__setitem__(0, groups(0, {"1": [1, 0]})),
        "group 1: expected the same ranks in all files, found others in ",
    ),
    "a call of a group of others": (
        both(lambda nodes: nodes.__setitem__(0, groups(0, {"1": [1]}))),
        "rank 0: node 2: expected a rank of group 1, found another rank.",
    ),
    "groups that are no JSON": (
        lambda ranks: ranks[0].insert(0, Et(8, METADATA, values="[{pg_name: 1}]")),
        "own.0.et: node 8: inputs.values: expected process groups, objects with pg_name and ranks",
    ),
    "groups that nest": (
        lambda ranks: ranks[0].insert(0, Et(8, METADATA, values="pg_name [{" + "[" * 99999 + "}]")),
        "own.0.et: node 8: inputs.values: expected process groups, objects with pg_name and ranks",
    ),
    "a root beyond the group": (
        both(lambda nodes: nodes.append(rooted(coll(9, SCATTER, 8), 2))),
        "rank 0: node 9: root: expected a rank of group 0, 0 to 1, found 2.",
    ),
    "a message to nobody": (
        lambda ranks: ranks[0][3].attrs.pop("comm_dst"),
        "own.0.et: node 3: comm_dst: expected an integer, found none.",
    ),
    "a message beyond the files": (
        with_attr(0, 3, "comm_dst", 2),
        "own.0.et: node 3: expected ranks from 0 to 1, those with files, found rank 2.",
    ),
    "a message to oneself": (
        with_attr(0, 3, "comm_dst", 0),
        "own.0.et: node 3: comm_dst: expected another rank, found 0.",
    ),
    "a message of another rank": (
        with_attr(0, 3, "comm_src", 1),
        "own.0.et: node 3: comm_src: expected 0, found 1.",
    ),
    "a message that nobody receives": (
        lambda ranks: ranks[1].pop(),
        "messages from rank 0 to rank 1: expected 1 of tag 0, as are sent, found 0 received.",
    ),
    "a message of another size": (
        with_attr(1, 3, "comm_size", 32),
        "messages from rank 0 to rank 1: expected 64 bytes with tag 0, as are sent, found 32",
    ),
    "a data type of nobody": (
        with_attr(0, 2, "hccl_py.dtype", "fp7"),
        "own.0.et: node 2: hccl_py.dtype: Data type 'fp7' is unknown.",
    ),
    "a name that is a list": (
        with_attr(0, 2, "pg_name", ["1"]),
        "own.0.et: node 2: pg_name: expected a text of at most 127 characters, found a list of 0.",
    ),
    "a stream below nothing": (
        with_attr(0, 1, "stream", -1),
        "own.0.et: node 1: stream: expected an integer from 0 to 2147483647, found -1.",
    ),
}


def refusal(folder: Path | str, capfd: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which a trace is refused."""
    assert main(["simulate", str(folder)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    first, *hints = err.splitlines()
    assert first.startswith("error: ")
    assert all(line.startswith("hint: ") for line in hints)
    assert len(hints) <= 1
    return first


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_said_in_a_sentence(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change, message = FAULTS[name]
    assert message in refusal(write(tmp_path / "own", changed(change)), capfd)


def test_the_step_itself_is_a_trace(tmp_path: Path) -> None:
    assert main(["simulate", str(write(tmp_path / "own", step()))]) == 0


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda data: b"", "own.1.et: byte 0: expected GlobalMetadata, found an empty file"),
    "half a length": (lambda data: b"\xff", "own.1.et: byte 0: expected the length of a message"),
    "an endless length": (lambda data: b"\xff" * 9, "byte 0: expected the length of a message"),
    "a message that is cut off": (
        lambda data: data[:-3],
        "bytes to the end of the file.",
    ),
    "no metadata": (
        lambda data: encode(step()[1]).removeprefix(framed(data[1 : 1 + data[0]])),
        "own.1.et: byte 0: expected GlobalMetadata, found ",
    ),
    "noise": (lambda data: b"\x04\xff\xff\xff\xff" + data, "expected GlobalMetadata, found bytes"),
    "a text": (lambda data: b"{}\n" * 9, "own.1.et: byte 0: expected a message of 123 bytes"),
    "a name that is no text": (
        lambda data: data + framed(b"\x12\x02\xff\xfe"),
        "expected a Node, found bytes that are none.",
    ),
    "streams of other names": (
        lambda data: encode(step()[1], b"\x12" + framed(attr("hccl_py.streams", ["a"]))),
        "own.1.et: GlobalMetadata: expected the streams of rank 0, found others.",
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_file(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change, message = BYTES[name]
    folder = write(tmp_path / "own", step())
    file = folder / "own.1.et"
    file.write_bytes(change(file.read_bytes()))
    assert message in refusal(folder, capfd)


def test_folders_that_are_no_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "own", step())
    (folder / "own.3.et").write_bytes(encode(step()[0]))
    assert "there is no file own.2.et, and one of rank 3." in refusal(folder, capfd)
    (folder / "own.3.et").rename(folder / "other.0.et")
    assert "there are 2 traces: other, own." in refusal(folder, capfd)
    assert main(["simulate", str(folder / "own")]) == 0
    capfd.readouterr()
    (folder / "other.0.et").rename(folder / "other.et")
    (folder / "own.0.et").unlink()
    (folder / "own.1.et").unlink()
    assert "there is no file PREFIX.RANK.et." in refusal(folder, capfd)


def test_streams_without_number(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [Et(k, COMP, us=1, attrs={"stream": k}) for k in range(2049)]
    assert "expected at most 2048 streams, found 2049." in refusal(write(tmp_path, [nodes]), capfd)
    write(tmp_path, [nodes[:2048]])
    trace = read_trace(tmp_path)
    assert len(job_of(trace, hccl_py.Communicator(ranks=1)).stream_names) == 2048


def test_streams_must_be_those_that_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = b"\x12" + framed(attr("hccl_py.streams", ["only"]))
    for stream, message in (
        (1, "node 1: stream: expected one of the 1 streams that GlobalMetadata names, found 1."),
        (None, "node 1: stream: expected one of the 1 streams that GlobalMetadata names, found no"),
    ):
        nodes = [Et(1, COMP, us=1, attrs={} if stream is None else {"stream": stream})]
        folder = write(tmp_path / "own", [nodes])
        (folder / "own.0.et").write_bytes(encode(nodes, named))
        assert message in refusal(folder, capfd)


def test_streams_that_can_never_go_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Everybody sends before anybody receives; the nodes are named."""
    ranks = []
    for rank in range(2):
        said = {"comm_size": 64}
        send = Et(1, SEND, "send", attrs={"comm_dst": 1 - rank, **said})
        receive = Et(2, RECV, "receive", [1], attrs={"comm_src": 1 - rank, **said})
        ranks.append([send, receive])
    folder = write(tmp_path / "own", ranks)
    assert main(["simulate", str(folder)]) == 2
    err = capfd.readouterr().err
    assert err.startswith("error: Deadlock: ")
    assert "own.0.et:2" in err
    assert main(["simulate", str(folder), "--buffered"]) == 0


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_changed_bytes_are_refused_or_read(data: st.DataObject) -> None:
    whole = [bytearray(encode(nodes)) for nodes in step()]
    mine = whole[data.draw(st.integers(0, 1))]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(mine) - 1, 0)))
        how = data.draw(st.sampled_from(["set", "insert", "delete", "cut"]))
        if how == "set" and mine:
            mine[at] = data.draw(st.integers(0, 255))
        elif how == "insert":
            mine[at:at] = data.draw(st.binary(min_size=1, max_size=6))
        elif how == "delete":
            del mine[at : at + data.draw(st.integers(1, 9))]
        else:
            del mine[at:]
    with tempfile.TemporaryDirectory() as scratch:
        for rank, changed_bytes in enumerate(whole):
            (Path(scratch) / f"own.{rank}.et").write_bytes(changed_bytes)
        start, said = time.process_time(), "It is a trace."
        try:
            job_of(read_trace(scratch), hccl_py.Communicator(ranks=2)).program()
        except HcclError as error:
            said = error.message
        assert time.process_time() - start < 3
        assert "\n" not in said
        assert said.endswith(".")


def test_a_process_says_it_soon(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", changed(with_attr(0, 2, "comm_type", 42)))
    command = [sys.executable, "-m", "hccl_py", "simulate", str(folder)]

    with cpu_of_children() as cpu:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2
    assert cpu.seconds < 3


def test_what_cannot_be_written(tmp_path: Path) -> None:
    world = hccl_py.Communicator(ranks=2)
    job = Job(world.topology)
    stream = job.stream("only")
    uneven = hccl_py.OpParam("all_gather_v", 2, hccl_py.DataType.FP32, counts=(1, 2))
    stream.run(world, uneven)
    with pytest.raises(HcclError, match="Chakra has no node for all_gather_v"):
        write_trace(job, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    others = write(tmp_path / "theirs", step())
    with pytest.raises(HcclError, match=r"holds no Chakra trace of hccl-py: it would be lost"):
        write_trace(Job(world.topology), others)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(HcclError, match="the folder is there and holds no Chakra trace"):
        write_trace(Job(world.topology), tmp_path / "mine")


def test_events_that_never_happen(tmp_path: Path) -> None:
    job = Job(hccl_py.Communicator(ranks=1).topology)
    one, two = job.stream("one"), job.stream("two")
    first, second = job.event(), job.event()
    one.wait(first)
    one.record(second)
    two.wait(second)
    two.record(first)
    with pytest.raises(HcclError, match="Rank 0 waits on stream one for an event that never"):
        write_trace(job, tmp_path / "out")


def test_other_ranks_than_the_trace_has(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "own", step()))
    with pytest.raises(HcclError, match="The trace has 2 ranks, the communicator 4"):
        job_of(trace, hccl_py.Communicator(ranks=4))


def test_without_protobuf(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "own", step())
    messages.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    try:
        assert "Chakra traces need the package protobuf." in refusal(folder, capfd)
    finally:
        messages.cache_clear()


def test_nodes_without_a_name_are_calls(tmp_path: Path) -> None:
    node = coll(1, ALL_REDUCE, 64)
    node.name = ""
    assert node.type == COLL
    trace = read_trace(write(tmp_path / "own", [[node], [node]]))
    program = job_of(trace, hccl_py.Communicator(ranks=2)).program()
    assert [call.label for call in program.calls_run] == ["all_reduce"]
