#include "front_end.hpp"

#include <cstdarg>
#include <cstdio>

#include "knobs.hpp"

size_t Tensor::elements() const {
  size_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

API void* aclCreateTensorDesc(int type, int count, const int64_t* sizes, int format) {
  return new Tensor{type, format, std::vector<int64_t>(sizes, sizes + (count > 0 ? count : 0)),
                    false};
}

API void aclDestroyTensorDesc(Tensor* tensor) { delete tensor; }
API int aclGetTensorDescType(const Tensor* tensor) { return tensor->type; }
API int aclGetTensorDescFormat(const Tensor* tensor) { return tensor->format; }
API size_t aclGetTensorDescNumDims(const Tensor* tensor) { return tensor->sizes.size(); }

API aclError aclGetTensorDescDimV2(const Tensor* tensor, size_t dimension, int64_t* size) {
  if (dimension >= tensor->sizes.size()) REFUSE(INVALID_PARAM, "dimension %zu", dimension);
  *size = tensor->sizes[dimension];
  return OK;
}

API aclError aclSetTensorPlaceMent(Tensor* tensor, int place) {
  tensor->on_host = place != 0;
  return OK;
}

API void* aclCreateDataBuffer(void* at, size_t bytes) { return new Buffer{at, bytes}; }

API aclError aclDestroyDataBuffer(const Buffer* buffer) {
  delete buffer;
  return OK;
}

static std::vector<Operand> operands(int count, Tensor** tensors, Buffer** buffers) {
  std::vector<Operand> all;
  for (int i = 0; i < count; i++) all.push_back({tensors[i], buffers[i]});
  return all;
}

API aclError aclopCompileAndExecuteV2(const char* name, int inputs, Tensor** input_tensors,
                                      Buffer** input_buffers, int outputs, Tensor** output_tensors,
                                      Buffer** output_buffers, void*, int, int, const char*,
                                      void* stream) {
  return run_operator(__func__, name, operands(inputs, input_tensors, input_buffers),
                      operands(outputs, output_tensors, output_buffers), stream);
}

API aclError aclopCompileAndExecute(const char* name, int inputs, Tensor** input_tensors,
                                    Buffer** input_buffers, int outputs, Tensor** output_tensors,
                                    Buffer** output_buffers, void* attributes, int engine,
                                    int compile, const char* path, void* stream) {
  return aclopCompileAndExecuteV2(name, inputs, input_tensors, input_buffers, outputs,
                                  output_tensors, output_buffers, attributes, engine, compile, path,
                                  stream);
}

API void aclAppLog(int, const char* function, const char*, uint32_t, const char* format, ...) {
  if (!knobs().verbose) return;
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s: ", function);
  std::vfprintf(stderr, format, arguments);
  std::fprintf(stderr, "\n");
  va_end(arguments);
}

API aclError aclrtGetSysParamOpt(int, int64_t* value) {
  *value = 0;
  return OK;
}

// What may pass unheard: settings, profiling, dumps, attributes of operators.
#define UNHEARD(stub)                                                                              \
  stub(aclSetCompileopt) stub(aclSetTensorDescName) stub(aclSetTensorFormat)                       \
      stub(aclSetTensorShape) stub(aclmdlFinalizeDump) stub(aclmdlInitDump) stub(aclmdlSetDump)    \
          stub(aclopCreateAttr) stub(aclopDestroyAttr) stub(aclopSetAttrBool)                      \
              stub(aclopSetAttrDataType) stub(aclopSetAttrFloat) stub(aclopSetAttrInt)             \
                  stub(aclopSetAttrListBool) stub(aclopSetAttrListFloat) stub(aclopSetAttrListInt) \
                      stub(aclopSetAttrListListInt) stub(aclopSetAttrString)                       \
                          stub(aclrtCtxSetSysParamOpt) stub(aclrtSetDeviceSatMode)                 \
                              stub(aclrtSetOpExecuteTimeOut) stub(aclrtSetSysParamOpt)             \
                                  stub(MsprofGetHashId) stub(MsprofRegisterCallback)               \
                                      stub(MsprofReportAdditionalInfo) stub(MsprofReportApi)       \
                                          stub(MsprofReportCompactInfo) stub(MsprofSysCycleTime)   \
                                              stub(aclrtGetLastError) stub(aclrtPeekAtLastError)   \
                                                  stub(aclmdlRICaptureThreadExchangeMode)

// What would do something, and does not here.
#define ABSENT(stub)                                                                              \
  stub(aclGetDeviceCapability) stub(aclrtBinaryGetFunction)                                       \
  stub(aclrtBinaryLoadFromData) stub(aclrtGetFunctionAddr)                                        \
  stub(aclrtMemSetPidToShareableHandle) stub(aclrtProcessReport)                                  \
  stub(rtDevBinaryRegister) stub(rtFunctionRegister)                                              \
  stub(rtGetC2cCtrlAddr) stub(rtKernelLaunch)                                                     \
  stub(aclrtIpcGetEventHandle) stub(aclrtIpcOpenEventHandle)

static long unheard(const char* name) {
  if (knobs().verbose) std::fprintf(stderr, "fakeacl: %s unheard\n", name);
  return OK;
}

#define STUB_UNHEARD(name) \
  API long name() { return unheard(__func__); }
#define STUB_ABSENT(name) \
  API long name() { return refuse(NOT_SUPPORTED, __func__, "not there"); }

UNHEARD(STUB_UNHEARD)
ABSENT(STUB_ABSENT)
