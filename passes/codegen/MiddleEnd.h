// LLVM's passes between emission and the back ends.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace dlc {

/// Optimises a module for the machine, without LLVM's own vectorisers: kernels are in vectors
/// already.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace dlc
