"""The reports of `hccl-py numerics`: text with a drawn tree, one JSON document, a page, a check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hccl_py.cli.call import describe_topology, document_of_call
from hccl_py.cli.numerics_calls import Answer, BitsOfTwo, OneCall
from hccl_py.cli.numerics_options import Shown
from hccl_py.cli.output import Screen, counted, facts, print_json, table
from hccl_py.cli.streams import say
from hccl_py.documents.disk import check_place, write_file
from hccl_py.documents.kind import PAGE
from hccl_py.language import translated
from hccl_py.numerics.bit_witness import BitWitness
from hccl_py.numerics.certificates import CERTIFICATE, CertificateCheck
from hccl_py.numerics.cures import Cure
from hccl_py.numerics.sameness import Bits
from hccl_py.numerics.size_classes import SizeClass
from hccl_py.numerics.sum_trees import SumTree
from hccl_py.numerics.tree_page import TreesOfCalls, numerics_page
from hccl_py.numerics.tree_text import draw_tree
from hccl_py.trace.units import format_size, format_time

if TYPE_CHECKING:
    from rich.table import Table

    from hccl_py.cli.options import Output

_VERDICTS = {
    Bits.SAME: "the bits are the same, for all inputs",
    Bits.DIFFER: "the bits differ",
    Bits.OPEN: "the bits are not fixed",
    Bits.UNKNOWN: "not proved, and not shown to differ",
}
_CURES_SHOWN = 4


def write_files(answer: Answer, show: Shown) -> None:
    """Write the certificate and the page, where they are asked for."""
    for path, kind in ((show.certificate, CERTIFICATE), (show.html, PAGE)):
        if path is not None:
            check_place(path, kind)
    if show.certificate is not None:
        answer.certificate().write(show.certificate)
    if show.html is not None:
        calls: list[TreesOfCalls] = [(c.name, c.trees.trees, c.trees) for c in answer.calls]
        calls += [(one.executor, one.trees, None) for one in answer.classes]
        text = "\n".join(map(translated, _plain(answer)))
        page = numerics_page(translated(_title(answer)), text, calls)
        write_file(show.html, page.encode(), PAGE)


def print_answer(answer: Answer, show: Shown, output: Output) -> None:
    """Print the answer, as text or as one JSON document."""
    if output.json:
        print_json(document_of(answer))
        return
    screen = Screen()
    say(_title(answer))
    say(describe_topology(answer.request.topology))
    for line in filter(None, [*answer.notes, answer.always]):
        say(line)
    if answer.classes:
        say()
        screen.show_whole(_class_table(answer))
    if answer.compared is not None:
        say()
        say(f"{_VERDICTS[answer.compared.verdict.bits]}: {answer.compared.verdict.reason}")
        screen.show(facts(_of_two(answer, answer.compared)))
    elif answer.calls:
        screen.show(facts(_of_call(answer.calls[0])))
    for name, tree in _drawn(answer, show):
        say()
        say(name)
        for line in draw_tree(tree, screen.console.width, unicode=screen.unicode):
            say(line)
    if answer.assumed:
        say()
        screen.show(facts([("assumed", answer.assumed)]))


def print_check(found: CertificateCheck, output: Output) -> None:
    """Print the outcome of a check."""
    was, now = found.rulesets
    if output.json:
        document = {"schema": "hccl-py.numerics-check/1", "holds": found.holds}
        lists = {"broken": list(found.broken), "notes": list(found.notes)}
        print_json(document | lists | {"ruleset_then": was, "ruleset_now": now})
        return
    place = was if was == now else f"{was}, proved again by {now}"
    say(f"{'the certificate holds' if found.holds else 'the certificate is broken'}: {place}")
    for line in (*found.broken, *found.notes):
        say(f"  {line}")


def document_of(answer: Answer) -> dict[str, Any]:
    """Return the JSON document."""
    request = answer.request
    op = request.op(request.minbytes)
    return {
        "schema": "hccl-py.numerics/1",
        **document_of_call(request, op),
        "ruleset": request.comm.config.ruleset,
        "notes": list(answer.notes),
        "always_same": answer.always or None,
        "ranges": [_class_document(one, answer.step_bytes) for one in answer.classes],
        "calls": [_call_document(call) for call in answer.calls],
        "compared": None if answer.compared is None else _compared_document(answer.compared),
        "assumed": list(answer.assumed),
    }


def _title(answer: Answer) -> str:
    request = answer.request
    if answer.calls:
        return request.describe(answer.calls[0].plan.op)
    op = request.op(request.minbytes)
    return f"{op.name}{f' {op.reduce.spelling}' if op.reduce else ''}, {op.dtype.value}, all sizes"


def _plain(answer: Answer) -> Iterator[str]:
    """Yield the lines of the answer for a page."""
    yield describe_topology(answer.request.topology)
    yield from filter(None, [*answer.notes, answer.always])
    for one in answer.classes:
        first, last = (format_size(n * answer.step_bytes) for n in (one.first, one.last))
        trees, order = f"trees: {_count(one)}", f"order: {_order(one.is_fixed)}"
        yield f"{first} to {last} bytes: {one.executor}; {trees}; {order}"
    if answer.compared is not None:
        yield f"{_VERDICTS[answer.compared.verdict.bits]}: {answer.compared.verdict.reason}"
        for name, lines in _of_two(answer, answer.compared):
            yield from (f"{name}: {line}" for line in lines)
    yield from (f"assumed: {line}" for line in answer.assumed)


def _class_table(answer: Answer) -> Table:
    shown = table("from bytes", "to", left=("executor",))
    shown.add_column("trees", justify="right", no_wrap=True)
    shown.add_column("order", no_wrap=True)
    shown.add_column("first tree", no_wrap=True)
    for one in answer.classes:
        first, last = (format_size(n * answer.step_bytes) for n in (one.first, one.last))
        order, tree = _order(one.is_fixed), one.trees[0].short if one.trees else ""
        shown.add_row(first, last, one.executor, _count(one), order, tree)
    return shown


def _count(one: SizeClass) -> str:
    return str(one.most) if one.least == one.most else f"{one.least} to {one.most}"


def _order(is_fixed: bool) -> str:
    return "fixed" if is_fixed else "of arrival"


def _of_call(call: OneCall) -> Iterator[tuple[str, list[str]]]:
    trees = call.trees
    yield "runs", [call.request.describe_executor(call.plan.selection)]
    yield "trees", [f"{counted(len(trees.trees), 'tree')} in {counted(trees.rounds, 'round')}"]
    if trees.is_fixed:
        yield "order", ["fixed: every run gives the same bits"]
    else:
        open_ones = sum(not tree.is_fixed for tree in trees.trees)
        yield "order", [f"of arrival in {counted(open_ones, 'tree')}: two runs may differ"]
    if trees.op.name == "all_reduce" and trees.is_fixed:
        yield "ranks", ["all have the same bits" if trees.agrees else "have different trees"]


def _of_two(answer: Answer, two: BitsOfTwo) -> Iterator[tuple[str, list[str]]]:
    for name, call in zip(("one", "other"), answer.calls, strict=True):
        trees = counted(len(call.trees.trees), "tree")
        yield name, [f"{call.name}, {trees}, {_order(call.trees.is_fixed)}"]
    if two.verdict.bits is Bits.SAME:
        return
    if two.share:
        share = f"{100 * two.share:.1f} % of the same elements differ on random data"
        yield "share", [f"{share} (normal distribution, by the trees)"]
    yield "input", _witness_lines(two.witness)
    if two.boundary is not None:
        yield "boundary", [_boundary(answer.calls[0], two)]
    yield "cures", list(_cure_lines(two.cures))


def _witness_lines(found: BitWitness | None) -> list[str]:
    if found is None:
        return ["the trees differ on values that were not run: the call takes too much memory"]
    values = [f"rank {r}: {v:g}" for r, v in enumerate(found.inputs) if v]
    return [
        f"element {found.element} with {', '.join(values)}; all others 0",
        f"gives {found.one:g} ({found.bits[0]}) and {found.other:g} ({found.bits[1]}) at rank "
        f"{found.rank}, run on the emulator",
    ]


def _boundary(one: OneCall, two: BitsOfTwo) -> str:
    assert two.boundary is not None
    same, other = two.boundary
    rows = bool(one.shape) and two.step_bytes * one.shape[0] == one.bytes
    noun, size = ("rows", 1) if rows else ("bytes", two.step_bytes)
    side = "up to" if same < other else "down to"
    return (
        f"the bits are those of the first call {side} {same * size} {noun}, "
        f"and others from {other * size} {noun} on"
    )


def _cure_lines(cures: tuple[Cure, ...]) -> Iterator[str]:
    """Yield settings first, those that help and those that do not, then the cheapest executors."""
    settings = [cure for cure in cures if not cure.setting.startswith("executor")]
    executors = [cure for cure in cures if cure not in settings]
    for cure in settings:
        if cure.bits is Bits.SAME or cure.setting.startswith("HCCL_DETERMINISTIC"):
            yield _cure(cure)
    useless = [c for c in settings if c.setting.startswith("HCCL_ALGO") and c.bits is not Bits.SAME]
    if useless:
        yield f"HCCL_ALGO: {counted(len(useless), 'setting')} of level1 that do not help"
    helps = [cure for cure in executors if cure.bits is Bits.SAME]
    for cure in helps[:_CURES_SHOWN]:
        yield f"{_cure(cure)}; a study of executors: no setting of HCCL names one"
    if len(helps) > _CURES_SHOWN:
        yield f"{counted(len(helps) - _CURES_SHOWN, 'more executor')}: --json lists all"


def _cure(cure: Cure) -> str:
    if cure.bits is None:
        return f"{cure.setting}: {cure.problem}"
    if cure.bits is not Bits.SAME:
        return f"{cure.setting} does not help: {_VERDICTS[cure.bits]}"
    times = " + ".join(f"{format_time(time)} us" for time in cure.times_us)
    return f"{cure.setting}: the same bits in {times}, {cure.ratio:.2f} x the time of now (model)"


def _drawn(answer: Answer, show: Shown) -> Iterator[tuple[str, SumTree]]:
    """Yield the trees to draw: of the element of every call, or of the first class."""
    if answer.compared is not None and answer.compared.verdict.changed:
        pair = answer.compared.verdict.changed[0]
        yield f"element {pair.element} of rank {pair.rank}, one", pair.one
        yield f"element {pair.element} of rank {pair.rank}, other", pair.other
        return
    for call in answer.calls[:1]:
        tree = call.trees.of(show.rank, show.element)
        yield f"element {show.element} of rank {show.rank}", tree
    for one in answer.classes:
        if one.trees:
            yield f"{one.executor}: tree {one.trees[0].short}", one.trees[0]


def _class_document(one: SizeClass, step: int) -> dict[str, Any]:
    selection = one.selection
    return {
        "first_bytes": one.first * step,
        "last_bytes": one.last * step,
        "executor": selection.executor,
        "algorithm": dict(selection.algorithm),
        "hccl_executor": selection.hccl_executor,
        "is_fixed": one.is_fixed,
        "least_trees": one.least,
        "most_trees": one.most,
        "trees": [_tree_document(tree) for tree in one.trees],
    }


def _tree_document(tree: SumTree) -> dict[str, Any]:
    return {"digest": tree.digest.hex(), "formula": tree.formula(), "is_fixed": tree.is_fixed}


def _call_document(call: OneCall) -> dict[str, Any]:
    trees = call.trees
    columns = (trees.rank, trees.start, trees.stop, trees.tree)
    return {
        "bytes": call.bytes,
        "shape": list(call.shape),
        "count": call.plan.op.count,
        "executor": call.plan.selection.executor,
        "algorithm": dict(call.plan.selection.algorithm),
        "rounds": trees.rounds,
        "is_fixed": trees.is_fixed,
        "digest": trees.digest,
        "trees": [_tree_document(tree) for tree in trees.trees],
        "elements": [
            {"rank": rank, "first": start, "last": stop - 1, "tree": tree}
            for rank, start, stop, tree in zip(*(c.tolist() for c in columns), strict=True)
        ],
    }


def _compared_document(two: BitsOfTwo) -> dict[str, Any]:
    witness = two.witness
    return {
        "bits": two.verdict.bits.value,
        "reason": two.verdict.reason,
        "elements": two.verdict.elements,
        "share_differing": two.share,
        "witness": None if witness is None else vars(witness),
        "boundary_bytes": None
        if two.boundary is None
        else [count * two.step_bytes for count in two.boundary],
        "pairs": [
            {
                "one": pair.one.digest.hex(),
                "other": pair.other.digest.hex(),
                "elements": pair.elements,
                "rank": pair.rank,
                "element": pair.element,
                "bits": pair.bits.value,
            }
            for pair in two.verdict.pairs
        ],
        "cures": [
            {
                "setting": cure.setting,
                "bits": None if cure.bits is None else cure.bits.value,
                "executors": list(cure.executors),
                "times_us": list(cure.times_us),
                "ratio": cure.ratio,
                "problem": cure.problem or None,
            }
            for cure in two.cures
        ],
    }
