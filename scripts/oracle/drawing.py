"""The calls that golden data has: a grid of HCCL's own choices, drawn settings, and special calls.

Each part yields cases in a fixed order; drawn ones depend on a seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from scripts.oracle.calls import Case, size_of

OPS = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "scatter"),
    *("all_to_all", "all_to_all_v", "all_to_all_vc", "all_gather_v", "reduce_scatter_v"),
    *("batch_send_recv", "send_recv"),
)
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "reduce_scatter_v")
ROOTED = ("broadcast", "reduce", "scatter")
PER_PEER = ("all_to_all", "all_to_all_v", "all_to_all_vc", "batch_send_recv")
OWN_COUNTS = ("all_gather_v", "reduce_scatter_v")
MODES = ("op_base", "graph")

Shape = tuple[int, int, int]
"""Superpods, servers of each, devices of each."""

_A2 = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 4), (2, 8), (3, 2), (3, 8), (4, 2), (4, 4))
_A3 = ((1, 2), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (3, 4), (4, 2))
_910A = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 4), (2, 8), (3, 8), (4, 4))
_DUO = ((1, 2), (1, 4), (1, 8), (2, 2), (2, 4))
SHAPES: dict[str, tuple[Shape, ...]] = {
    "910B": tuple((1, *shape) for shape in _A2),
    "910_93": (
        *((1, *shape) for shape in _A3),
        *((2, 1, 4), (2, 2, 4), (2, 1, 8), (2, 2, 2)),
    ),
    "910A": tuple((1, *shape) for shape in _910A),
    "310P3": tuple((1, *shape) for shape in _DUO),
}
ODD: dict[str, tuple[Shape, ...]] = {
    "910B": (
        (1, 1, 3),
        (1, 1, 5),
        (1, 1, 6),
        (1, 1, 7),
        (1, 2, 3),
        (1, 5, 1),
        (1, 8, 1),
        (1, 5, 2),
    ),
    "910_93": ((1, 1, 6), (1, 1, 12), (1, 2, 2), (1, 3, 2), (2, 1, 2), (3, 1, 4), (2, 1, 1)),
    "910A": ((1, 3, 4), (1, 4, 1), (1, 4, 8)),
    "310P3": ((1, 1, 1), (1, 1, 3), (1, 1, 6)),
}
"""Shapes whose sizes are no powers of two, or whose levels have one member."""

KB, MB = 1 << 10, 1 << 20
SIZES = (KB, 32 * KB, 128 * KB, 256 * KB, 256 * KB + 4, MB, MB + 4, 8 * MB, 8 * MB + 4, 64 * MB)
UNITS = {
    **dict.fromkeys(("fp32", "int32", "uint32"), 4),
    **dict.fromkeys(("fp16", "int16", "bfp16", "uint16"), 2),
    **dict.fromkeys(("int8", "uint8"), 1),
    **dict.fromkeys(("int64", "uint64", "fp64"), 8),
}
WORDS = (
    "",
    *(
        f"level0:NA;level1:{word}"
        for word in ("ring", "NHR", "NHR_V1", "NB", "H-D_R", "pipeline", "pairwise", "fullmesh")
    ),
    *("level0:NA;level1:AHC", "level0:NA;level1:AHC_BROKE"),
    *(
        f"level0:NA;level1:{one};level2:{two}"
        for one, two in (("NHR", "ring"), ("ring", "NB"), ("NHR", "NHR"), ("ring", "H-D_R"))
    ),
    *("level0:fullmesh;level1:ring", "level0:ring;level1:NHR", "level0:ring"),
    "allreduce=level0:NA;level1:NHR/others=level0:NA;level1:ring",
)


def _unit(dtype: str) -> int:
    return UNITS[dtype]


def make_case(op: str, device: str, shape: Shape | list[list[int]], size: int, **more: Any) -> Case:
    """Return a case of about `size` bytes: of a rank, or of all that a rank sends."""
    case: dict[str, Any] = {"op": op, "product": device}
    if isinstance(shape, tuple):
        case |= dict(zip(("pods", "servers", "devices"), shape, strict=True))
    else:
        case["topo"] = [[list(range(devices)) for devices in pod] for pod in shape]
    dtype = more.pop("dtype", "fp32")
    env = {key: more.pop(key) for key in list(more) if key.isupper()}
    ranks = size_of(case)
    count = max(1, size // _unit(dtype) // (ranks if op in (*PER_PEER, *OWN_COUNTS) else 1))
    case |= {"dtype": dtype, "mode": "op_base"}
    if op in OWN_COUNTS:
        case["counts"] = [count + 8 * (rank % 3) for rank in range(ranks)]
    else:
        case["count"] = count
    if op in REDUCING:
        case["reduce"] = "sum"
    if op in ROOTED:
        case["root"] = 0
    if device == "910_93":
        case["aicpu"] = True
    if env := {key: value for key, value in env.items() if value}:
        case["env"] = env
    case |= {key: value for key, value in more.items() if key not in ("reduce", "root")}
    if op in REDUCING:
        case["reduce"] = more.get("reduce", "sum")
    if op in ROOTED:
        case["root"] = more.get("root", 0) % ranks
    return case


def defaults() -> Iterator[Case]:
    """Yield every op on every shape, in both modes and two sizes, as HCCL chooses by itself."""
    for device, shapes in SHAPES.items():
        for shape, op in product(shapes, OPS):
            if op == "send_recv" and shape[0] * shape[1] * shape[2] != 2:
                continue
            for mode, size in product(MODES, (MB, 16 * KB)):
                yield make_case(op, device, shape, size, mode=mode)


def drawn(number: int, seed: int) -> Iterator[Case]:
    """Yield calls with settings, sizes, data types and shapes drawn from everything above."""
    rng = random.Random(seed)
    for _ in range(number):
        device = rng.choice(("910B", "910B", "910_93", "910_93", "910A", "310P3"))
        shape = rng.choice((*SHAPES[device], *ODD[device]))
        ranks = shape[0] * shape[1] * shape[2]
        buffer = rng.choice(("", "", "", "1", "8", "64"))
        most = {"": 300, "1": 4, "8": 32, "64": 64}[buffer] * MB // (2 if ranks > 16 else 1)
        size = rng.choice(
            [size for size in (*SIZES, 300 * MB, rng.randrange(1, 4 * MB)) if size <= most]
        )
        yield make_case(
            rng.choice(OPS[:-1]),
            device,
            shape,
            size,
            mode=rng.choice(("op_base", "op_base", "graph")),
            dtype=rng.choice(("fp32", "fp32", "fp16", "int8", "int32", "int64", "bfp16", "int16")),
            reduce=rng.choice(("sum", "sum", "sum", "max", "min", "prod")),
            root=rng.randrange(64),
            HCCL_ALGO=rng.choice(WORDS),
            HCCL_DETERMINISTIC=rng.choice(("", "", "", "true", "strict")),
            HCCL_BUFFSIZE=buffer,
        )


def special() -> Iterator[Case]:
    """Yield strict order, zero copy, uneven servers and superpods, and other machines."""
    yield from _strict()
    yield from _zero_copy()
    yield from _uneven()
    yield from _machines()


def _strict() -> Iterator[Case]:
    shapes: Sequence[tuple[str, list[list[int]]]] = (
        *(("910B", [servers]) for servers in ([4], [8], [4, 4], [8, 8])),
        *(("910_93", pods) for pods in ([[4]], [[8]], [[4, 4]], [[4], [4]])),
    )
    parts = product(("all_reduce", "reduce_scatter"), (16 * KB, 2 * MB, 64 * MB), MODES, shapes)
    for op, size, mode, (device, pods) in parts:
        yield make_case(op, device, pods, size, mode=mode, HCCL_DETERMINISTIC="strict")


def _zero_copy() -> Iterator[Case]:
    ops = ("all_gather", "reduce_scatter", "all_reduce", "broadcast")
    pods = ([[8]], [[16]], [[8, 8]], [[4, 4], [4, 4]], [[8], [8]], [[4]])
    for op, size, shape in product(ops, (64 * KB, 4 * MB, 64 * MB), pods):
        for words in ("", "level0:NA;level1:pipeline", "level0:NA;level1:ring"):
            yield make_case(op, "910_93", shape, size, zero_copy=True, HCCL_ALGO=words)


def _uneven() -> Iterator[Case]:
    pods = ([[4, 2]], [[8, 4]], [[3, 2, 1]], [[4, 4], [4]], [[4, 2], [4, 2]])
    for op, size, mode, shape in product(OPS[:6], (16 * KB, 2 * MB), MODES, pods):
        yield make_case(op, "910_93", shape, size, mode=mode, root=1)
        if len(shape) == 1:
            yield make_case(op, "910B", shape, size, mode=mode, root=1)
            yield make_case(op, "910A", shape, size, mode=mode, root=1)


def _machines() -> Iterator[Case]:
    a3 = ([[2]], [[4]], [[8]], [[8, 8]], [[4], [4]])
    for op, size, shape in product(
        ("all_reduce", "all_gather", "reduce_scatter", "reduce_scatter_v"), (64 * KB, 4 * MB), a3
    ):
        yield make_case(op, "910_93", shape, size, hccs_ports=0)
    a2 = product(
        ("all_reduce", "all_gather", "reduce_scatter", "all_gather_v"), (2 * MB, 32 * MB), MODES
    )
    for (op, size, mode), shape, sums in product(a2, ([[8]], [[4, 4]], [[8, 8]]), ("", "true")):
        yield make_case(op, "910B", shape, size, mode=mode, rdma_lite=True, HCCL_DETERMINISTIC=sums)
    for ranks, size, dtype, mode in product((2, 3, 4, 6), (KB, 2 * MB), ("fp16", "int8"), MODES):
        yield make_case("all_reduce", "310P3", [[ranks]], size, dtype=dtype, mode=mode)


FORCED: tuple[tuple[str, str, str, tuple[Shape, ...], tuple[str, ...]], ...] = (
    ("AllGatherMixExecutor", "all_gather", "910B", ((1, 2, 4), (1, 2, 8)), ("op_base",)),
    ("AllReduceMixExecutor", "all_reduce", "910B", ((1, 1, 4), (1, 2, 4), (1, 3, 2)), MODES),
    ("ReduceScatterMixExecutor", "reduce_scatter", "910B", ((1, 2, 4), (1, 2, 8)), MODES),
    ("BroadCastMixExecutor", "broadcast", "910B", ((1, 1, 4), (1, 2, 4)), MODES),
    ("AllGatherHccsSioExecutor", "all_gather", "910_93", ((1, 1, 2),), MODES),
    ("ReduceScatterHccsSioExecutor", "reduce_scatter", "910_93", ((1, 1, 2),), MODES),
    ("AllGatherPipelineFor91093Executor", "all_gather", "910_93", ((2, 1, 4),), ("op_base",)),
    (
        "AlignedAllReduceDoubleRingFor91093Executor",
        *("all_reduce", "910_93", ((1, 1, 4), (1, 1, 8), (1, 2, 4)), MODES),
    ),
    (
        "AlignedReduceScatterDoubleRingFor91093Executor",
        *("reduce_scatter", "910_93", ((1, 1, 4), (1, 1, 8), (1, 2, 4)), MODES),
    ),
    (
        "AllReduceMeshGraphPipelineExecutor",
        "all_reduce",
        "910B",
        ((1, 2, 4), (1, 3, 2)),
        ("graph",),
    ),
    ("BroadCastRingZerocopyExecutor", "broadcast", "910_93", ((1, 1, 2), (1, 2, 2)), ("op_base",)),
    (
        "ReduceScatterPipelineFor91093Executor",
        "reduce_scatter",
        "910_93",
        ((2, 1, 4),),
        ("op_base",),
    ),
    (
        "ReduceScatterVMeshOpbasePipelineExecutor",
        *("reduce_scatter_v", "910B", ((1, 2, 4), (1, 2, 8)), ("op_base",)),
    ),
    ("AllReduceReducePlusBcast", "all_reduce", "910A", ((1, 1, 4), (1, 2, 4)), MODES),
    ("BatchSendRecvGroup", "batch_send_recv", "910B", ((1, 1, 4), (1, 2, 4)), ("op_base",)),
    ("BatchSendRecvGroup", "batch_send_recv", "910_93", ((1, 1, 4), (2, 1, 4)), ("op_base",)),
    *(
        (name, op, "910_93", ((1, 1, 4), (1, 1, 8), (1, 2, 4), (2, 1, 4)), ("op_base",))
        for name, op in (
            ("AllGatherRingZerocopyExchangeExecutor", "all_gather"),
            ("ReduceScatterRingZerocopyExchangeExecutor", "reduce_scatter"),
            ("BroadCastRingZerocopyExecutor", "broadcast"),
        )
    ),
    *(  # for several superpods only, as all_gather_operator.cc:398 takes them
        (name, op, "910_93", ((2, 1, 4), (2, 2, 4), (3, 1, 2)), ("op_base",))
        for name, op in (
            ("AllGatherRingZerocopyPipelineExecutor", "all_gather"),
            ("ReduceScatterRingZerocopyExchangePipelineExecutor", "reduce_scatter"),
        )
    ),
)
"""Executors that HCCL's selection takes on no machine of its tests: name, op, device, shapes,
modes.
"""


def forced() -> Iterator[Case]:
    """Yield calls that name their executor, as selection never comes to it in the driver."""
    for name, op, device, shapes, modes in FORCED:
        settings: dict[str, Any] = {"zero_copy": True} if "Zerocopy" in name else {}
        if "Mix" in name:  # between devices of two kinds, all that these executors have is NHR
            settings["HCCL_ALGO"] = "level0:NA;level1:NHR"
        for shape, mode, size in product(shapes, modes, (16 * KB, MB)):
            yield make_case(op, device, shape, size, mode=mode, alg=name, **settings)


def modules() -> Iterator[Case]:
    """Yield calls on hosts of two modules of 8 devices each (Atlas 200T A2 Box16)."""
    for op, size, mode in product(OPS[:8], (16 * KB, MB), MODES):
        yield make_case(op, "910B", [[16]], size, mode=mode)
        yield make_case(op, "910B", [[16, 16]], size, mode=mode)


def own_counts() -> Iterator[Case]:
    """Yield all-to-alls whose counts differ by sender and receiver. Every rank sends and receives
    as much as the others: upstream's tests lay out the memory of rank 0 for all of them.
    """
    for device, shapes in SHAPES.items():
        for shape, op, mode in product(shapes, ("all_to_all_v", "all_to_all_vc"), MODES):
            ranks = shape[0] * shape[1] * shape[2]
            if ranks > 1:
                counts = [8 * (j - i) % (8 * ranks) for i in range(ranks) for j in range(ranks)]
                case = make_case(op, device, shape, KB, mode=mode, counts_matrix=counts)
                yield {key: value for key, value in case.items() if key != "count"}


def elsewhere(number: int, seed: int) -> Iterator[Case]:
    """Yield calls drawn from shapes, sizes and machines between those above."""
    rng = random.Random(seed)
    sizes = [KB << k for k in range(15)]
    for _ in range(number):
        device = rng.choice(("910B", "910B", "910_93", "910_93", "910A", "310P3"))
        buffer = rng.choice(("", "", "1", "16", "100"))
        size = rng.choice(sizes[: 12 if buffer == "1" else None]) + rng.choice((0, 0, -8, 4, 128))
        machine: dict[str, Any] = {}
        if device == "910_93":
            zero_copy = rng.random() < 0.15
            machine = {"zero_copy": True} if zero_copy else {"hccs_ports": rng.choice((0, 7, 7))}
        elif device == "910B":
            machine = {"rdma_lite": rng.random() < 0.2}
        yield make_case(
            rng.choice(OPS[:-1]),
            device,
            _shape(rng, device),
            size,
            mode=rng.choice(MODES),
            dtype=rng.choice(("fp32", "fp32", "fp16", "int8", "int32")),
            reduce=rng.choice(("sum", "sum", "max", "min")),
            root=rng.randrange(64),
            HCCL_ALGO=rng.choice(("", "", "", *WORDS)),
            HCCL_DETERMINISTIC=rng.choice(("", "", "true", "strict")),
            HCCL_BUFFSIZE=buffer,
            **machine,
        )


_DEVICES = {"910B": range(1, 9), "910_93": (2, 4, 6, 8, 10, 16), "910A": (1, 2, 4, 8)}


def _shape(rng: random.Random, device: str) -> Shape | list[list[int]]:
    """Return a shape of at most 32 ranks; every sixth one has servers of different sizes."""
    if device == "310P3":
        return (1, 1, rng.choice((1, 2, 4, 6, 8)))
    if rng.random() < 1 / 6:
        pods = rng.randint(1, 2) if device == "910_93" else 1
        return [[rng.choice((2, 4, 8)) for _ in range(rng.randint(2, 3))] for _ in range(pods)]
    devices = rng.choice(_DEVICES[device])
    pods = rng.choice((1, 1, 2, 3)) if device == "910_93" and devices <= 10 else 1
    return (pods, rng.randint(1, min(6, 32 // devices // pods)), devices)


_BOARDS = (
    *((1, 2), (1, 3), (1, 4)),
    *((2, 2), (2, 3), (2, 4), (3, 2), (3, 4), (4, 2), (4, 4)),
)
"""Boards of a UBX server, and their devices."""

_UBX, _BESIDE = {"ubx": True}, {"lone_clos": True}
_ROW = 8


def ubx() -> Iterator[Case]:
    """Yield calls on UBX servers of the Ascend 950, on both sides of the bounds of selection."""
    rng = random.Random(29)
    sizes = (KB, 512 * KB, 512 * KB + 4, 2 * MB, 4 * MB - 4, 9 * MB, 100 * MB, 300 * MB)
    for (boards, devices), op, size in product(_BOARDS, OPS[:6], sizes):
        ranks = boards * devices
        if size * ranks <= 1 << 30 and (size <= 9 * MB or ranks <= 8):
            yield _on_950(op, _servers(boards, devices), size, rng, bus=_UBX)
    for devices, size in product((2, 3, 4), (KB, 16 * KB, 40 * MB)):
        yield _on_950("all_to_all", _servers(1, devices), size * devices, rng, bus=_UBX)
        counts = [8 * size * ((j - i) % devices + 1) // 64 for i, j in _pairs(devices)]
        case = _on_950("all_to_all_v", _servers(1, devices), size, rng, bus=_UBX)
        yield {**case, "counts_matrix": counts}
    for op in ("all_gather_v", "reduce_scatter_v", "all_to_all_vc", "batch_send_recv"):
        yield _on_950(op, _servers(2, 4), MB, rng, bus=_UBX)


def over_boards() -> Iterator[Case]:
    """Yield all-to-alls over boards of UBX servers, where two devices have four links."""
    rng = random.Random(29)
    bus = {**_UBX, "jetties": 4}
    for boards, devices in _BOARDS[3:]:
        ranks = boards * devices
        for size in (KB, 30 * MB):
            yield _on_950("all_to_all", _servers(boards, devices), size * ranks, rng, bus=bus)
        counts = [(j - i) % 3 * 1001 for i, j in _pairs(ranks)]
        case = _on_950("all_to_all_v", _servers(boards, devices), MB, rng, bus=bus)
        yield {**case, "counts_matrix": counts}


def strict_orders() -> Iterator[Case]:
    """Yield sums in the order of more than 8 ranks."""
    rng = random.Random(29)
    rows = ([[4, 6]], [[8, 8]], [[8], [4]], [[8] * 5])
    servers = [[[list(range(n)) for n in pod] for pod in pods] for pods in rows]
    boards = [_servers(3, 4), _servers(4, 4)]
    machines: Sequence[tuple[Any, Any]] = ((servers, {}), (boards, _UBX))
    for op, (topos, bus) in product(("all_reduce", "reduce_scatter"), machines):
        for topo, size in product(topos, (64, 3 * MB)):
            case = _on_950(op, topo, size, rng, bus=bus)
            yield {**case, "dtype": "fp16", "env": {"HCCL_DETERMINISTIC": "strict"}}


def uneven_servers() -> Iterator[Case]:
    """Yield calls that cut servers into parts of one size."""
    rng = random.Random(29)
    for sizes, op in product(((8, 4), (2, 4, 6)), OPS[:6]):
        yield _on_950(op, [[list(range(n)) for n in sizes]], 34 * MB, rng, bus={})


def beside_clos() -> Iterator[Case]:
    """Yield calls on a server of the Ascend 950 with a Clos network beside its mesh."""
    rng = random.Random(29)
    sizes = (KB, 4 * MB - 4, 4 * MB, 12 * MB, 150 * MB, 300 * MB)
    for devices, op, size in product((2, 3, 4, 8), OPS[:3], sizes):
        yield _on_950(op, _servers(1, devices), size, rng, bus=_BESIDE)
    yield _on_950("all_reduce", _servers(1, 4), (4 << 30) + 4 * KB, rng, bus=_BESIDE)


def barriers() -> Iterator[Case]:
    """Yield barriers of the Ascend 950."""
    shapes = ([[2]], [[3]], [[5]], [[8]], [[2, 2]], [[4, 4]], [[8, 8]], [[3, 2]], [[1] * 3])
    for pods in (*shapes, [[2], [2]]):
        topo = [[list(range(devices)) for devices in pod] for pod in pods]
        yield {"op": "barrier", "topo": topo, "product": "950", "dtype": "fp32"}
    for boards, devices in _BOARDS:
        topo = _servers(boards, devices)
        yield {"op": "barrier", "topo": topo, "product": "950", "dtype": "fp32", "bus": _UBX}


def _servers(boards: int, devices: int) -> list[list[list[int]]]:
    """Return one server whose boards are rows of its grid of devices."""
    return [[[_ROW * i + j for i in range(boards) for j in range(devices)]]]


def _pairs(ranks: int) -> Iterator[tuple[int, ...]]:
    return product(range(ranks), repeat=2)


def _on_950(op: str, topo: Any, size: int, rng: random.Random, bus: Any) -> Case:
    """Return a call of about this size, with a data type and a root drawn."""
    dtype = rng.choice(("fp32", "fp32", "fp16", "int8"))
    ranks = sum(len(server) for pod in topo for server in pod)
    count = max(1, size // _unit(dtype) + rng.choice((0, 0, 1, -1, 3)))
    case: dict[str, Any] = {"op": op, "topo": topo, "product": "950", "dtype": dtype, "bus": bus}
    case["count"] = max(1, count // (ranks if op in PER_PEER else 1))
    if op in REDUCING:
        case["reduce"] = "sum"
    if op in ROOTED:
        case["root"] = rng.randrange(ranks)
    return case


PARTS = (
    defaults,
    lambda: drawn(2000, 27),
    special,
    forced,
    modules,
    own_counts,
    lambda: elsewhere(500, 27),
)
"""All golden calls of the classic executors, part by part."""

PARTS_950 = (ubx, over_boards, strict_orders, uneven_servers, beside_clos, barriers)
"""Golden calls of the Ascend 950 that its first ones, which stay, do not have."""
