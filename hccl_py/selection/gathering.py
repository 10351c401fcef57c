"""Collects the facts about one call, which are the columns of the decision tables."""

from __future__ import annotations

from dataclasses import replace

from hccl_py.call.algo import parse_algo
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL, BARRIER_COUNT
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.selection.facts import Facts, reduces_over_rdma
from hccl_py.selection.facts_950 import Facts950
from hccl_py.selection.levels import (
    AHC,
    AHC_BROKE,
    LevelRules,
    SumDemand,
    choose_levels,
    pipeline_contexts,
)
from hccl_py.selection.rulesets import ruleset_of
from hccl_py.selection.shape import TopologyShape
from hccl_py.topology.rank_graph import RankGraph
from hccl_py.topology.topology import Topology

AIV_BUFFER_MIN = AIV_ACROSS_MOST = 16 << 20
"""The CCL buffers that AIV kernels over several servers need, and the most that they reduce."""

_AHC_OPS = ("all_reduce", "all_gather", "reduce_scatter")


def served(op: OpParam) -> OpParam:
    """Return the call whose tables and tag HCCL uses: for a barrier, its all-reduce."""
    if op.name != "barrier":
        return op
    return replace(
        op, name="all_reduce", count=BARRIER_COUNT, dtype=DataType.FP32, reduce=ReduceOp.SUM
    )


def gather_facts(op: OpParam, topology: Topology, config: Config) -> Facts:
    """Collect the facts for one call, on the links that the settings ask for."""
    topology = config.linked(topology)
    ruleset, product = ruleset_of(config), topology.product
    given, others = parse_algo(config.algo, op.name), parse_algo(config.algo, "")
    barrier = op.name == "barrier"
    aiv = config.expansion(product, op.name) == "AIV"
    op = served(op)
    shape = _seen(TopologyShape.of(topology), config.algo, ruleset.levels)
    inline = product.reduces_inline(op.dtype, op.reduce)
    demand = SumDemand(
        reducible=inline and reduces_over_rdma(op),
        deterministic=config.deterministic,
        aiv=aiv and _fits_aiv(op, config),
    )
    levels = choose_levels(op, shape, given, others, demand, ruleset.levels)
    unfolded = _unfolds(op, topology, config, inline=inline)
    facts = Facts(
        **vars(shape),
        levels=levels,
        op=op,
        given=tuple(given.items()),
        given_all=tuple(others.items()),
        ccl_bytes=config.ccl_bytes,
        inline=inline,
        deterministic=config.deterministic,
        unfolded=unfolded,
        aiv=aiv,
        barrier=barrier,
        inter_hccs=topology.inter_hccs,
        hccs_ports=product.hccs_ports,
        contexts_fit=pipeline_contexts(op.name, shape, demand, ruleset.levels) <= shape.contexts,
        zero_copy=config.zero_copy and unfolded and _reaches_peers(op, shape),
    )
    return facts if product.device != "950" else _of_950(facts, topology, config)


def _of_950(facts: Facts, topology: Topology, config: Config) -> Facts950:
    """Return the facts with those of an Ascend 950."""
    return Facts950(
        **vars(facts),
        graph=RankGraph.of(topology),
        bus=topology.product.bus,
        aiv_only=config.op_expansion_mode == "AIV_ONLY",
        zero_copy_asked=config.zero_copy,
    )


def _seen(shape: TopologyShape, algo: str, rules: LevelRules) -> TopologyShape:
    """Return the shape; with equal superpods where the release cuts them and no setting asks for
    AHC. Those of an Ascend 950 stay as they are.
    """
    keeps = not rules.cuts_pods or shape.device == "950"
    if keeps or shape.uneven_servers or not shape.uneven_pods:
        return shape
    words = (parse_algo(algo, op).get("level1", "") for op in _AHC_OPS)
    return shape if any(word in (AHC, AHC_BROKE) for word in words) else shape.with_even_pods()


def _unfolds(op: OpParam, topology: Topology, config: Config, *, inline: bool) -> bool:
    """Return True if the AI CPU makes the tasks. The host makes them where links of A3 cannot do
    the reduction, and for a single rank, except in all-to-all and reduce_scatter_v, which do not
    ask for the number of ranks (`impl/hccl_communicator_host.cc:3558`, `:4021`).
    """
    device = topology.product.device
    if device == "910B" and not ruleset_of(config).unfolds_a2:
        return False
    if topology.size == 1 and op.name not in (*ALL_TO_ALL, "reduce_scatter_v"):
        return False
    return config.unfolds(topology.product, op.name, inline=inline or op.reduce is None)


def _reaches_peers(op: OpParam, shape: TopologyShape) -> bool:
    """Return True if HCCL makes use of memory that is registered with all ranks."""
    even = shape.devices > 1 and not shape.uneven_servers
    return shape.device == "910_93" and op.mode is Mode.OP_BASE and even


def _fits_aiv(op: OpParam, config: Config) -> bool:
    """Return True if vector cores take an all-reduce of several servers: it is no pipeline then."""
    fits = op.extent * op.unit <= AIV_ACROSS_MOST
    eager = op.mode is Mode.GRAPH or config.ccl_bytes >= AIV_BUFFER_MIN
    return op.name == "all_reduce" and fits and eager and config.deterministic == "false"
