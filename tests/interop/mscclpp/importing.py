"""Plans that tests write, imported and verified; and operations of them by name."""

from hccl_interop.mscclpp import import_plan, meaning_of, plan_from
from hccl_py.importers import Imported
from hccl_py.verifier import Options, Report
from tests.interop.mscclpp.plans import Block, Op, PlanText


def imported(plan: PlanText, size: int = 1 << 10, op: str | None = None) -> Imported:
    found = plan_from(plan.text().encode(), "own.json")
    return import_plan(found, meaning_of(found, op), size)


def checked(plan: PlanText, size: int = 1 << 10, repeat: int = 2) -> Report:
    return imported(plan, size).report(Options(repeat=repeat))


def named(block: Block, name: str, turn: int = 0) -> Op:
    return [op for op in block.ops if op["name"] == name][turn]


def pipelined(block: Block) -> list[Op]:
    found: list[Op] = named(block, "pipeline")["ops"]
    return found


def place(block: Block, op: Op) -> int:
    return next(number for number, other in enumerate(block.ops) if other is op)
