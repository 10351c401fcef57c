"""Bytes and microseconds as people read them."""


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
