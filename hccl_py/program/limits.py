"""Limits of programs, for all that builds or reads them."""

LIMIT = 2**62 - 1
"""The largest offset, length or count: the sum of two of them still fits 64 bits."""

MAX_RANKS = 1 << 16
MAX_NUMBER = (1 << 15) - 1
"""The first stream number and notify index that is refused (the columns have 16 bits)."""

MAX_BUFFERS = 127
MAX_QUEUES = 1 << 22
"""Ranks times streams."""

MAX_CELLS = 1 << 24
"""Notify cells of all transports, of which every end has as many as the end that has most, or of
the local notifies of all ranks.
"""

MAX_NAMES = 128
"""Names of notifies."""

MAX_SLOTS = 1 << 17
"""Local notifies of one rank."""

MAX_ROUND = 2**31 - 2
"""The largest number of a round."""
