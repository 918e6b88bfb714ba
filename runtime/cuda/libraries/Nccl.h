// The part of NCCL that dlc uses, declared here, as cuDNN's is in Cudnn.h.
#pragma once

#include "runtime/cuda/libraries/Cudart.h"

#include <array>
#include <cstddef>
#include <string>

namespace dlc::rt::nccl {

using Status = int;
constexpr Status success = 0;

using Communicator = struct CommunicatorState *;
/// What joins the ranks of a communicator, made by one of them.
struct UniqueId {
  std::array<char, 128> bytes;
};

enum class DataType : int { Float32 = 7, BFloat16 = 9 };
enum class Reduction : int { Sum = 0 };

/// Under NCCL's names without their prefix.
struct Functions {
  const char *(*getErrorString)(Status status);
  Status (*getVersion)(int *version);
  Status (*getUniqueId)(UniqueId *id);
  Status (*commInitRank)(Communicator *made, int ranks, UniqueId id, int rank);
  Status (*commGetAsyncError)(Communicator communicator, Status *error);
  Status (*commDestroy)(Communicator communicator);
  Status (*commAbort)(Communicator communicator);
  Status (*commRegister)(Communicator communicator, void *memory, size_t bytes, void **made);
  Status (*commDeregister)(Communicator communicator, void *registration);
  Status (*allReduce)(const void *from, void *to, size_t count, DataType type, Reduction reduction,
                      Communicator communicator, cudart::Stream stream);
  Status (*allGather)(const void *from, void *to, size_t count, DataType type,
                      Communicator communicator, cudart::Stream stream);
  Status (*send)(const void *from, size_t count, DataType type, int peer, Communicator communicator,
                 cudart::Stream stream);
  Status (*recv)(void *to, size_t count, DataType type, int peer, Communicator communicator,
                 cudart::Stream stream);
  Status (*groupStart)();
  Status (*groupEnd)();

  /// Throws Error(Runtime), as in "cannot `doing`: NCCL says ...", if a call failed.
  void require(Status status, const std::string &doing) const;
};

/// NCCL of this machine, 2.19 at least, found as cuDNN is; null with `reason` set if there is none.
/// It stays open.
const Functions *open(std::string &reason);

} // namespace dlc::rt::nccl
