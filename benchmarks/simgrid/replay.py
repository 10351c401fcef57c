"""Replay an exported program with SimGrid's actors; runs where SimGrid's Python module is.

    /usr/bin/python3 benchmarks/simgrid/replay.py CASE.json

Knows nothing of hccl_py but the file that cases.py writes. Streams and RDMA connections are actors,
posts are semaphores with a time, data is a communication between two hosts that exist for its route
only. One of SimGrid's seconds stands for a microsecond here, so that its absolute precisions
(1e-5) are far below the times that matter.

Prints the end of the simulated time in microseconds, and the seconds that SimGrid took for it.
"""

import json
import sys
import time
from collections import deque

from simgrid import Actor, Comm, Engine, Link, LinkInRoute, NetZone, Semaphore, this_actor

# Without these, SimGrid models TCP: latencies count 13 times, 3 % of the bandwidth are headers,
# windows bound rates, acknowledgements load the way back, and shares go by round-trip times.
# Links have no latency at all here, because CM02 weighs shares by it: without, it is plain max-min.
NEUTRAL = {
    "network/model": "CM02",
    "network/latency-factor": "1",
    "network/bandwidth-factor": "1",
    "network/TCP-gamma": "0",
    "network/weight-S": "0",
    "network/crosstraffic": "0",
}


class Replay:
    """One exported program on one platform."""

    def __init__(self, case: dict, zone: NetZone) -> None:
        self.case = case
        self.links = [self._link(zone, *numbered) for numbered in enumerate(case["links"])]
        self.ends = [self._route(zone, number) for number in range(len(case["routes"]))]
        zone.seal()
        self.is_set: dict[int, Semaphore] = {}
        self.set_at: dict[int, float] = {}
        self.sent: dict[int, deque] = {}
        self.filled: dict[int, Semaphore] = {}
        self.last = 0.0

    def _route(self, zone: NetZone, number: int) -> tuple:
        """Make two hosts and the way between them, one link of which bounds every flow's rate."""
        rate, numbers = self.case["routes"][number]
        bound = zone.create_link(f"bound{number}", [str(rate)])
        bound.set_sharing_policy(Link.SharingPolicy.FATPIPE, None)
        one, other = (zone.create_host(f"{side}{number}", 1e9) for side in ("from", "to"))
        links = [bound.set_latency(0).seal(), *(self.links[link] for link in numbers)]
        route = [LinkInRoute(link) for link in links]
        zone.add_route(one.netpoint, other.netpoint, None, None, route, False)
        return one, other

    @staticmethod
    def _link(zone: NetZone, number: int, rate: float) -> Link:
        return zone.create_link(f"link{number}", [str(rate)]).set_latency(0).seal()

    def start(self) -> None:
        """Make all actors; they begin when the engine runs."""
        host = self.ends[0][0]
        for place, number in enumerate(sorted({task[-1] for task in self._sent_tasks()})):
            self.sent[number], self.filled[number] = deque(), Semaphore(0)
            Actor.create(f"connection{place}", host, self.connection, number).daemonize()
        for number, tasks in enumerate(self.case["streams"]):
            Actor.create(f"stream{number}", host, self.stream, tasks)

    def _sent_tasks(self) -> list:
        tasks = [task for stream in self.case["streams"] for task in stream]
        return [task for task in tasks if task[0] in ("post", "write") and task[-1] >= 0]

    def stream(self, tasks: list) -> None:
        """Do the tasks of one stream in order."""
        for kind, *numbers in tasks:
            if kind == "wait":
                self.cell(numbers[0]).acquire()
                self.sleep_until(self.set_at[numbers[0]])
            elif kind == "post" and numbers[-1] < 0:
                self.set(numbers[0], Engine.clock + numbers[1])
            elif kind in ("post", "write"):
                self.sent[numbers[-1]].append((Engine.clock, kind, numbers))
                self.filled[numbers[-1]].release()
            elif kind == "delay":
                this_actor.sleep_for(numbers[0])
            else:
                self.move(*numbers)
        self.last = max(self.last, Engine.clock)

    def connection(self, number: int) -> None:
        """Deliver what is sent on one RDMA connection, in the order of its issue."""
        busy = 0.0
        while True:
            self.filled[number].acquire()
            issued, kind, numbers = self.sent[number].popleft()
            if kind == "post":
                self.set(numbers[0], max(busy, issued) + numbers[1])
            else:
                self.sleep_until(busy)
                self.move(*numbers[:-1])
                busy = Engine.clock
            self.last = max(self.last, busy)

    def move(self, size: int | list[int], route: int | list[int]) -> None:
        """Move bytes over a route, or parts of them over several."""
        pairs = [(size, route)] if isinstance(size, int) else zip(size, route, strict=True)
        parts = [Comm.sendto_async(*self.ends[way], part) for part, way in pairs]
        for part in parts:
            part.wait()

    def cell(self, post: int) -> Semaphore:
        """Return the semaphore of one post and its wait."""
        return self.is_set.setdefault(post, Semaphore(0))

    def set(self, post: int, at: float) -> None:
        """Let a post take effect at a time to come."""
        self.set_at[post] = at
        self.last = max(self.last, at)
        self.cell(post).release()

    @staticmethod
    def sleep_until(at: float) -> None:
        if at > Engine.clock:
            this_actor.sleep_until(at)


def main() -> None:
    """Replay one file."""
    with open(sys.argv[1], encoding="utf-8") as file:
        case = json.load(file)
    settings = [f"--cfg={name}:{value}" for name, value in NEUTRAL.items()]
    engine = Engine(["replay", "--log=root.thresh:warning", *settings])
    zone = NetZone.create_full_zone("all")
    replay = Replay(case, zone)
    replay.start()
    begin = time.perf_counter()
    engine.run()
    seconds = time.perf_counter() - begin
    print(json.dumps({"end_us": max(replay.last, 0.0), "seconds": seconds}))


if __name__ == "__main__":
    main()
