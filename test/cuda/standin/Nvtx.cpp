// A tool that listens to NVTX's ranges, as Nsight Systems does: writes "> NAME NUMBER" where one
// begins and "<" where it ends to $DLC_STANDIN_RANGES, of a process named by
// $NVTX_INJECTION64_PATH.

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

FILE *output() {
  static FILE *file = std::fopen(std::getenv("DLC_STANDIN_RANGES"), "w");
  return file;
}

int push(const nvtxEventAttributes_t *event) {
  std::fprintf(output(), "> %s %llu\n", event->message.ascii,
               static_cast<unsigned long long>(event->payload.ullValue));
  return 0;
}

int pop() {
  std::fputs("<\n", output());
  return 0;
}

template <typename Function> NvtxFunctionPointer pointer(Function *function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

} // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable) {
  const auto *callbacks =
      static_cast<const NvtxExportTableCallbacks *>(getExportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
    return 0;
  *table[NVTX_CBID_CORE_RangePushEx] = pointer(push);
  *table[NVTX_CBID_CORE_RangePop] = pointer(pop);
  return 1;
}
