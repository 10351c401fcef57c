"""All-gathers by notifies that count, as somebody may write them: many are right, some are not."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hccl_py.formats import from_json
from hccl_py.program.program import Program

CHUNK = 4


def all_gather(random: Random) -> Program:
    """Every rank writes its input into SCRATCH of the others, chunk by chunk, and posts after each;
    whoever receives waits once for each chunk, takes it to OUT and gives credit back.

    Drawn: ranks, chunks, links, on which streams peers are served, whether a peer gets a credit for
    every chunk or for all at once, whether that comes before a chunk is taken, whether SCRATCH
    alternates, and small mistakes.
    """
    ranks, chunks = random.randint(2, 3), random.randint(1, 3)
    size = chunks * CHUNK
    on_subs, is_early = random.random() < 0.5, random.random() < 0.3
    every, alternates = random.random() < 0.5, random.random() < 0.5
    tasks: dict[str, dict[str, list[Any]]] = {}
    for rank in range(ranks):
        main: list[Any] = [["copy", ["IN", 0, size], ["OUT", rank * size, size]]]
        streams: dict[str, list[Any]] = {"0": main}
        peers = [peer for peer in range(ranks) if peer != rank]
        random.shuffle(peers)
        for peer in peers:
            for chunk in range(chunks):
                at = chunk * CHUNK
                there = ["SCRATCH", rank * size + at, CHUNK]
                main += [["write", peer, ["IN", at, CHUNK], there], ["post", peer, 0]]
        for number, peer in enumerate(peers, 1):
            served = _taken(peer, chunks, every, is_early)
            if on_subs:
                main.append(["local_post", number, 0])
                streams[str(number)] = [["local_wait", 0], *served, ["local_post", 0, 0]]
            else:
                main += served
        main += [["local_wait", 0]] * (len(peers) if on_subs else 0)
        for peer in peers:
            main += [["wait", peer, 1]] * (chunks if every else 1)
        if random.random() < 0.15:
            _mistake(random, random.choice(list(streams.values())))
        tasks[str(rank)] = streams
    sizes = {"IN": size, "OUT": ranks * size, "SCRATCH": ranks * size}
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": size},
        "ranks": ranks,
        "notifies": "counting",
        "alternating": ["SCRATCH"] if alternates else [],
        "link": random.choice(("sdma", "rdma")),
        "exported": ["SCRATCH"],
        "buffers": {str(rank): sizes for rank in range(ranks)},
        "tasks": tasks,
    }
    return from_json(json.dumps(document))


def _taken(peer: int, chunks: int, every: bool, is_early: bool) -> list[Any]:
    """Return what receives the chunks of a peer."""
    size = chunks * CHUNK
    found: list[Any] = []
    for chunk in range(chunks):
        at = peer * size + chunk * CHUNK
        take = ["copy", ["SCRATCH", at, CHUNK], ["OUT", at, CHUNK]]
        credit = [["post", peer, 1]] if every or chunk == chunks - 1 else []
        found += [["wait", peer, 0], *(credit if is_early else []), take]
        found += [] if is_early else credit
    return found


def _mistake(random: Random, listed: list[Any]) -> None:
    """Leave a task out, or let two change places."""
    at = random.randrange(len(listed))
    if random.random() < 0.3:
        del listed[at]
    else:
        other = (at + 1) % len(listed)
        listed[at], listed[other] = listed[other], listed[at]


def delayed(ranks: int = 2) -> Program:
    """Every rank hands on what SCRATCH has held since the call in which it was last used, then puts
    its input there. It reads what nobody has written: only who runs it knows what that is.
    """
    tasks = [["copy", ["SCRATCH", 0, CHUNK], ["OUT", 0, CHUNK]]]
    tasks.append(["copy", ["IN", 0, CHUNK], ["SCRATCH", 0, CHUNK]])
    sizes = {"IN": CHUNK, "OUT": ranks * CHUNK, "SCRATCH": CHUNK}
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": CHUNK},
        "ranks": ranks,
        "alternating": ["SCRATCH"],
        "buffers": {str(rank): sizes for rank in range(ranks)},
        "tasks": {str(rank): {"0": tasks} for rank in range(ranks)},
    }
    return from_json(json.dumps(document))
