"""The executors that come with hccl-py, listed as a plugin package lists its own.

`EXECUTORS` names the module of every executor; each can also be imported from this package by name.
"""

from hccl_executors import (
    deter_pipelines,
    flat,
    flat_v,
    graph_meshes,
    graph_pipelines,
    hccs_sio,
    hierarchical,
    inference,
    mid_counts,
    mixed,
    pipelines,
    single,
    stars,
)
from hccl_executors.aicpu import at_once, barrier_nhr, pair_messages, parallel, sequence, sole
from hccl_executors.all_gather.mesh_opbase import AllGatherMeshOpbaseExecutor
from hccl_executors.all_gather.small_count import AllGatherSmallCount
from hccl_executors.all_gather_v.mesh import AllGatherVMeshExecutor
from hccl_executors.all_gather_v.mesh_graph import AllGatherVMeshGraphExecutor
from hccl_executors.all_gather_v.mesh_opbase import AllGatherVMeshOpbaseExecutor
from hccl_executors.all_reduce.doubling import AllReduceDoubling
from hccl_executors.all_reduce.doubling_direct import AllReduceDoublingDirect
from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_mid_count import (
    AllReduceMeshOpbaseMidCountDeterministicExecutor,
)
from hccl_executors.all_reduce.mesh_opbase_small_count import (
    AllReduceMeshOpbaseSmallCountDeterministicExecutor,
)
from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_executors.all_reduce.order_preserved import (
    AllReduceOrderPreservedExecutor,
    AllReduceOrderPreservedFor91093Executor,
)
from hccl_executors.all_reduce.reduce_plus_bcast import AllReduceReducePlusBcast
from hccl_executors.all_reduce.small_count_for_910 import AllReduceSmallCountFor910
from hccl_executors.all_to_all.continuous_pipeline import RunAlltoAllVContinuousPipeline
from hccl_executors.all_to_all.direct_full_mesh import RunAlltoAllDirectFullmesh
from hccl_executors.all_to_all.for_310p import RunAlltoAllVFor310PExecutor
from hccl_executors.all_to_all.full_mesh import RunAlltoAllVFullMesh
from hccl_executors.all_to_all.pipeline_for_91093 import RunAlltoAllVPipelineFor91093
from hccl_executors.all_to_all.staged import RunAlltoAllVStaged
from hccl_executors.all_to_all.two_level_pipeline import RunAlltoAllVTwoLevelPipeline
from hccl_executors.batch_send_recv.batch_send_recv import BatchSendRecv
from hccl_executors.batch_send_recv.group import BatchSendRecvGroup
from hccl_executors.broadcast.plus_broadcast import BroadcastPlusBroadcast
from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_executors.reduce_scatter.deter import ReduceScatterDeterExecutor
from hccl_executors.reduce_scatter.mesh_dma_elimination import (
    ReduceScatterMeshDmaEliminationExecutor,
)
from hccl_executors.reduce_scatter.mesh_opbase_small_count import (
    ReduceScatterMeshOpbaseSmallCountDeterministicExecutor,
)
from hccl_executors.reduce_scatter.order_preserved import (
    ReduceScatterOrderPreservedExecutor,
    ReduceScatterOrderPreservedFor91093Executor,
)
from hccl_executors.reduce_scatter_v.deter import ReduceScatterVDeterExecutor
from hccl_executors.reduce_scatter_v.mesh import ReduceScatterVMeshExecutor
from hccl_executors.reduce_scatter_v.mesh_opbase import ReduceScatterVMeshOpbaseExecutor
from hccl_executors.rings import (
    blocks,
    concurrent,
    semi,
    servers,
    superpod_pipelines,
    superpods,
    superpods_v,
)
from hccl_executors.run_proofs import attach_proofs
from hccl_executors.send_recv.send import SendExecutor
from hccl_executors.zero_copy import pipelines as zero_copy_pipelines
from hccl_executors.zero_copy import slots, whole
from hccl_py.plugins.executor import BaseExecutor

__all__ = ["EXECUTORS"]

EXECUTORS: tuple[type[BaseExecutor], ...] = (
    # all_reduce
    superpods.AlignedAllReduceDoubleRingFor91093Executor,
    blocks.AllReduceARSFor91093Executor,
    deter_pipelines.AllReduceDeterPipelineExecutor,
    concurrent.AllReduceDoubleRingConcurrentExecutor,
    AllReduceDoubling,
    AllReduceDoublingDirect,
    superpods.AllReduceFastDoubleRingFor91093Executor,
    hierarchical.AllReduceMeshExecutor,
    AllReduceMeshMidCountLoopExecutor,
    AllReduceMeshOneshotLoopExecutor,
    AllReduceMeshOpbaseLoopExecutor,
    AllReduceMeshOpbaseMidCountDeterministicExecutor,
    pipelines.AllReduceMeshOpbasePipelineExecutor,
    graph_pipelines.AllReduceMeshGraphPipelineExecutor,
    AllReduceMeshOpbaseSmallCountDeterministicExecutor,
    AllReduceMeshSmallCountExecutor,
    mid_counts.AllReduceMidCountFor91093Executor,
    mixed.AllReduceMixExecutor,
    AllReduceOrderPreservedExecutor,
    AllReduceOrderPreservedFor91093Executor,
    AllReduceReducePlusBcast,
    inference.AllReduceRing,
    servers.AllReduceRingExecutor,
    superpods.AllReduceRingFor91093Executor,
    whole.AllReduceRingZerocopyExecutor,
    single.AllReduceSingleExecutor,
    AllReduceSmallCountFor910,
    stars.AllReduceStar,
    flat.AllReduceComm,
    # all_gather
    superpods.AlignedAllGatherDoubleRingFor91093Executor,
    blocks.AllGatherARSFor91093Executor,
    concurrent.AllGatherDoubleRingConcurrentExecutor,
    inference.AllGatherFor310PExecutor,
    hccs_sio.AllGatherHccsSioExecutor,
    hierarchical.AllGatherMeshExecutor,
    graph_meshes.AllGatherMeshGraphExecutor,
    AllGatherMeshOpbaseExecutor,
    pipelines.AllGatherMeshOpbasePipelineExecutor,
    graph_pipelines.AllGatherMeshGraphPipelineExecutor,
    mid_counts.AllGatherMidCountFor91093Executor,
    mixed.AllGatherMixExecutor,
    superpod_pipelines.AllGatherPipelineFor91093Executor,
    servers.AllGatherRingExecutor,
    superpods.AllGatherRingFor91093Executor,
    slots.AllGatherRingZerocopyExchangeExecutor,
    slots.AllGatherRingZerocopyExecutor,
    zero_copy_pipelines.AllGatherRingZerocopyPipelineExecutor,
    semi.AllGatherSemiRingExecutor,
    single.AllGatherSingleExecutor,
    inference.AllGatherSlimRingFor310PExecutor,
    AllGatherSmallCount,
    flat.AllGatherComm,
    # all_gather_v
    superpods_v.AlignedAllGatherVDoubleRingFor91093Executor,
    flat_v.AllGatherVFor310PExecutor,
    AllGatherVMeshExecutor,
    AllGatherVMeshGraphExecutor,
    graph_pipelines.AllGatherVMeshGraphPipelineExecutor,
    AllGatherVMeshOpbaseExecutor,
    pipelines.AllGatherVMeshOpbasePipelineExecutor,
    superpods_v.AllGatherVRingFor91093Executor,
    flat_v.AllGatherVComm,
    # reduce_scatter
    superpods.AlignedReduceScatterDoubleRingFor91093Executor,
    blocks.ReduceScatterARSFor91093Executor,
    ReduceScatterDeterExecutor,
    deter_pipelines.ReduceScatterDeterPipelineExecutor,
    concurrent.ReduceScatterDoubleRingConcurrentExecutor,
    superpods.ReduceScatterFastDoubleRingFor91093Executor,
    hccs_sio.ReduceScatterHccsSioExecutor,
    ReduceScatterMeshDmaEliminationExecutor,
    hierarchical.ReduceScatterMeshExecutor,
    graph_meshes.ReduceScatterMeshGraphExecutor,
    pipelines.ReduceScatterMeshOpbasePipelineExecutor,
    graph_pipelines.ReduceScatterMeshGraphPipelineExecutor,
    ReduceScatterMeshOpbaseSmallCountDeterministicExecutor,
    mixed.ReduceScatterMixExecutor,
    ReduceScatterOrderPreservedExecutor,
    ReduceScatterOrderPreservedFor91093Executor,
    superpod_pipelines.ReduceScatterPipelineFor91093Executor,
    inference.ReduceScatterRing,
    servers.ReduceScatterRingExecutor,
    superpods.ReduceScatterRingFor91093Executor,
    slots.ReduceScatterRingZerocopyExchangeExecutor,
    zero_copy_pipelines.ReduceScatterRingZerocopyExchangePipelineExecutor,
    slots.ReduceScatterRingZerocopyExecutor,
    semi.ReduceScatterSemiRingExecutor,
    single.ReduceScatterSingleExecutor,
    inference.ReduceScatterSlimRing,
    flat.ReduceScatterComm,
    # reduce_scatter_v
    superpods_v.AlignedReduceScatterVDoubleRingFor91093Executor,
    ReduceScatterVDeterExecutor,
    superpods_v.ReduceScatterVFastDoubleRingFor91093Executor,
    flat_v.ReduceScatterVFor310PRing,
    ReduceScatterVMeshExecutor,
    ReduceScatterVMeshOpbaseExecutor,
    pipelines.ReduceScatterVMeshOpbasePipelineExecutor,
    superpods_v.ReduceScatterVRingFor91093Executor,
    flat_v.ReduceScatterVComm,
    # broadcast
    hierarchical.BroadCastMeshExecutor,
    mixed.BroadCastMixExecutor,
    servers.BroadCastRingExecutor,
    superpods.BroadCastRingFor91093Executor,
    whole.BroadCastRingZerocopyExecutor,
    single.BroadCastSingleExecutor,
    BroadCastSmallCountExecutor,
    stars.BroadCastStar,
    flat.BroadCastComm,
    inference.BroadCastCommFor310P,
    mid_counts.BroadcastMidCountFor91093Executor,
    BroadcastPlusBroadcast,
    # reduce
    hierarchical.ReduceMeshExecutor,
    superpods.ReduceRingFor91093Executor,
    servers.ReduceRingPlusHd,
    single.ReduceSingleExecutor,
    stars.ReduceStar,
    flat.ReduceComm,
    # scatter
    hierarchical.ScatterMeshExecutor,
    servers.ScatterRingExecutor,
    superpods.ScatterRingFor91093Executor,
    single.ScatterSingleExecutor,
    stars.ScatterStar,
    flat.ScatterCommExecutor,
    # gather
    hierarchical.GatherMeshExecutor,
    single.GatherSingleExecutor,
    stars.GatherStar,
    flat.GatherComm,
    # all_to_all
    RunAlltoAllDirectFullmesh,
    single.RunAlltoAllSingleExecutor,
    RunAlltoAllVContinuousPipeline,
    RunAlltoAllVFor310PExecutor,
    RunAlltoAllVFullMesh,
    RunAlltoAllVPipelineFor91093,
    RunAlltoAllVStaged,
    RunAlltoAllVTwoLevelPipeline,
    # send_recv
    SendExecutor,
    # batch_send_recv
    BatchSendRecv,
    BatchSendRecvGroup,
    # Ascend 950
    sequence.AicpuAllGatherSequenceMeshConcurNHRNHR,
    sequence.AicpuAllReduceSequenceMeshConcurNHR,
    sequence.AicpuAllReduceSequenceMeshConcurNHRNHR,
    sequence.AicpuReduceScatterSequenceMeshConcurNHRNHR,
    sequence.AicpuReduceSequenceMesh1DNHRNHR,
    sequence.AicpuBroadcastSequenceMesh1dNHRNHR,
    sequence.AicpuScatterSequenceMeshConcurNHRNHR,
    sequence.AicpuAllGatherSequenceMeshConcurNHR,
    sequence.AicpuReduceScatterSequenceMeshConcurNHR,
    parallel.AicpuAllGatherParallelMeshNHR,
    parallel.AicpuReduceScatterParallelMeshNHR,
    parallel.AicpuScatterParallelMeshNHR,
    parallel.AicpuAllReduceParallelMeshNHR,
    parallel.AicpuReduceParallelMeshNHR,
    parallel.AicpuBroadcastParallelMeshNHR,
    parallel.InsAllGatherParallelMesh1DNHRMultiJetty,
    parallel.AicpuAllGatherPipeLineUBX,
    parallel.InsReduceScatterParallelMesh1DNHRUBX,
    parallel.InsScatterParallelMesh1DNHRUBX,
    parallel.InsAllReduceParallelRSAGUBX,
    parallel.ReduceParallelMesh1DNHRUBX,
    parallel.InsBroadcastParallelMesh1DNHRUBX,
    at_once.AicpuAllReduceConcurMeshTwoShotNHR,
    at_once.AicpuReduceScatterConcurMeshNHR,
    at_once.AicpuAllGatherConcurMeshNHR,
    at_once.AicpuAllToAllSoleMeshConcurrent,
    at_once.AicpuAllToAllVSoleMeshConcurrent,
    sequence.AicpuAllReduceSoleMeshConcur,
    sole.AicpuAllReduceSoleMeshOneShot,
    sole.AicpuAllReduceSoleMeshTwoShot,
    sole.AicpuAllReduceSoleMeshChunkTwoShot,
    sole.AicpuAllReduceSoleNHR,
    sole.AicpuAllReduceSoleNHRTwoShotMultiLink,
    sole.AicpuAllReduceSoleNHRAicpuReduce,
    sole.AicpuAllReduceStrictOrderedMesh,
    sole.AllReduceOrderPreservedGroup,
    sole.AicpuAllGatherSoleMesh,
    sole.AicpuAllGatherSoleMeshConcur,
    sole.AicpuAllGatherSoleNHR,
    sole.AicpuAllGatherSoleNHRMultiLink,
    sole.AicpuReduceScatterSoleMesh,
    sole.AicpuReduceScatterSoleMeshConcur,
    sole.AicpuReduceScatterSoleMeshChunk,
    sole.AicpuReduceScatterSoleNHR,
    sole.AicpuReduceScatterSoleNHRMultiLink,
    sole.AicpuReduceScatterSoleNHRAicpuReduce,
    sole.AicpuReduceScatterStrictOrderedMesh,
    sole.ReduceScatterOrderPreservedGroup,
    sole.AicpuBroadcastSoleMeshTwoShot,
    sole.AicpuBroadcastSoleNHR,
    sole.AicpuBroadcastSoleNHRTwoShotMultiLink,
    sole.AicpuReduceSoleMesh,
    sole.AicpuReduceSoleMeshTwoShot,
    sole.AicpuReduceSoleNHR,
    sole.AicpuReduceSoleNHRAicpuReduce,
    sole.AicpuScatterSoleMesh,
    sole.AicpuScatterSoleNHR,
    sole.AicpuAllToAllSoleMesh,
    sole.AicpuAllToAllSoleMeshSingleChannel,
    sole.AicpuAllToAllVSoleMesh,
    sole.AicpuAllToAllVCSoleMesh,
    sole.AicpuAllToAllSoleMeshUBX,
    sole.AicpuAllToAllVSoleMeshUBX,
    sole.AicpuReduceScatterVSoleMesh,
    sole.AicpuAllGatherVSoleMesh,
    barrier_nhr.AicpuBarrierSoleNHR,
    pair_messages.AicpuSendSole,
    pair_messages.AicpuBatchSendRecvSoleMesh,
)

attach_proofs(EXECUTORS)


def __getattr__(name: str) -> type[BaseExecutor]:
    for executor in EXECUTORS:
        if executor.__name__ == name:
            return executor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
