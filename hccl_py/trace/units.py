"""Bytes, microseconds and runs of numbers as people read them."""

from collections.abc import Sequence


def format_size(size: int) -> str:
    """Return bytes as `256K` where that is exact."""
    for suffix, unit in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)


def format_time(microseconds: float) -> str:
    """Return microseconds with as many decimals as seven columns leave room for."""
    if 0 < microseconds < 0.005:
        return f"{microseconds:.1g}"
    decimals = 2 if microseconds < 1e4 else 1 if microseconds < 1e5 else 0
    return f"{microseconds:.{decimals}f}"


def format_share(share: float) -> str:
    """Return a share as `9 %`, below 10 % with one decimal where it has one."""
    return f"{round(100 * share, 1 if share < 0.1 else 0):g} %"


def runs_of_numbers(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last number of every run in sorted numbers: 0, 2, 3 are two runs."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def format_run(first: int, last: int) -> str:
    """Return `3` or `0-7`."""
    return str(first) if first == last else f"{first}-{last}"
