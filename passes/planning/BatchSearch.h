// The largest batch whose memory plan stays below a limit.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>

namespace dlc {

/// Bytes that a model needs at a batch; nothing if it cannot be planned at that batch.
using BytesOfBatch = llvm::function_ref<std::optional<uint64_t>(int64_t)>;

/// The largest batch in [1, most] that needs at most `limit` bytes, 0 if even 1 needs more; nothing
/// if a plan fails. Plans need nearly a + b x batch bytes, so that few are made.
std::optional<int64_t> largestBatch(BytesOfBatch bytesOf, uint64_t limit, int64_t most);

} // namespace dlc
