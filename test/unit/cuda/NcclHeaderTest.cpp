// What runtime/cuda declares of NCCL against its own header, where this is.

#include "runtime/cuda/libraries/Nccl.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

#include <cstdlib>

#if defined(DLC_CUDNN_HEADERS) && __has_include(<nccl.h>)
#include <nccl.h>

namespace dlc::test {
template <> struct Passed<ncclUniqueId> {
  using Type = rt::nccl::UniqueId;
  static_assert(sizeof(Type) == sizeof(ncclUniqueId));
};
} // namespace dlc::test

namespace nccl = dlc::rt::nccl;
CALL(nccl, getErrorString, ncclGetErrorString);
CALL(nccl, getVersion, ncclGetVersion);
CALL(nccl, getUniqueId, ncclGetUniqueId);
CALL(nccl, commInitRank, ncclCommInitRank);
CALL(nccl, commGetAsyncError, ncclCommGetAsyncError);
CALL(nccl, commDestroy, ncclCommDestroy);
CALL(nccl, commAbort, ncclCommAbort);
CALL(nccl, commRegister, ncclCommRegister);
CALL(nccl, commDeregister, ncclCommDeregister);
CALL(nccl, allReduce, ncclAllReduce);
CALL(nccl, allGather, ncclAllGather);
CALL(nccl, send, ncclSend);
CALL(nccl, recv, ncclRecv);
CALL(nccl, groupStart, ncclGroupStart);
CALL(nccl, groupEnd, ncclGroupEnd);
SAME(nccl::DataType::Float32, ncclFloat32);
SAME(nccl::DataType::BFloat16, ncclBfloat16);
SAME(nccl::Reduction::Sum, ncclSum);
SAME(nccl::success, ncclSuccess);
TEST(CudaHeaders, AgreeWithWhatIsDeclaredOfNccl) { SUCCEED() << "compiled, so they do"; }

#else

TEST(CudaHeaders, AgreeWithWhatIsDeclaredOfNccl) {
  if (std::getenv("DLC_REQUIRE_CUDA"))
    FAIL() << "DLC_REQUIRE_CUDA is set and NCCL's header was not found";
  GTEST_SKIP() << "no header of NCCL";
}

#endif
