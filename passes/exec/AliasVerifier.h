// Checks that no instruction writes over what it still reads.
#pragma once

#include "dialects/Exec/Exec.h"

namespace dlc {

/// A buffer that an instruction writes overlaps none of its other buffers, unless a generated
/// kernel reads each element in that very place before it writes it.
class AliasVerifier {
public:
  explicit AliasVerifier(mlir::SymbolTable &kernels) : kernels(kernels) {}

  /// Fails with a diagnostic at the instruction.
  llvm::LogicalResult verify(mlir::Operation *instruction);

private:
  bool isElementwise(mlir::Operation *instruction, unsigned read, unsigned written);

  mlir::SymbolTable &kernels;
};

} // namespace dlc
