// leg_trace: runs HCCL's own selection, resource calculation and executors for calls that come as JSON lines on stdin,
// over the stubs of upstream's algorithm analyzer, and prints what came out as JSON lines. One process for each call.
//
// A call: {"op": "all_reduce", "product": "910B", "topo": [[[0,1],[0,1]]], "count": 1024, "dtype": "fp32",
//          "reduce": "sum", "mode": "op_base"|"graph", "root": 0, "env": {"HCCL_ALGO": "level0:NA;level1:ring"}}
// topo is superpods of servers of device numbers; or "pods", "servers", "devices". Also: "alg" (an executor's name,
// instead of selection), "zero_copy", "aicpu", "card_310pv", "src", "dst", "counts", "displs", "counts_matrix" (by sender
// and receiver, for all_to_all_v and all_to_all_vc), "hccs_ports" (7), "rdma_lite" (false), "check" (run upstream's own
// checker on the tasks, too), "tasks": false (selection and resources only).
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "alg_adapter_v1_interface.h"
#include "check_utils.h"
#include "checker.h"
#include "alltoall_operator.h"
#include "coll_alg_operator.h"
#include "device_info_recorder.h"
#include "env_config.h"
#include "externalinput.h"
#include "link_type_recorder.h"
#include "mem_layout.h"
#include "orchestrate.h"
#include "rank_info_recorder.h"
#include "singletask_check.h"
#include "task_queue_stub.h"
#include "workflow_pub.h"

using nlohmann::json;
using namespace hccl;
using namespace checker;

extern "C" int mmGetEnv(const char *name, char *value, unsigned int len)
{
    const char *found = name == nullptr ? nullptr : getenv(name);
    if (found == nullptr || value == nullptr || strlen(found) + 1 > len) {
        return -1;
    }
    memcpy(value, found, strlen(found) + 1);
    return 0;
}

// What the machine would say; these stand before the answers of upstream's stubs.
int g_hccs_ports = 7;
bool g_rdma_lite = false;

HcclResult hrtGetHccsPortNum(u32, s32 &number)
{
    number = g_hccs_ports;
    return HCCL_SUCCESS;
}

// Counts and displacements of a rank in an all_to_all_v: upstream's harness has those of one rank for all.
struct Exchange {
    std::vector<u64> sends, sent_from, receives, received_to;
};
std::vector<Exchange> g_exchanges;

namespace hccl {
// The ranks tell each other their counts before the call. This stands before upstream's stub of it, in bytes, rank by rank.
void HcclCommunicator::GenAllGatherResultForAllToAllV(OpParam &op, void *result)
{
    auto *to = static_cast<u64 *>(result);
    for (const Exchange &one : g_exchanges) {
        for (auto *numbers : {&one.sends, &one.sent_from, &one.receives, &one.received_to}) {
            for (u64 number : *numbers) {
                *to++ = number * SIZE_TABLE[op.All2AllDataDes.sendType];
            }
        }
    }
}
}  // namespace hccl

namespace {

const std::map<std::string, CheckerOpType> OPS = {
    {"all_reduce", CheckerOpType::ALLREDUCE}, {"all_gather", CheckerOpType::ALLGATHER},
    {"all_gather_v", CheckerOpType::ALLGATHER_V}, {"reduce_scatter", CheckerOpType::REDUCE_SCATTER},
    {"reduce_scatter_v", CheckerOpType::REDUCE_SCATTER_V}, {"broadcast", CheckerOpType::BROADCAST},
    {"reduce", CheckerOpType::REDUCE}, {"scatter", CheckerOpType::SCATTER}, {"all_to_all", CheckerOpType::ALLTOALL},
    {"all_to_all_v", CheckerOpType::ALLTOALLV}, {"all_to_all_vc", CheckerOpType::ALLTOALLVC},
    {"send_recv", CheckerOpType::SEND}, {"batch_send_recv", CheckerOpType::BATCH_SEND_RECV}};
const std::map<std::string, CheckerDevType> PRODUCTS = {
    {"910", CheckerDevType::DEV_TYPE_910}, {"910A", CheckerDevType::DEV_TYPE_910},
    {"910B", CheckerDevType::DEV_TYPE_910B}, {"910_93", CheckerDevType::DEV_TYPE_910_93},
    {"310P3", CheckerDevType::DEV_TYPE_310P3}};
const std::vector<std::string> DTYPES = {"int8", "int16", "int32", "fp16", "fp32", "int64", "uint64", "uint8",
    "uint16", "uint32", "fp64", "bfp16", "int128", "hif8", "fp8e4m3", "fp8e5m2"};
const std::vector<std::string> REDUCES = {"sum", "prod", "max", "min"};

int Find(const std::vector<std::string> &names, const std::string &name)
{
    for (size_t i = 0; i < names.size(); i++) {
        if (names[i] == name) {
            return static_cast<int>(i);
        }
    }
    throw std::runtime_error("unknown word " + name);
}

std::string Bare(const std::string &described)  // "BufferType::INPUT" to "INPUT"
{
    size_t at = described.rfind(':');
    return at == std::string::npos ? described : described.substr(at + 1);
}

json Of(const DataSlice &slice)
{
    return {Bare(slice.GetType().Describe()), slice.GetOffset(), slice.GetSize()};
}

std::string Link(const TaskStub &task)
{
    return Bare(task.GetLinkType().Describe());
}

json Queue(u32 queue)
{
    return queue == INVALID_QID ? json(nullptr) : json(queue);
}

std::string DtypeName(int type)
{
    return type >= 0 && type < static_cast<int>(DTYPES.size()) ? DTYPES[type] : std::to_string(type);
}

template <class T> json Remote(const char *kind, const T &task)
{
    return {kind, task.GetRemoteRank(), Link(task), Of(task.GetLocalSlice()), Of(task.GetRemoteSlice())};
}

template <class T> json RemoteReduce(const char *kind, const T &task)
{
    json found = Remote(kind, task);
    found.push_back(DtypeName(task.GetDataType()));
    found.push_back(Bare(CheckerReduceOp(task.GetReduceOp()).Describe()));
    return found;
}

json Of(const TaskStub &task)
{
    if (auto *t = dynamic_cast<const TaskStubLocalCopy *>(&task)) {
        return {"local_copy", Of(t->GetSrcSlice()), Of(t->GetDstSlice())};
    }
    if (auto *t = dynamic_cast<const TaskStubLocalReduce *>(&task)) {
        return {"local_reduce", Of(t->GetSrcSlice()), Of(t->GetDstSlice()), DtypeName(t->GetDataType()),
            Bare(CheckerReduceOp(t->GetReduceOp()).Describe())};
    }
    if (auto *t = dynamic_cast<const TaskStubLocalPostTo *>(&task)) {
        return {"local_post", t->GetTopicId(), Queue(t->GetPostQid()), Queue(t->GetWaitQid())};
    }
    if (auto *t = dynamic_cast<const TaskStubLocalWaitFrom *>(&task)) {
        return {"local_wait", t->GetTopicId(), Queue(t->GetPostQid()), Queue(t->GetWaitQid())};
    }
    if (auto *t = dynamic_cast<const TaskStubPost *>(&task)) {
        return {"post", t->GetRemoteRank(), Link(task), t->GetTopicId(), Bare(t->GetNotifyType().Describe()),
            t->GetTag()};
    }
    if (auto *t = dynamic_cast<const TaskStubWait *>(&task)) {
        return {"wait", t->GetRemoteRank(), Link(task), t->GetTopicId(), Bare(t->GetNotifyType().Describe()),
            t->GetTag()};
    }
    if (auto *t = dynamic_cast<const TaskStubRead *>(&task)) {
        return Remote("read", *t);
    }
    if (auto *t = dynamic_cast<const TaskStubWrite *>(&task)) {
        return Remote("write", *t);
    }
    if (auto *t = dynamic_cast<const TaskStubReadReduce *>(&task)) {
        return RemoteReduce("read_reduce", *t);
    }
    if (auto *t = dynamic_cast<const TaskStubWriteReduce *>(&task)) {
        return RemoteReduce("write_reduce", *t);
    }
    return {"other", task.Describe()};
}

json Of(const AlgResourceRequest &request)
{
    json found = {{"streams", request.streamNum}, {"notifies", request.notifyNum},
        {"scratch", request.scratchMemSize}, {"aiv", request.aivBufferRequest}, {"planes", json::array()}};
    for (size_t level = 0; level < request.opTransport.size(); level++) {
        for (size_t plane = 0; plane < request.opTransport[level].size(); plane++) {
            json links = json::array();
            for (auto &link : request.opTransport[level][plane].transportRequests) {
                if (link.isValid) {
                    int in = static_cast<int>(link.inputMemType);
                    int out = static_cast<int>(link.outputMemType);
                    links.push_back({link.remoteUserRank, link.isUsedRdma ? "RDMA" : "SDMA", in, out});
                }
            }
            if (!links.empty()) {
                found["planes"].push_back({{"level", level}, {"plane", plane}, {"links", links}});
            }
        }
    }
    return found;
}

struct Call {
    CheckerOpParam param{};
    TopoMeta topo;
    u32 ranks = 0;
};

std::vector<u64> Packed(const std::vector<u64> &counts)
{
    std::vector<u64> found(counts.size(), 0);
    for (size_t i = 1; i < counts.size(); i++) {
        found[i] = found[i - 1] + counts[i - 1];
    }
    return found;
}

std::vector<Exchange> Exchanges(const std::vector<u64> &matrix, u32 ranks)
{
    std::vector<Exchange> found(ranks);
    for (u32 i = 0; i < ranks; i++) {
        for (u32 j = 0; j < ranks; j++) {
            found[i].sends.push_back(matrix[i * ranks + j]);
            found[i].receives.push_back(matrix[j * ranks + i]);
        }
        found[i].sent_from = Packed(found[i].sends);
        found[i].received_to = Packed(found[i].receives);
    }
    return found;
}

Call Read(const json &text)
{
    Call call;
    auto &param = call.param;
    param.opType = OPS.at(text.at("op"));
    param.tag = text.value("tag", "tag");
    param.algName = text.value("alg", "");
    param.opMode = text.value("mode", "op_base") == "graph" ? CheckerOpMode::OFFLOAD : CheckerOpMode::OPBASE;
    param.reduceType = CheckerReduceOp(
        static_cast<CheckerReduceOp::Value>(Find(REDUCES, text.value("reduce", "sum"))));
    param.devtype = PRODUCTS.at(text.at("product"));
    param.is310P3V = text.value("card_310pv", false);
    param.root = text.value("root", static_cast<u32>(INVALID_VALUE_RANKID));  // none, as in HCCL's OpParam
    param.aicpuUnfoldMode = text.value("aicpu", false);
    param.supportZeroCopy = text.value("zero_copy", false);
    if (text.contains("topo")) {
        call.topo = text["topo"].get<TopoMeta>();
    } else {
        RankTable_For_LLT::GenTopoMeta(call.topo, text.value("pods", 1), text.value("servers", 1),
            text.value("devices", 1));
    }
    u32 ranks = call.ranks = GetRankNumFormTopoMeta(call.topo);
    auto dtype = static_cast<CheckerDataType>(Find(DTYPES, text.value("dtype", "fp32")));
    u64 count = text.value("count", static_cast<u64>(0));
    auto counts = text.value("counts", std::vector<u64>(ranks, count));
    auto displs = text.value("displs", Packed(counts));
    std::string op = text.at("op");
    if (op.rfind("all_to_all", 0) == 0) {
        auto &des = param.All2AllDataDes;
        des.sendType = des.recvType = dtype;
        des.sendCount = des.recvCount = count;
        des.sendCounts = des.recvCounts = counts;  // for upstream's checker, which knows those of one rank
        des.sdispls = des.rdispls = displs;
        std::vector<u64> matrix;
        for (u32 i = 0; i < ranks; i++) {
            matrix.insert(matrix.end(), counts.begin(), counts.end());
        }
        des.sendCountMatrix = text.value("counts_matrix", matrix);
        g_exchanges = Exchanges(des.sendCountMatrix, ranks);
    } else if (op == "all_gather_v" || op == "reduce_scatter_v") {
        param.VDataDes.counts = counts;
        param.VDataDes.displs = displs;
        param.VDataDes.dataType = dtype;
    } else {
        param.DataDes.count = count;
        param.DataDes.dataType = dtype;
    }
    param.srcRank = text.value("src", 0);
    param.dstRank = text.value("dst", 1);
    param.allRanksSendRecvInfoVec.resize(ranks);
    return call;
}

void Become(u32 rank, const CheckerOpParam &param)
{
    RankInfoRecorder::Global()->SetRankId(rank);
    CheckerDevType type = DeviceInfoRecorder::Global()->rankId2devType[rank];
    RankInfoRecorder::Global()->SetDevType(type == CheckerDevType::DEV_TYPE_NOSOC ? param.devtype : type);
    SetWorkflowMode(param.opMode == CheckerOpMode::OPBASE ?
        HcclWorkflowMode::HCCL_WORKFLOW_MODE_OP_BASE : HcclWorkflowMode::HCCL_WORKFLOW_MODE_OPS_KERNEL_INFO_LIB);
}

// Whether the AICPU that a case has makes the tasks: HCCL's communicator asks that, which does not run here.
bool IsUnfolded(const OpParam &op, const CheckerOpParam &param, u32 ranks)
{
    switch (param.opType) {
        case CheckerOpType::ALLTOALL:
        case CheckerOpType::ALLTOALLV:
        case CheckerOpType::ALLTOALLVC:
            return op.aicpuUnfoldMode;
        case CheckerOpType::ALLREDUCE:
        case CheckerOpType::REDUCE:
        case CheckerOpType::REDUCE_SCATTER:
            return op.aicpuUnfoldMode && ranks > 1
                && IsSupportSDMAReduce(nullptr, nullptr, op.DataDes.dataType, op.reduceType);
        case CheckerOpType::REDUCE_SCATTER_V:
            return op.aicpuUnfoldMode
                && IsSupportSDMAReduce(nullptr, nullptr, op.VDataDes.dataType, op.reduceType);
        default:
            return op.aicpuUnfoldMode && ranks > 1;
    }
}

OpParam Parameters(CheckerOpParam &param, u32 rank, u32 ranks)
{
    OpParam op;
    InitOpParam(op, param, rank, ranks, true, param.opType == CheckerOpType::BROADCAST);
    if (param.opType == CheckerOpType::ALLTOALLV) {
        auto &own = g_exchanges[rank];
        op.All2AllDataDes.sendCounts = own.sends.data();
        op.All2AllDataDes.sdispls = own.sent_from.data();
        op.All2AllDataDes.recvCounts = own.receives.data();
        op.All2AllDataDes.rdispls = own.received_to.data();
    }
    op.aicpuUnfoldMode = IsUnfolded(op, param, ranks);
    op.supportZeroCopy = op.supportZeroCopy && op.aicpuUnfoldMode && param.opMode == CheckerOpMode::OPBASE;
    return op;
}

using Communicators = std::vector<std::shared_ptr<HcclCommunicator>>;

struct Failed {
    const char *where;
    int code;
    int rank;
};

void Need(HcclResult code, const char *where, int rank = -1)
{
    if (code != HCCL_SUCCESS) {
        throw Failed{where, static_cast<int>(code), rank};
    }
}

json Chosen(HcclCommunicator &comm, OpParam &op, const std::string &given)
{
    auto chosen = comm.implAlg_->GetAlgOperator(op.opType);
    if (chosen == nullptr) {
        throw Failed{"operator", -1, -1};
    }
    if (op.opType == HcclCMDType::HCCL_CMD_ALLTOALLV) {  // what the ranks' all-gather of counts would have brought
        HostMem counts = HostMem::alloc(static_cast<u64>(sizeof(u64)) * comm.userRankSize_ * 4 * comm.userRankSize_);
        comm.GenAllGatherResultForAllToAllV(op, counts.ptr());
        dynamic_cast<AlltoAllOperator *>(chosen.get())->SetPreProcessResult(std::move(counts));
    }
    std::string name = given;
    std::string tag = op.tag + given;
    AlgDesc desc;
    if (given.empty()) {
        ResourceLimit limit;
        HcclResult code = chosen->SelectAlg(op.tag, op, limit, name, desc, tag);
        if (code != HCCL_SUCCESS) {
            return {{"refused", static_cast<int>(code)}};
        }
    }
    AlgType type = chosen->algType_;
    json found = {{"alg", name}, {"tag", tag}, {"zero_copy", desc.isZeroCopy},
        {"levels", {static_cast<int>(type.algoLevel0), static_cast<int>(type.algoLevel1),
            static_cast<int>(type.algoLevel2)}}};
    if (desc.isZeroCopy) {
        op.isZeroCopy = true;
    }
    chosen->SetAlgOpContext(comm.algOpContext_);
    chosen->SetAivClearEnable(true);
    AlgResourceRequest request;
    HcclResult code = chosen->CalcResRequest(name, op, request);
    if (code != HCCL_SUCCESS) {
        found["calc_failed"] = static_cast<int>(code);
    } else {
        found["resources"] = Of(request);
    }
    return found;
}

// Runs of ranks with equal entries: [[first, count, entry], ...]
json Grouped(const std::vector<json> &entries)
{
    json found = json::array();
    for (size_t i = 0; i < entries.size(); i++) {
        if (!found.empty() && found.back()[2] == entries[i]) {
            found.back()[1] = found.back()[1].get<int>() + 1;
        } else {
            found.push_back({i, 1, entries[i]});
        }
    }
    return found;
}

void Work(const json &text, json &answer)
{
    g_hccs_ports = text.value("hccs_ports", 7);
    g_rdma_lite = text.value("rdma_lite", false);
    Call call = Read(text);
    auto &param = call.param;
    hccl::RankTable_t table;
    GenRankTable(table, call.topo);
    LinkTypeRecorder::Global()->SetIs310P3V(param.is310P3V);
    param.devTypes.push_back(param.devtype);
    LinkTypeRecorder::Global()->SetLinkTypeMap(param.devTypes);
    RankInfoRecorder::Global()->InitRankInfo(call.topo, param.devtype);
    DeviceInfoRecorder::Global()->InitDeviceInfo(call.topo, table, param.devtype);
    MemLayout::Global()->Init(param);
    Become(0, param);  // settings are checked against the device
    Need(InitExternalInput(), "settings");
    Need(InitEnvConfig(), "settings");

    Communicators comms;
    std::vector<json> chosen;
    std::vector<json> resources;
    bool refused = false;
    for (u32 rank = 0; rank < call.ranks; rank++) {
        Become(rank, param);
        HcclCommParams comm_params;
        InitCommParams(comm_params, table, rank);
        auto comm = std::make_shared<HcclCommunicator>();
        Need(comm->Init(comm_params, table), "communicator", rank);
        comm->SetAlgOpContext(param.algOpContext);
        comm->implAlg_->topoAttr_.isSupportRdmaLite = g_rdma_lite;  // upstream's stub does not ask the machine
        comms.push_back(comm);
        OpParam op = Parameters(param, rank, call.ranks);
        json found = Chosen(*comm, op, param.algName);
        refused = refused || found.contains("refused") || found.contains("calc_failed");
        resources.push_back(found.value("resources", json(nullptr)));
        found.erase("resources");
        chosen.push_back(found);
    }
    answer["chosen"] = Grouped(chosen);
    answer["resources"] = Grouped(resources);
    if (refused || !text.value("tasks", true)) {
        return;
    }
    for (int phase = 0; phase < 2; phase++) {
        for (u32 rank = 0; rank < call.ranks; rank++) {
            Become(rank, param);
            OpParam op = Parameters(param, rank, call.ranks);
            Need(comms[rank]->ExecOp(op.opType, op, phase == 1, param.algName, param.aiCoreLimit),
                phase == 0 ? "resources" : "orchestrate", rank);
        }
        if (phase == 0) {
            Need(CheckTransportLink(), "links");
        }
    }
    json tasks = json::array();
    auto &all = TaskQueueStub::Global()->GetAllRankTasks();
    for (u32 rank = 0; rank < call.ranks; rank++) {
        json streams = json::array();
        auto found = all.rank2TaskQueues.find(rank);
        if (found != all.rank2TaskQueues.end()) {
            for (auto &queue : found->second->taskQueues) {
                json stream = json::array();
                for (auto &task : queue) {
                    stream.push_back(Of(*task));
                }
                streams.push_back(stream);
            }
        }
        tasks.push_back(streams);
    }
    answer["tasks"] = tasks;
    if (text.value("check", false)) {
        Checker checker;
        SingleTaskCheck single;
        HcclResult code = single.CheckSlaveTaskQueue();
        answer["checked_streams"] = static_cast<int>(code);
        answer["checked"] = static_cast<int>(checker.CheckPrimGraphs(param, call.ranks));
    }
}

void Child(const json &text, int out, const std::string &log)
{
    for (const char *name : {"HCCL_ALGO", "HCCL_DETERMINISTIC", "HCCL_BUFFSIZE", "HCCL_INTRA_PCIE_ENABLE",
             "HCCL_INTRA_ROCE_ENABLE", "HCCL_INTER_HCCS_DISABLE", "HCCL_OP_EXPANSION_MODE"}) {
        unsetenv(name);
    }
    const json env = text.value("env", json::object());
    for (auto &item : env.items()) {
        setenv(item.key().c_str(), item.value().get<std::string>().c_str(), 1);
    }
    int file = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(file, 1);
    dup2(file, 2);
    alarm(static_cast<unsigned>(text.value("seconds", 120)));
    json answer = {{"case", text}};
    try {
        Work(text, answer);
    } catch (const Failed &failed) {
        answer["failed"] = {{"where", failed.where}, {"code", failed.code}, {"rank", failed.rank}};
    } catch (const std::exception &error) {
        answer["failed"] = {{"where", "exception"}, {"what", error.what()}};
    }
    fflush(stdout);
    if (answer.contains("failed") || !answer.contains("tasks")) {
        std::ifstream lines(log);
        std::string line;
        json errors = json::array();
        while (errors.size() < 3 && std::getline(lines, line)) {
            if (line.find("[ERROR]") != std::string::npos) {
                errors.push_back(line.substr(line.find("[ERROR]"), 300));
            }
        }
        answer["log"] = errors;
    }
    std::string line = answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < line.size();) {
        ssize_t wrote = write(out, line.data() + at, line.size() - at);
        if (wrote <= 0) {
            break;
        }
        at += wrote;
    }
    _exit(0);
}

}  // namespace

int main()
{
    char log[] = P_tmpdir "/leg_trace_XXXXXX";
    close(mkstemp(log));
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line.empty()) {
            continue;
        }
        json text = json::parse(line);
        int ends[2];
        if (pipe(ends) != 0) {
            return 1;
        }
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            Child(text, ends[1], log);
        }
        close(ends[1]);
        std::string answer;
        char block[65536];
        ssize_t got;
        while ((got = read(ends[0], block, sizeof(block))) > 0) {
            answer.append(block, got);
        }
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        if (answer.empty() || answer.back() != '\n') {
            json crashed = {{"case", text}, {"crashed", WIFSIGNALED(status) ? WTERMSIG(status) : -1}};
            answer = crashed.dump() + "\n";
        }
        std::cout << answer << std::flush;
    }
    unlink(log);
    return 0;
}
