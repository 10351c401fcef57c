"""The algorithms that come with hccl-py, through the same door that plugins use."""

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
from hccl_executors.deter_pipelines import (
    AllReduceDeterPipelineExecutor,
    ReduceScatterDeterPipelineExecutor,
)
from hccl_executors.flat import (
    AllGatherComm,
    AllReduceComm,
    BroadCastComm,
    GatherComm,
    ReduceComm,
    ReduceScatterComm,
    ScatterCommExecutor,
)
from hccl_executors.flat_v import (
    AllGatherVComm,
    AllGatherVFor310PExecutor,
    ReduceScatterVComm,
    ReduceScatterVFor310PRing,
)
from hccl_executors.graph_pipelines import (
    AllGatherMeshGraphPipelineExecutor,
    AllGatherVMeshGraphPipelineExecutor,
    AllReduceMeshGraphPipelineExecutor,
    ReduceScatterMeshGraphPipelineExecutor,
)
from hccl_executors.hccs_sio import AllGatherHccsSioExecutor, ReduceScatterHccsSioExecutor
from hccl_executors.hierarchical import (
    AllGatherMeshExecutor,
    AllGatherMeshGraphExecutor,
    AllReduceMeshExecutor,
    BroadCastMeshExecutor,
    GatherMeshExecutor,
    ReduceMeshExecutor,
    ReduceScatterMeshExecutor,
    ReduceScatterMeshGraphExecutor,
    ScatterMeshExecutor,
)
from hccl_executors.inference import (
    AllGatherFor310PExecutor,
    AllGatherSlimRingFor310PExecutor,
    AllReduceRing,
    BroadCastCommFor310P,
    ReduceScatterRing,
    ReduceScatterSlimRing,
)
from hccl_executors.mid_counts import (
    AllGatherMidCountFor91093Executor,
    AllReduceMidCountFor91093Executor,
    BroadcastMidCountFor91093Executor,
)
from hccl_executors.mixed import (
    AllGatherMixExecutor,
    AllReduceMixExecutor,
    BroadCastMixExecutor,
    ReduceScatterMixExecutor,
)
from hccl_executors.pipelines import (
    AllGatherMeshOpbasePipelineExecutor,
    AllGatherVMeshOpbasePipelineExecutor,
    AllReduceMeshOpbasePipelineExecutor,
    ReduceScatterMeshOpbasePipelineExecutor,
    ReduceScatterVMeshOpbasePipelineExecutor,
)
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
from hccl_executors.rings.blocks import (
    AllGatherARSFor91093Executor,
    AllReduceARSFor91093Executor,
    ReduceScatterARSFor91093Executor,
)
from hccl_executors.rings.concurrent import (
    AllGatherDoubleRingConcurrentExecutor,
    AllReduceDoubleRingConcurrentExecutor,
    ReduceScatterDoubleRingConcurrentExecutor,
)
from hccl_executors.rings.semi import AllGatherSemiRingExecutor, ReduceScatterSemiRingExecutor
from hccl_executors.rings.servers import (
    AllGatherRingExecutor,
    AllReduceRingExecutor,
    BroadCastRingExecutor,
    ReduceRingPlusHd,
    ReduceScatterRingExecutor,
    ScatterRingExecutor,
)
from hccl_executors.rings.superpod_pipelines import (
    AllGatherPipelineFor91093Executor,
    ReduceScatterPipelineFor91093Executor,
)
from hccl_executors.rings.superpods import (
    AlignedAllGatherDoubleRingFor91093Executor,
    AlignedAllReduceDoubleRingFor91093Executor,
    AlignedReduceScatterDoubleRingFor91093Executor,
    AllGatherRingFor91093Executor,
    AllReduceFastDoubleRingFor91093Executor,
    AllReduceRingFor91093Executor,
    BroadCastRingFor91093Executor,
    ReduceRingFor91093Executor,
    ReduceScatterFastDoubleRingFor91093Executor,
    ReduceScatterRingFor91093Executor,
    ScatterRingFor91093Executor,
)
from hccl_executors.rings.superpods_v import (
    AlignedAllGatherVDoubleRingFor91093Executor,
    AlignedReduceScatterVDoubleRingFor91093Executor,
    AllGatherVRingFor91093Executor,
    ReduceScatterVFastDoubleRingFor91093Executor,
    ReduceScatterVRingFor91093Executor,
)
from hccl_executors.send_recv.send import SendExecutor
from hccl_executors.single import (
    AllGatherSingleExecutor,
    AllReduceSingleExecutor,
    BroadCastSingleExecutor,
    GatherSingleExecutor,
    ReduceScatterSingleExecutor,
    ReduceSingleExecutor,
    RunAlltoAllSingleExecutor,
    ScatterSingleExecutor,
)
from hccl_executors.stars import AllReduceStar, BroadCastStar, GatherStar, ReduceStar, ScatterStar
from hccl_executors.zero_copy.pipelines import (
    AllGatherRingZerocopyPipelineExecutor,
    ReduceScatterRingZerocopyExchangePipelineExecutor,
)
from hccl_executors.zero_copy.slots import (
    AllGatherRingZerocopyExchangeExecutor,
    AllGatherRingZerocopyExecutor,
    ReduceScatterRingZerocopyExchangeExecutor,
    ReduceScatterRingZerocopyExecutor,
)
from hccl_executors.zero_copy.whole import (
    AllReduceRingZerocopyExecutor,
    BroadCastRingZerocopyExecutor,
)

__all__ = ["EXECUTORS"]

EXECUTORS = (
    AlignedAllReduceDoubleRingFor91093Executor,
    AllReduceARSFor91093Executor,
    AllReduceDeterPipelineExecutor,
    AllReduceDoubleRingConcurrentExecutor,
    AllReduceDoubling,
    AllReduceDoublingDirect,
    AllReduceFastDoubleRingFor91093Executor,
    AllReduceMeshExecutor,
    AllReduceMeshMidCountLoopExecutor,
    AllReduceMeshOneshotLoopExecutor,
    AllReduceMeshOpbaseLoopExecutor,
    AllReduceMeshOpbaseMidCountDeterministicExecutor,
    AllReduceMeshOpbasePipelineExecutor,
    AllReduceMeshGraphPipelineExecutor,
    AllReduceMeshOpbaseSmallCountDeterministicExecutor,
    AllReduceMeshSmallCountExecutor,
    AllReduceMidCountFor91093Executor,
    AllReduceMixExecutor,
    AllReduceOrderPreservedExecutor,
    AllReduceOrderPreservedFor91093Executor,
    AllReduceReducePlusBcast,
    AllReduceRing,
    AllReduceRingExecutor,
    AllReduceRingFor91093Executor,
    AllReduceRingZerocopyExecutor,
    AllReduceSingleExecutor,
    AllReduceSmallCountFor910,
    AllReduceStar,
    AllReduceComm,
    AlignedAllGatherDoubleRingFor91093Executor,
    AllGatherARSFor91093Executor,
    AllGatherDoubleRingConcurrentExecutor,
    AllGatherFor310PExecutor,
    AllGatherHccsSioExecutor,
    AllGatherMeshExecutor,
    AllGatherMeshGraphExecutor,
    AllGatherMeshOpbaseExecutor,
    AllGatherMeshOpbasePipelineExecutor,
    AllGatherMeshGraphPipelineExecutor,
    AllGatherMidCountFor91093Executor,
    AllGatherMixExecutor,
    AllGatherPipelineFor91093Executor,
    AllGatherRingExecutor,
    AllGatherRingFor91093Executor,
    AllGatherRingZerocopyExchangeExecutor,
    AllGatherRingZerocopyExecutor,
    AllGatherRingZerocopyPipelineExecutor,
    AllGatherSemiRingExecutor,
    AllGatherSingleExecutor,
    AllGatherSlimRingFor310PExecutor,
    AllGatherSmallCount,
    AllGatherComm,
    AlignedAllGatherVDoubleRingFor91093Executor,
    AllGatherVFor310PExecutor,
    AllGatherVMeshExecutor,
    AllGatherVMeshGraphExecutor,
    AllGatherVMeshGraphPipelineExecutor,
    AllGatherVMeshOpbaseExecutor,
    AllGatherVMeshOpbasePipelineExecutor,
    AllGatherVRingFor91093Executor,
    AllGatherVComm,
    AlignedReduceScatterDoubleRingFor91093Executor,
    ReduceScatterARSFor91093Executor,
    ReduceScatterDeterExecutor,
    ReduceScatterDeterPipelineExecutor,
    ReduceScatterDoubleRingConcurrentExecutor,
    ReduceScatterFastDoubleRingFor91093Executor,
    ReduceScatterHccsSioExecutor,
    ReduceScatterMeshDmaEliminationExecutor,
    ReduceScatterMeshExecutor,
    ReduceScatterMeshGraphExecutor,
    ReduceScatterMeshOpbasePipelineExecutor,
    ReduceScatterMeshGraphPipelineExecutor,
    ReduceScatterMeshOpbaseSmallCountDeterministicExecutor,
    ReduceScatterMixExecutor,
    ReduceScatterOrderPreservedExecutor,
    ReduceScatterOrderPreservedFor91093Executor,
    ReduceScatterPipelineFor91093Executor,
    ReduceScatterRing,
    ReduceScatterRingExecutor,
    ReduceScatterRingFor91093Executor,
    ReduceScatterRingZerocopyExchangeExecutor,
    ReduceScatterRingZerocopyExchangePipelineExecutor,
    ReduceScatterRingZerocopyExecutor,
    ReduceScatterSemiRingExecutor,
    ReduceScatterSingleExecutor,
    ReduceScatterSlimRing,
    ReduceScatterComm,
    AlignedReduceScatterVDoubleRingFor91093Executor,
    ReduceScatterVDeterExecutor,
    ReduceScatterVFastDoubleRingFor91093Executor,
    ReduceScatterVFor310PRing,
    ReduceScatterVMeshExecutor,
    ReduceScatterVMeshOpbaseExecutor,
    ReduceScatterVMeshOpbasePipelineExecutor,
    ReduceScatterVRingFor91093Executor,
    ReduceScatterVComm,
    BroadCastMeshExecutor,
    BroadCastMixExecutor,
    BroadCastRingExecutor,
    BroadCastRingFor91093Executor,
    BroadCastRingZerocopyExecutor,
    BroadCastSingleExecutor,
    BroadCastSmallCountExecutor,
    BroadCastStar,
    BroadCastComm,
    BroadCastCommFor310P,
    BroadcastMidCountFor91093Executor,
    BroadcastPlusBroadcast,
    ReduceMeshExecutor,
    ReduceRingFor91093Executor,
    ReduceRingPlusHd,
    ReduceSingleExecutor,
    ReduceStar,
    ReduceComm,
    ScatterMeshExecutor,
    ScatterRingExecutor,
    ScatterRingFor91093Executor,
    ScatterSingleExecutor,
    ScatterStar,
    ScatterCommExecutor,
    GatherMeshExecutor,
    GatherSingleExecutor,
    GatherStar,
    GatherComm,
    RunAlltoAllDirectFullmesh,
    RunAlltoAllSingleExecutor,
    RunAlltoAllVContinuousPipeline,
    RunAlltoAllVFor310PExecutor,
    RunAlltoAllVFullMesh,
    RunAlltoAllVPipelineFor91093,
    RunAlltoAllVStaged,
    RunAlltoAllVTwoLevelPipeline,
    SendExecutor,
    BatchSendRecv,
    BatchSendRecvGroup,
)
