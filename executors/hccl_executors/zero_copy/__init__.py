"""Rings of Atlas A3 on user memory that all ranks have registered: nothing is staged in a server.

base.py        what the eight executors share: conditions, links, rounds, rings in a server
exchange.py    ranks of a superpod, or of all, hand data to the rank that it belongs to
slots.py       all-gather and reduce-scatter, with an exchange or without
pipelines.py   the same two over several superpods, the next block on its way meanwhile
whole.py       all-reduce and broadcast
"""
