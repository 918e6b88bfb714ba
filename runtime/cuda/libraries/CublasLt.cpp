#include "runtime/cuda/libraries/CublasLt.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/SharedLibrary.h"

#include <optional>

namespace dlc::rt::cublas {
namespace {

std::optional<Functions> load(std::string &reason) {
  SharedLibrary library("libcublasLt.so.13");
  Functions found{};
  library.find("cublasLtGetVersion", found.getVersion);
  library.find("cublasLtGetStatusString", found.getStatusString);
  library.find("cublasLtCreate", found.create);
  library.find("cublasLtDestroy", found.destroy);
  library.find("cublasLtMatmulDescCreate", found.matmulDescCreate);
  library.find("cublasLtMatmulDescDestroy", found.matmulDescDestroy);
  library.find("cublasLtMatmulDescSetAttribute", found.matmulDescSetAttribute);
  library.find("cublasLtMatrixLayoutCreate", found.matrixLayoutCreate);
  library.find("cublasLtMatrixLayoutDestroy", found.matrixLayoutDestroy);
  library.find("cublasLtMatmulPreferenceCreate", found.matmulPreferenceCreate);
  library.find("cublasLtMatmulPreferenceDestroy", found.matmulPreferenceDestroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", found.matmulPreferenceSetAttribute);
  library.find("cublasLtMatmulAlgoGetHeuristic", found.matmulAlgoGetHeuristic);
  library.find("cublasLtMatmul", found.matmul);
  reason = library.failure();
  return reason.empty() ? std::optional(found) : std::nullopt;
}

} // namespace

void Functions::require(Status status, const std::string &doing) const {
  if (status != success)
    throw Error(ErrorCode::Runtime,
                "cannot " + doing + ": cuBLASLt says " + getStatusString(status));
}

const Functions *open(std::string &reason) {
  static std::string failure;
  static const std::optional<Functions> functions = load(failure);
  reason = failure;
  return functions ? &*functions : nullptr;
}

} // namespace dlc::rt::cublas
