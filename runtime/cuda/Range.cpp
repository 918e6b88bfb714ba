#include "runtime/cuda/Range.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace dlc::rt {

Range::Range(const char *name, uint64_t number) : isOpen(name != nullptr) {
  if (!isOpen)
    return;
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = number;
  nvtxRangePushEx(&event);
}

Range::~Range() {
  if (isOpen)
    nvtxRangePop();
}

} // namespace dlc::rt

#else

namespace dlc::rt {

Range::Range(const char *, uint64_t) : isOpen(false) {}
Range::~Range() = default;

} // namespace dlc::rt

#endif
