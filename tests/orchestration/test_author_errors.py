"""Errors of an author's code: the line, the nearest name, what a function takes."""

from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import exchange
from hccl_py.orchestration.author_errors import author_message, definition_line
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest, require
from tests.orchestration.authors import MeshAuthor
from tests.recording import op_of, recorded

ex: Any = exchange
Plane: Any = PlaneRequest
Request: Any = ResourceRequest


class Author(MeshAuthor):
    subs = 1

    def helper(self, rank: Any, peer: int = 0) -> None:
        pass


def step(stream: Any, *, chunks: Any, size: int = 4) -> None:
    """A template that a test calls wrongly."""


@contextmanager
def block(rank: Any) -> Any:
    """A block that a test calls wrongly."""
    yield


def failing(method: str, body: Any) -> OrchestrationError:
    """Record an executor one of whose methods has this body, and return the error."""
    executor = type("Failing", (Author,), {method: body})
    with pytest.raises(OrchestrationError) as caught:
        recorded(executor, op_of("all_gather", 100), 4)
    error = caught.value
    assert f"Failing.{method}" in error.message
    assert error.line.startswith("orchestration/test_author_errors.py:")
    assert f"({error.line})" in error.message
    assert error.ranks == (0, 1, 2, 3)
    return error


def local(rank: Any) -> None:
    """Call a function of one's own."""

    def inner(first: int, second: int) -> None:
        pass

    call: Any = inner
    call(1, secnd=2)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (lambda s, r: ex(r.main, r.flat.right, sned=r.ccl_in), "Did you mean send"),
        (lambda s, r: r.main.copy(r.ccl_in, source=r.ccl_out), "Did you mean src?"),
        (lambda s, r: r.main.reduce(r.ccl_in, r.ccl_out, opp=1), "Did you mean op?"),
        (lambda s, r: r.fork(cuont=1), "Did you mean count?"),
        (lambda s, r: r.ccl_in.split(4, aling=1), "Did you mean align?"),
        (lambda s, r: s.helper(r, pear=1), "Did you mean peer?"),
        (lambda s, r: step(r.main, chunk=1), "Did you mean chunks?"),  # type: ignore[call-arg]
        (lambda s, r: local(r), "Did you mean second?"),
        (lambda s, r: block(rnak=r), "Did you mean rank?"),  # type: ignore[call-arg]
        (lambda s, r: r.main.copy(r.ccl_in), "It takes Stream.copy(dst, src)."),
        (lambda s, r: r.main.copy(r.ccl_in, 1, 2), "It takes Stream.copy(dst, src)."),
        (lambda s, r: r.main.copy(r.ccl_in, dst=2), "It takes Stream.copy(dst, src)."),
        (lambda s, r: r.main.phase(), "It takes Stream.phase(name)."),
        (lambda s, r: r.flat.right.tx_ack(), "It takes Link.tx_ack(stream)."),
        (lambda s, r: r.flat.right.tx_ack(r), "It takes Link.tx_ack(stream)."),
        (lambda s, r: ex(), "It takes exchange(stream, to=None, frm=None, send=(), recv=(), "),
        (lambda s, r: ex(r.main, 3), "It takes exchange(stream, to=None, "),
        (lambda s, r: step(r.main), "It takes step(stream, *, chunks, size=4)."),  # type: ignore
        (lambda s, r: r.main.cpoy(1, 2), "Did you mean copy"),
        (lambda s, r: r.flat.rihgt, "Did you mean right?"),
        (lambda s, r: r.flat.link(1), "plane[...] is the link to the member with this index."),
        (lambda s, r: r.ccl_inn, "Did you mean ccl_in"),
        (lambda s, r: list(r.flat.fork()), "`with rank.flat.fork() as subs:`"),
        (lambda s, r: r.fork()[0], "are blocks: "),
        (lambda s, r: r.main.phase("a").copy(1, 2), "are blocks: "),
        (lambda s, r: np.arange(9)[r.id], "use Chunks, or int(value)."),
        (lambda s, r: 1 // 0, "The line reads: (lambda s, r: 1 // 0,"),
        (lambda s, r: len(3), "The line reads: (lambda s, r: len(3),"),  # type: ignore[arg-type]
        (lambda s, r: np.array_split(np.arange(3), 0), "The line reads: (lambda s, r: np.array_"),
    ],
)
def test_the_hint_says_what_was_expected(body: Any, hint: str) -> None:
    error = failing("orchestrate", lambda self, op, rank: body(self, rank))
    assert hint in error.hint


def test_an_error_without_a_text_is_named() -> None:
    def nothing_said(self: Any, op: Any, rank: Any) -> None:
        raise NotImplementedError

    error = failing("orchestrate", nothing_said)
    assert "3: NotImplementedError (orchestration/test_author_errors.py:" in error.message
    assert error.hint == "The line reads: raise NotImplementedError"


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (lambda: Plane("flat", patern="ring"), "Did you mean pattern?"),
        (lambda: Request(sub_stream=3), "Did you mean sub_streams?"),
        (lambda: Plane(), "It takes PlaneRequest(level, pattern, input_mem=None, output_mem="),
        (
            lambda: Request(zzz=3),
            "Known: first_rounds, max_count, notifies, planes, scratch_bytes, sub_streams.",
        ),
    ],
)
def test_requests_say_what_they_take(body: Any, hint: str) -> None:
    error = failing("resources", lambda self, op, rank: body())
    assert error.hint.startswith(hint)
    assert "TypeError: " in error.message


def test_a_method_without_source_has_no_line() -> None:
    assert definition_line(len) == ""
    assert definition_line(failing).startswith("orchestration/test_author_errors.py:")


def test_a_require_without_pairs_names_the_authors_line() -> None:
    with pytest.raises(TypeError) as caught:
        require(True, "needs a mesh")  # type: ignore[arg-type]
    message = author_message(caught.value)
    assert "require() takes pairs (condition, reason), not True" in message.text
    assert message.line.startswith("orchestration/test_author_errors.py:")
