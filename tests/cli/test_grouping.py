"""Groups of options in the signature of a command, and options that may stand alone."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from hccl_py.cli.errors import PipeClosedError
from hccl_py.cli.grouping import CallCommand, changed, grouped, only, without
from hccl_py.cli.streams import say

IN_PLACE = typer.Option("--in-place")


@dataclass(frozen=True)
class Call:
    """What a group of options makes."""

    op: Annotated[str, typer.Argument()] = "any"
    count: Annotated[int, typer.Option("--count")] = 3
    deterministic: Annotated[str | None, typer.Option("--deterministic")] = None
    in_place: Annotated[str | None, IN_PLACE] = None


def output(command: Any, *arguments: str) -> str:
    """Return what a command prints, as an app that has it and another one."""
    app = typer.Typer()
    app.command("go", cls=CallCommand)(grouped(command))
    app.command("other")(lambda: None)
    done = CliRunner().invoke(app, ["go", *arguments])
    return done.output


def everything(call: Call, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    say(f"{call.op} {call.count} {call.deterministic} {call.in_place} {loud}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("all", "all 3 None None False"),
        ("all --count 4 --loud", "all 4 None None True"),
        ("all --deterministic", "all 3 true None False"),
        ("all --deterministic strict", "all 3 strict None False"),
        ("all --deterministic FALSE", "all 3 FALSE None False"),
        ("--deterministic all", "all 3 true None False"),
        ("all --in-place", "all 3 None all False"),
        ("--in-place slot all --deterministic --loud", "all 3 true slot True"),
        ("--in-place start all", "all 3 None start False"),
    ],
)
def test_options_that_may_stand_alone(arguments: str, words: str) -> None:
    assert output(everything, *arguments.split()) == f"{words}\n"


def test_the_words_of_another_option_do_not_follow() -> None:
    def one(call: Annotated[Call, only(op=typer.Argument(), in_place=IN_PLACE)]) -> None:
        say(f"{call.op} {call.in_place}")

    assert output(one, "--in-place", "true") == "true all\n"
    assert "No such option" in output(one, "x", "--deterministic")


def parameters(command: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(grouped(command)).parameters)


def test_a_group_is_spread_over_the_signature() -> None:
    found = parameters(everything)
    assert list(found) == ["op", "count", "deterministic", "in_place", "loud"]
    assert {p.kind for p in found.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert found["op"].default is inspect.Parameter.empty  # an argument has to be given
    assert (found["count"].default, found["loud"].default) == (3, False)


def test_a_command_takes_a_part_of_a_group_or_changes_it() -> None:
    few, many = typer.Option("--few"), typer.Option("--many")

    def part(call: Annotated[Call, only(in_place=few, count=many)]) -> None:
        say(f"{call}")

    def other(call: Annotated[Call, changed(op=few)]) -> None:
        say(f"{call}")

    assert list(parameters(part)) == ["in_place", "count"]
    assert output(part, "--few", "x", "--many", "7") == f"{Call('any', 7, None, 'x')}\n"
    assert list(parameters(other)) == ["op", "count", "deterministic", "in_place"]
    assert parameters(other)["op"].default == "any"
    assert output(other, "--few", "y") == f"{Call('y')}\n"


def test_results_alone_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    def talks() -> int:
        say("result")
        print("of a plugin")
        return 7

    assert grouped(talks)() == 7
    assert capsys.readouterr() == ("result\n", "of a plugin\n")


def test_a_reader_that_is_gone_is_no_error_of_typer() -> None:
    def breaks() -> None:
        raise BrokenPipeError

    with pytest.raises(PipeClosedError):
        grouped(breaks)()


def test_what_is_wrong_names_the_command() -> None:
    said = output(everything, "all", "--cont", "3")
    assert " go " in said.splitlines()[0]
    assert "--cont" in said


def test_options_that_are_left_out_or_hidden() -> None:
    def some(call: Annotated[Call, without("count", hidden=("in_place",))]) -> None:
        everything(call)

    assert output(some, "all", "--in-place", "slot") == "all 3 None slot False\n"
    assert "No such option" in output(some, "all", "--count", "4")
    assert "--in-place" not in output(some, "--help")


def test_help_has_panels() -> None:
    app = typer.Typer(rich_markup_mode=None)  # as the command line has it
    app.command(cls=CallCommand)(grouped(everything))
    lines = CliRunner().invoke(app, ["--help"]).output.splitlines()
    heads = [line.removesuffix(":") for line in lines if line[:1].isalpha() and line[-1:] == ":"]
    assert heads == ["Arguments", "Options", "Data", "Executor and settings of HCCL", "Output"]
    place = lines.index("Data:")
    assert lines[place + 1].split()[0] == "--in-place"
