"""Ranges of sizes with one choice: changes are found to the byte."""

from hccl_py.selection.spans import Choice, Span, spans


def test_a_change_is_found_to_the_byte() -> None:
    small, large = Choice("Small", "Small"), Choice("Large", None)
    found = spans([1, 1000], lambda size: small if size < 777 else large)
    assert found == [Span(1, 776, small), Span(777, 1000, large)]
