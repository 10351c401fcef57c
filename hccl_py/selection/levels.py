"""HCCL's choice of the algorithms between servers (level1) and between superpods (level2).

In this order, as HCCL's code does it: what is configured for an op when a communicator is made
(one ring through all ranks where servers or superpods differ, AHC where the op joins them, what
HCCL_ALGO says, a default by the number of modules); what the op makes of it at once (broadcast,
reduce, scatter); then, for some ops of 910B in op-base mode, the pipeline or the cheapest by a cost
formula. Rows of the decision tables may take another algorithm after that.

Releases differ in the numbers of `LevelRules`. Sources: `alg_configurator.cc`, the constructors of
the operators, and `coll_alg_operator.cc` of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Mode
from hccl_py.selection.shape import WHOLE_RING, TopologyShape

KIB, MIB = 1 << 10, 1 << 20

RING, HD, NHR, NHR_V1, NB = "ring", "H-D_R", "NHR", "NHR_V1", "NB"
AHC, AHC_BROKE, PIPELINE, PAIRWISE = "AHC", "AHC_BROKE", "pipeline", "pairwise"

MOST_IN_RING = 3
"""Modules of which a ring has no more steps than NHR: 1 of 2, 2 of 3."""

PIPELINE_MIN = {
    "all_gather": (32 * KIB, 2 * MIB),
    "all_gather_v": (32 * KIB, 2 * MIB),
    "reduce_scatter": (32 * KIB, 2 * MIB),
    "all_reduce": (MIB, 2 * MIB),
}
"""Bytes from which the pipeline pays, with RDMA-lite and without: all_reduce per slice, the others
per rank. These are the ops with a choice per call.
"""

PIPELINE_MIN_FIXED = {"reduce_scatter": 256 * KIB, "all_reduce": MIB}
"""Bytes from which a deterministic pipeline pays, with RDMA-lite and without."""

SETTABLE = (RING, HD, NHR, NHR_V1, NB, AHC, AHC_BROKE, PIPELINE)
"""Words of HCCL_ALGO that set level1; HCCL takes the others for none."""

_CONSTRUCTORS = {
    "broadcast": ((NHR, NHR_V1, NB), HD),
    "scatter": ((NHR, NB, RING), RING),
    "reduce": ((RING, HD, AHC, AHC_BROKE), HD),
}
"""Algorithms that an op keeps when they are configured, on every device, and the one for others."""

_UNSET = ("", "NA", "null", "fullmesh")
_POINT_TO_POINT = ("send_recv", "batch_send_recv")


@dataclass(frozen=True)
class LevelRules:
    """The rules of a release for levels.

    `ahc_ops` take AHC, and join superpods with different numbers of servers by it; groups whose
    sizes differ by less than `ahc_tolerance` of the smallest are alike. `cuts_pods`: superpods are
    cut to equal ones where no setting asks for AHC. `rings_uneven` are the ops that keep A3's
    servers as they are where these differ, but superpods do not. `automatic` are the ops of 910B
    with a choice per call; `fixed_pipelines` has them pipe deterministic sums. `pipelined` are the
    devices that take pipeline for level1. `level2` is the default between superpods, by their
    number where it is empty. `joins_exchange`: a setting counts for all-to-all between superpods
    that differ. `keeps_ring`: broadcast leaves one ring through all ranks as it is.
    """

    ahc_ops: tuple[str, ...]
    automatic: tuple[str, ...]
    pipelined: tuple[str, ...]
    ahc_tolerance: Fraction = Fraction(0)
    rings_uneven: tuple[str, ...] = ()
    level2: str = ""
    cuts_pods: bool = False
    fixed_pipelines: bool = False
    joins_exchange: bool = False
    keeps_ring: bool = False


@dataclass(frozen=True)
class SumDemand:
    """A call's demands on sums: links can do its reduction (`reducible`), HCCL_DETERMINISTIC, and
    whether vector cores take it (`aiv`), which keeps an all_reduce from the pipeline.
    """

    reducible: bool
    deterministic: str
    aiv: bool


@dataclass(frozen=True)
class Levels:
    """Algorithms in HCCL_ALGO's words; `level2` is empty with one superpod.

    `early` is level1 before the op looks at the call: rows that HCCL decides before that report it.
    `refusal` is HCCL's reason to fail, before it looks at any row. `why1` and `why2` say why level1
    and level2 are what they are.
    """

    level0: str
    level1: str
    early: str
    level2: str
    notes: tuple[str, ...] = ()
    refusal: str = ""
    why1: str = ""
    why2: str = ""


@dataclass(frozen=True)
class _Configured:
    """The algorithms of an op when the communicator is made. `automatic`: level1 is not set;
    `forced`: all ranks are one ring, HCCL_ALGO notwithstanding.
    """

    level0: str
    level1: str
    level2: str = RING
    automatic: bool = False
    forced: bool = False
    note: str = ""
    why1: str = ""
    why2: str = ""

    @property
    def refusal(self) -> str:
        """The reason why HCCL would fail; empty if it would not."""
        if (self.level0, self.level1) == (WHOLE_RING, HD):
            return "level1:H-D_R needs servers: all ranks are one ring here"
        return ""


def choose_levels(
    op: OpParam,
    shape: TopologyShape,
    given: Mapping[str, str],
    others: Mapping[str, str],
    demand: SumDemand,
    rules: LevelRules,
) -> Levels:
    """Choose the algorithms of one call. `given` is HCCL_ALGO's setting for the op, `others` the
    one for ops that it does not name.
    """
    found = _configured(op.name, op.mode, shape, given, rules)
    communicator = _configured("", op.mode, shape, others, rules)
    refusal = found.refusal or communicator.refusal
    if shape.bad_cards and given.get("level0") != "null":
        refusal = f"HCCL has no algorithm for {shape.devices} PCIe cards in a server"
    if op.name in _POINT_TO_POINT:
        why = "messages between two ranks take no algorithm"
        return Levels(found.level0, RING, RING, "", refusal=refusal, why1=why)
    notes = [found.note] if found.note else []
    early, why = _constructed(op.name, found, rules)
    if early != found.level1 and given.get("level1") == found.level1:
        notes.append(f"HCCL_ALGO's level1:{found.level1} is none of {op.name}'s: {early} runs")
    level1, adapted = _adapted(op, shape, found, early, demand, rules, notes)
    level2, why2 = (found.level2, found.why2) if shape.superpods > 1 else ("", "")
    said = tuple(notes)
    return Levels(found.level0, level1, early, level2, said, refusal, adapted or why, why2)


def _configured(
    op: str, mode: Mode, shape: TopologyShape, given: Mapping[str, str], rules: LevelRules
) -> _Configured:
    """Return the algorithms that HCCL's AlgConfigurator sets for an op, or, without a name, for the
    communicator.
    """
    if shape.device == "310P3":
        why = "HCCL joins all ranks of 310P3 in one ring"
        return _Configured(WHOLE_RING, RING, forced=True, why1=why)
    is_flat = given.get("level0") == "null"
    level0 = "null" if is_flat else shape.links
    if shape.uneven_pods and not shape.uneven_servers:
        if op in rules.ahc_ops or not op:
            note = _ignored(given.get("level1", ""), AHC, "servers")
            why = "AHC joins superpods with different numbers of servers"
            return _Configured(level0, AHC, note=note, why1=why)
        if rules.joins_exchange and op in ALL_TO_ALL and shape.device == "910_93":
            if not given.get("level0") and not given.get("level1"):
                why = "superpods that differ make all ranks one ring"
                return _Configured(WHOLE_RING, RING, forced=True, why1=why)
            return _set_by(op, mode, shape, given, level0, rules)
    if _is_one_ring(op, shape, rules) and not is_flat:
        sizes = "servers" if not shape.uneven_servers else "devices"
        note = _ignored(given.get("level1", ""), RING, sizes)
        why = f"different numbers of {sizes} make all ranks one ring"
        return _Configured(WHOLE_RING, RING, forced=True, note=note, why1=why)
    return _set_by(op, mode, shape, given, level0, rules)


def _ignored(word: str, runs: str, sizes: str) -> str:
    if word in (*_UNSET, runs):
        return ""
    return f"different numbers of {sizes}: level1 is {runs}, regardless of HCCL_ALGO"


def _is_one_ring(op: str, shape: TopologyShape, rules: LevelRules) -> bool:
    """Return True if asymmetry makes all ranks one ring, unless HCCL_ALGO has level0:null."""
    if not shape.uneven_servers:
        return shape.uneven_pods
    keeps = op in rules.rings_uneven and shape.device == "910_93"
    return not (keeps and not shape.uneven_pod_devices)


def _set_by(
    op: str,
    mode: Mode,
    shape: TopologyShape,
    given: Mapping[str, str],
    level0: str,
    rules: LevelRules,
) -> _Configured:
    """Return the algorithms of HCCL_ALGO, or the defaults."""
    word = given.get("level1", "")
    level2 = given.get("level2", "")
    why2 = f"HCCL_ALGO asks for {level2}"
    if level2 not in (RING, HD, NHR, NB):
        by_number = f"the default for {_why_by_number(shape.superpods, 'superpod')}"
        why2 = f"{rules.level2} is the release's default" if rules.level2 else by_number
        level2 = rules.level2 or _by_number(shape.superpods)
    reason = _against(word, op, mode, shape, rules)
    if word in SETTABLE and not reason:
        asked = f"HCCL_ALGO asks for {word}"
        return _Configured(level0, word, level2, why1=asked, why2=why2)
    default = _by_number(shape.modules)
    why1 = f"the default for {_why_by_number(shape.modules, 'server')}"
    if default == HD and shape.device == "910_93":
        default = NHR
        why1 += ", where 910_93 takes NHR in place of H-D_R"
    is_automatic = shape.device == "910B"
    return _Configured(level0, default, level2, is_automatic, note=reason, why1=why1, why2=why2)


def _against(word: str, op: str, mode: Mode, shape: TopologyShape, rules: LevelRules) -> str:
    """Return the reason why HCCL ignores a setting; empty if it does not."""
    joins = word in (AHC, AHC_BROKE) and op and op not in rules.ahc_ops
    pipes = word == PIPELINE and shape.device not in rules.pipelined
    why = f"on {shape.device}" if joins or pipes else ""
    if word == PIPELINE and mode is Mode.GRAPH:
        why = why or "in graph mode"
    if not why:
        return ""
    name = f"{op}'s" if op else "the communicator's"
    return f"HCCL_ALGO's level1:{word} is none of {name} {why}: HCCL chooses as without it"


def _constructed(op: str, found: _Configured, rules: LevelRules) -> tuple[str, str]:
    """Return the op's algorithm for the configured one, before it knows the call, and why."""
    if op not in _CONSTRUCTORS:
        return found.level1, found.why1
    if op == "broadcast" and found.forced and rules.keeps_ring:
        return RING, found.why1
    kept, otherwise = _CONSTRUCTORS[op]
    if found.level1 in kept:
        return found.level1, found.why1
    return otherwise, f"{op} takes {otherwise} in place of all but {', '.join(kept)}"


def _adapted(
    op: OpParam,
    shape: TopologyShape,
    found: _Configured,
    level1: str,
    demand: SumDemand,
    rules: LevelRules,
    notes: list[str],
) -> tuple[str, str]:
    """Return the op's algorithm once it knows the call, and why where the call decides."""
    why = ""
    several = shape.device == "910B" and not shape.single_mesh
    if several and found.automatic and op.mode is Mode.OP_BASE and op.name in rules.automatic:
        pays = _pays_to_pipeline(op, shape, found.level0, demand, rules)
        level1 = PIPELINE if pays else _cheapest(shape.modules)
        why = _why_automatic(op, shape, level1, demand)
    if level1 == AHC and op.name in rules.ahc_ops and shape.device != "910A":
        form = _ahc_form(op.name, shape, found.level0, rules)
        return form, f"{found.why1}, and groups here have that form" if form == AHC_BROKE else why
    contexts = pipeline_contexts(op.name, shape, demand, rules)
    if level1 == PIPELINE and op.name in PIPELINE_MIN and contexts > shape.contexts:
        instead = NHR if op.name == "all_gather_v" else HD
        why = f"the pipeline would take {contexts} FFTS contexts of {shape.contexts}"
        notes.append(f"{why}: level1 becomes {instead}")
        return instead, why
    return level1, why


def _ahc_form(op: str, shape: TopologyShape, level0: str, rules: LevelRules) -> str:
    """Return AHC, or AHC_BROKE where groups can be cut to equal ones.

    Groups are superpods of servers, or of devices where level0 is null; on 910B servers of devices.
    """
    if rules.cuts_pods and shape.uneven_servers:
        return AHC
    if shape.device == "910B":
        sizes = shape.server_devices
    else:
        sizes = shape.pod_devices if level0 == "null" else shape.pod_servers
    if rules.cuts_pods and op != "all_reduce" and shape.devices > 1:
        return AHC_BROKE
    least = min(sizes)
    alike = all(size % least == 0 for size in sizes)
    return AHC_BROKE if alike or max(sizes) - least < rules.ahc_tolerance * least else AHC


def _by_number(groups: int) -> str:
    power = groups > 1 and groups & (groups - 1) == 0
    return HD if groups >= 8 or power else RING


def _why_by_number(groups: int, noun: str) -> str:
    """Return the reason for `_by_number`'s answer, which it follows clause by clause."""
    some = f"{groups} {noun}" if groups == 1 else f"{groups} {noun}s"
    if groups >= 8:
        return f"{some}, 8 or more"
    return f"{some}, a power of two" if _by_number(groups) == HD else f"{some}, fewer than 8"


def pipeline_contexts(op: str, shape: TopologyShape, demand: SumDemand, rules: LevelRules) -> int:
    """Return the FFTS contexts of a pipeline; they do not depend on the data."""
    copies = 1 + shape.modules if op in ALL_TO_ALL else 1
    sums = rules.fixed_pipelines and demand.deterministic == "true"
    adds = sums and op in PIPELINE_MIN_FIXED
    each = 5 * (shape.devices - 1) + 7 + 1 + (shape.devices - 1 if adds else 0)
    contexts = shape.modules * each + 4 + copies
    if op == "all_reduce":
        contexts *= 2
    return contexts + (shape.modules - 1 if adds else 0)


def _pays_to_pipeline(
    op: OpParam, shape: TopologyShape, level0: str, demand: SumDemand, rules: LevelRules
) -> bool:
    least = pipeline_least(op, shape, demand)
    if level0 != "mesh" or shape.devices == 1 or (op.name == "all_reduce" and demand.aiv):
        return False
    if op.reduce is not None:
        if not demand.reducible or demand.deterministic == "strict":
            return False
        if demand.deterministic == "true" and not rules.fixed_pipelines:
            return False
    if pipeline_contexts(op.name, shape, demand, rules) > shape.contexts:
        return False
    return op.extent * op.unit >= least


def pipeline_least(op: OpParam, shape: TopologyShape, demand: SumDemand) -> int:
    """Return the bytes from which a pipeline pays."""
    lite, plain = PIPELINE_MIN[op.name]
    least = lite if shape.rdma_lite else plain
    if op.reduce is not None and demand.deterministic == "true" and op.name in PIPELINE_MIN_FIXED:
        fixed = PIPELINE_MIN_FIXED[op.name]
        least = fixed if op.name == "all_reduce" else max(least, fixed)
    return least * (shape.modules * shape.devices if op.name == "all_reduce" else 1)


def _why_automatic(op: OpParam, shape: TopologyShape, level1: str, demand: SumDemand) -> str:
    """Return the reason for the pipeline, or for the cheapest by HCCL's formulas."""
    size, least = op.extent * op.unit, pipeline_least(op, shape, demand)
    if level1 == PIPELINE:
        return f"{size} bytes are {least} or more, from which the pipeline pays"
    below = f"; the pipeline pays from {least} bytes on" if size < least else ""
    return f"the cheapest by HCCL's formulas for {shape.modules} servers{below}"


def _cheapest(modules: int) -> str:
    """Return the fastest algorithm by HCCL's formulas; of equals ring first, then NHR, then H-D.

    All move the same share of the data. Ring takes modules - 1 steps, NHR and H-D the logarithm,
    rounded up, and H-D moves more where modules are no power of two: so it never wins, and ring
    does where NHR has as many steps. Neither sizes nor rates matter.
    """
    return RING if modules <= MOST_IN_RING else NHR
