"""An executor of posts and waits, for tests."""

from typing import Any

from hccl_py.plugins.executor import PlaneRequest, ResourceRequest


class Notifies:
    """Posts and waits as a test says: pairs of (verb, name)."""

    op = "all_gather"
    algorithm = "level0:ring"

    def __init__(self, *steps: str) -> None:
        self.steps = steps

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "ring"),), sub_streams=1)

    def orchestrate(self, op: Any, rank: Any) -> None:
        for step in self.steps:
            if step in ("post", "wait"):
                getattr(rank.subs[0] if step == "wait" else rank.main, step)(rank.notifies[1])
            else:
                getattr(rank.flat.right if step.startswith("tx") else rank.flat.left, step)(
                    rank.main
                )
