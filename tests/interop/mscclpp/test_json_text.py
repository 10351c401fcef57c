"""What is no execution plan is refused in one sentence with the JSON path, whatever it is, and at
once; and a plan is told apart from a program.
"""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hccl_py as hccl
from hccl_interop.mscclpp import import_plan, is_plan, meaning_of, plan_from, read_plan
from hccl_py.errors import HcclError, ProgramFileError
from hccl_py.verifier import Options
from tests.interop.mscclpp import plans

GOOD = plans.read_reduce(2)
Document = dict[str, Any]


def refused(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(ProgramFileError) as caught:
        plan_from(data, "own.json")
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("own.json: ")
    return caught.value.message.removeprefix("own.json: ")


def _set(path: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        found: Any = document
        *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in keys:
            found = found[key]
        found[last] = value

    return change


def _delete(path: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        found: Any = document
        *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in keys:
            found = found[key]
        del found[last]

    return change


OP = "gpus.0.threadblocks.0.ops"
DEFECTS: dict[str, tuple[Callable[[Document], None], str]] = {
    "no name": (_delete("name"), "name: expected a value, found nothing."),
    "more channels than are read": (
        _set("gpus.0.channels", [{"channel_type": "port", "connected_to": [1] * ((1 << 17) + 1)}]),
        "gpus[0].channels[0]: expected at most 131,072 channels, found more.",
    ),
    "more threadblocks than run at once": (
        _set("gpus.0.threadblocks", [{"id": k, "ops": []} for k in range(1025)]),
        "gpus[0].threadblocks: expected at most 1,024, found 1025.",
    ),
    "a number as a string": (
        _set("gpus.0.input_chunks", "2"),
        'gpus[0].input_chunks: expected a whole number, found "2".',
    ),
    "a protocol that there is not": (
        _set("protocol", "LL128"),
        "protocol: expected 'Simple' or 'LL', found \"LL128\".",
    ),
    "no GPUs": (_set("gpus", []), "gpus: expected 1 to 4096 GPUs, found 0."),
    "GPUs that are no list": (_set("gpus", 2), "gpus: expected a list, found 2."),
    "an operation that there is not": (
        _set(f"{OP}.3.name", "rrs"),
        'gpus[0].threadblocks[0].ops[3].name: expected an operation, found "rrs".',
    ),
    "an operation that is no object": (
        _set(f"{OP}.2", "nop"),
        'gpus[0].threadblocks[0].ops[2]: expected an object, found "nop".',
    ),
    "a buffer that there is not": (
        _set(f"{OP}.3.src_buff.0.type", "x"),
        "gpus[0].threadblocks[0].ops[3].src_buff[0].type: expected 'i', 'o' or 's', found \"x\".",
    ),
    "chunks of two kinds": (
        _set(f"{OP}.3.src_buff.0.buffer_id", 0),
        "gpus[0].threadblocks[0].ops[3].src_buff[0]: expected one of type, buffer_id and "
        "switch_channel_id, found none or several.",
    ),
    "a negative chunk": (
        _set(f"{OP}.3.src_buff.0.index", -1),
        "gpus[0].threadblocks[0].ops[3].src_buff[0].index: expected greater than or equal to 0, "
        "found -1.",
    ),
    "a peer that there is not": (
        _set("gpus.0.channels.0.connected_to", [2]),
        "gpus[0].channels[0]: expected a rank, found 2.",
    ),
    "a channel to itself": (
        _set("gpus.0.channels.0.connected_to", [0]),
        "gpus[0].channels[0]: expected another rank, found 0.",
    ),
    "a pipeline without passes": (
        _set(f"{OP}.0", {"name": "pipeline", "ops": []}),
        "gpus[0].threadblocks[0].ops[0]: expected iter_context, found none.",
    ),
    "a pipeline in a pipeline": (
        _set(
            f"{OP}.0",
            {
                "name": "pipeline",
                "iter_context": {"unit_size": 1, "num_chunks": 1},
                "ops": [{"name": "pipeline", "iter_context": {"unit_size": 1, "num_chunks": 1}}],
            },
        ),
        "gpus[0].threadblocks[0].ops[0].ops[0]: expected no pipeline in a pipeline, found one.",
    ),
    "members of old releases": (
        _set("gpus.0.inputChunks", 2),
        "gpus[0]: expected input_chunks, found inputChunks.",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_what_is_no_plan_is_named(name: str) -> None:
    change, message = DEFECTS[name]
    document = json.loads(GOOD.text())
    change(document)
    assert refused(json.dumps(document)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 column 1: the text is not JSON (Expecting value)."),
        ("[]", "$: expected an object, found a list of 0."),
        ('{"gpus": [], "gpus": []}', '$: expected the key "gpus" once, found it twice.'),
        (b"\xff", "line 1: expected UTF-8 text, found the byte 0xff."),
        ('{"gpus": ' + "[" * 5000, "$: expected at most 8 levels of brackets, found hundreds."),
    ],
)
def test_what_is_no_json_is_named(text: str | bytes, message: str) -> None:
    assert refused(text) == message


def test_members_that_the_executor_passes_over_are_passed_over() -> None:
    document = json.loads(GOOD.text()) | {"comment": "mine"}
    document["gpus"][0]["threadblocks"][0]["ops"][3]["note"] = [1, {"a": {}}]
    found = plan_from(json.dumps(document).encode(), "own.json")
    assert import_plan(found, meaning_of(found), 1 << 10).report().ok


def test_operations_have_their_lines_whatever_the_layout() -> None:
    text = '{"name":"{\\"","a":{"b":[{}]},\n' + GOOD.text()[1:].replace('"name": "own",', "")
    found = plan_from(text.encode(), "own.json")
    lines = text.splitlines()
    for gpu in found.gpus:
        for block in gpu.blocks:
            for op in block.ops:
                assert lines[op.line - 1].strip() == "{"
                assert lines[op.line].strip().startswith(f'"name": "{op.name}"')


def test_plans_are_told_apart_from_programs(tmp_path: Path) -> None:
    plan = plan_from(GOOD.text().encode(), "own.json")
    program = import_plan(plan, meaning_of(plan), 1 << 10).require()
    program.save(tmp_path / "program.json")
    assert not is_plan((tmp_path / "program.json").read_bytes())
    assert is_plan(GOOD.text().encode())
    assert is_plan(GOOD.text().encode()[:-9])  # cut off: what is wrong is said of a plan
    assert not is_plan(b'{"gpus": 1, "format": "else"}')
    assert not is_plan(b"[]")
    (tmp_path / "plan.json").write_text(GOOD.text())
    assert read_plan(tmp_path / "plan.json").ranks == 2
    with pytest.raises(ProgramFileError, match="expected at most 10 bytes"):
        read_plan(tmp_path / "plan.json", 10)
    with pytest.raises(ProgramFileError):
        hccl.load(tmp_path / "plan.json")


SEEDS = [
    plans.read_reduce(2),
    plans.packet_all_reduce(2, group=2),
    plans.pipelined_gather(),
    plans.port_exchange(2),
    plans.switch_all_reduce(2),
    plans.barrier_between_blocks(2),
]
VALUES: tuple[Any, ...] = (
    *(-1, 0, 1, 2, 3, 7, 16, 255, 256, 1 << 31, 1 << 40, 1 << 70, 1.5, True, None, "", "s", "i"),
    *("o", "memory", "port", "switch", "none", "nop", "put", "copy", [], {}, [0], [1, 0], [[]]),
    *("sem_acquire", "barrier", "ppkt", "upkt", "rppkt", "glres", "gstorepkt", "res", "get"),
)


def _mutated(rng: random.Random, value: Any) -> Any:
    """Return a document with some values changed, taken out, doubled."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        found = waiting.pop()
        keys = list(found) if isinstance(found, dict) else range(len(found))
        places += [(found, key) for key in keys]
        waiting += [found[key] for key in keys if isinstance(found[key], dict | list)]
    for _ in range(rng.choice((1, 1, 2, 5))):
        holder, key = rng.choice(places)
        change = rng.random()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        if key not in keys:  # gone by now
            continue
        if change < 0.6:
            holder[key] = rng.choice(VALUES)
        elif change < 0.8:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), holder[key])
    return value


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.sweep) for k in range(1, 20))]
)
def test_mutated_plans_are_verified_or_refused_at_once(seed: int) -> None:
    rng = random.Random(seed)
    outcomes, messages = set(), []
    for _ in range(100):
        document = json.loads(rng.choice(SEEDS).text())
        text = json.dumps(_mutated(rng, document), indent=rng.choice((None, 1)))
        begun = time.process_time()
        try:
            plan = plan_from(text.encode(), "own.json")
            found = import_plan(plan, meaning_of(plan), rng.choice((None, 1, 4096)))
            found.report(Options(repeat=2))
            outcomes.add("whole" if found.program else "not whole")
        except HcclError as error:
            messages.append(error.message)
            outcomes.add("refused")
        assert time.process_time() - begun < 3
    assert outcomes == {"whole", "not whole", "refused"}
    assert not [message for message in messages if not message or "\n" in message]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.sweep) for k in range(1, 10))]
)
def test_mutated_bytes_are_refused_at_once(seed: int) -> None:
    rng, messages = random.Random(seed), []
    for _ in range(200):
        data = bytearray(rng.choice(SEEDS).text().encode())
        for _ in range(rng.choice((1, 3, 30))):
            at = rng.randrange(len(data))
            data[at : at + rng.choice((0, 1, 1, 40))] = rng.randbytes(rng.choice((0, 1, 1, 3)))
        begun = time.process_time()
        try:
            plan = plan_from(bytes(data), "own.json")
            import_plan(plan, meaning_of(plan), 4096)
        except HcclError as error:
            messages.append(error.message)
        assert time.process_time() - begun < 3
    assert messages
    assert not [message for message in messages if not message or "\n" in message]
