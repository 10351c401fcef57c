"""`hccl-py doctor` with a test's own platforms; tests/platform/npu/test_doctor.py has real ones."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.errors import PluginError
from hccl_py.plugins.discovery import Platforms
from hccl_py.plugins.platforms import Check, Fact

Doctor = Callable[..., dict[str, Any]]


def there() -> Iterator[Fact]:
    yield Fact("library", "1.2", True)


def missing() -> Iterator[Fact]:
    yield Fact("toolkit", "not installed", False, "Install it.")
    yield Fact("licence", "none", False, "Ask for one.")


class Plain:
    """Says nothing of what it needs."""

    name, clock = "plain", "wall"

    def open(self, *_: object) -> None: ...


class Easy(Plain):
    name = "easy"

    def checks(self) -> Sequence[Check]:
        return (Check("library", there),)


class Lacking(Plain):
    name = "lacking"

    def checks(self) -> Sequence[Check]:
        return (Check("library", there), Check("toolkit", missing))


class Optional(Plain):
    name = "optional"

    def checks(self) -> Sequence[Check]:
        return (Check("toolkit", missing, is_needed=False),)


class Made(Plain):
    """Its hardware is here."""

    name = "made"

    def checks(self) -> Sequence[Check]:
        return (Check("chips", there, is_hardware=True),)


class Half(Plain):
    """Its hardware is here, and something else is not."""

    name = "half"

    def checks(self) -> Sequence[Check]:
        return (Check("chips", there, is_hardware=True), Check("toolkit", missing))


class Broken(Plain):
    name = "broken"

    def __init__(self) -> None:
        raise OSError("no such thing")


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    def run(*platforms: type, problems: Sequence[PluginError] = ()) -> dict[str, Any]:
        known: Any = {each.name: (each, "a_package") for each in platforms}  # type: ignore[attr-defined]
        found = Platforms(known, list(problems))
        monkeypatch.setattr("hccl_py.plugins.discovery.installed_platforms", lambda: found)
        assert main(["doctor", "--json"]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert main(["doctor"]) == 0
        document["text"] = capsys.readouterr().out
        return document

    return run


def test_the_document(doctor: Doctor) -> None:
    document = doctor(Easy, Lacking)
    assert document["schema"] == "hccl-py.doctor/1"
    assert [check["name"] for check in document["checks"]] == ["this machine", "library", "toolkit"]
    machine = {fact["name"]: fact for fact in document["checks"][0]["facts"]}
    assert {"Python", "hccl-py", "numpy", "system", "container", "/dev/shm"} <= machine.keys()
    assert machine["Python"]["good"]
    assert document["checks"][1]["facts"] == [
        {"name": "library", "value": "1.2", "good": True, "hint": ""}
    ]
    easy, lacking = document["platforms"]
    assert easy == {
        "name": "easy",
        "package": "a_package",
        "ready": True,
        "checks": ["library"],
        "lacks": [],
        "hint": "",
    }
    assert (lacking["ready"], lacking["lacks"]) == (False, ["toolkit", "licence"])
    assert lacking["hint"] == "Install it."
    assert document["problems"] == []


def test_what_people_read(doctor: Doctor) -> None:
    words = doctor(Easy, Lacking)["text"]
    assert words.startswith("this machine\n  ok  Python")
    assert "\nlibrary\n  ok  library  " in words
    assert "  no  toolkit  " in words
    assert "hint: Install it.\n" in words
    assert "  no  lacking " in words
    assert "lacks toolkit, licence\n" in words
    last = "Can run here: easy. Next: hccl-py run all_reduce --platform easy --ranks 2"
    assert last in " ".join(words.split())


@pytest.mark.parametrize(
    ("platforms", "words"),
    [
        ([Easy, Made], "Can run here: easy, made. Next: hccl-py run all_reduce --platform made"),
        ([Easy, Half], "Can run here: easy. Next, for half, which lacks toolkit, licence: Install"),
        ([Optional], "Can run here: optional. Next: hccl-py run all_reduce --platform optional"),
        ([Lacking, Plain], "No platform can run here."),
        ([], "No platform can run here."),
    ],
)
def test_the_next_step_is_about_the_hardware_that_is_there(
    doctor: Doctor, platforms: list[type], words: str
) -> None:
    document = doctor(*platforms)
    assert document["next"].startswith(words)
    assert " ".join(document["text"].split()).endswith(document["next"])


def test_platforms_that_do_not_say_or_cannot_be_asked(doctor: Doctor) -> None:
    document = doctor(Plain, Broken, problems=[PluginError("Plugin odd is odd.", "Fix it.")])
    plain, broken = document["platforms"]
    assert (plain["ready"], broken["ready"]) == (None, False)
    assert broken["hint"] == "cannot be asked: OSError: no such thing"
    assert document["problems"] == [{"message": "Plugin odd is odd.", "hint": "Fix it."}]
    assert "does not say what it needs" in document["text"]
    assert "cannot be asked: OSError" in document["text"]
    assert "broken: Plugin odd is odd.\n  Fix it.\n" in document["text"]


def test_the_limit_is_held_to_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--limit", "0"]) == 2
    assert "--limit" in capsys.readouterr().err


def test_the_command_itself_loads_nothing_heavy() -> None:
    code = (
        "import sys; from hccl_py.cli import main; import hccl_py.plugins.discovery as d;"
        "d.installed_platforms(); main(['doctor', '--json', '--limit', '0.1']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["schema"] == "hccl-py.doctor/1"
    loaded = set(done.stderr.split())
    assert not loaded & {"torch", "torch_npu", "numba", "mpi4py", "hccl_executors"}
