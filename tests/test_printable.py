"""What a terminal might obey is shown, and nothing else is changed."""

import pytest

from hccl_py.printable import one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\rb\tc\x7f\x9b1m", r"a\rb\tc\x7f\x9b1m"),
        ("\u202eabc\u2066\u2028", r"\u202eabc\u2066\u2028"),
        ("half \udc80", r"half \udc80"),
        ("全收集 α·β ≤ 3\\n", "全收集 α·β ≤ 3\\n"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == one_line(text) == shown
    assert printable(shown) == shown


def test_line_ends_stay_unless_one_line_is_wanted() -> None:
    assert printable("a\nb\x00") == "a\nb\\x00"
    assert one_line("a\nb\x00") == r"a\nb\x00"
