// Compiles a cluster, runs its stages on real memory, and evaluates the same ops with the reference
// evaluator.
//
// Memory starts as NaN bytes and ends, in a second run begins, at a page that must not be touched;
// chunks run last to first, and results' padding must come out as zero. What is generated for a GPU
// runs beside it on the emulator, with the limits of that target.
#pragma once

#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/cpu/GenerateKernels.h"
#include "runtime/cpu/CpuTarget.h"
#include "runtime/cpu/GeneratedCode.h"
#include "test/reference/Evaluator.h"

#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace dlc::test {

struct Argument {
  std::string type; // text of the tensor type
  double low = -2, high = 2;
};

using Aliases = std::vector<std::pair<std::string, std::string>>;

/// This machine.
CodeTarget hostCodeTarget();

class ClusterRunner {
public:
  /// `ops` is the cluster's text with arguments %0, %1...; `results` are pairs of value and type;
  /// `aliases` are pairs of a name like !t and the type it stands for; `beside` are clusters that
  /// are compiled with it, and come first. All are planned with `limits`.
  ClusterRunner(Aliases aliases, std::vector<Argument> arguments, std::string ops,
                std::vector<std::pair<std::string, std::string>> results,
                CodeTarget target = hostCodeTarget(), const std::string &beside = "",
                const rt::LoopLimits &limits = rt::CpuTarget::loops());

  /// A cluster with this body; there is no reference for it.
  explicit ClusterRunner(mlir::Region &body);

  /// Runs both on the same random operands. Each element must be within `ulps` units of f32's last
  /// place of the result's magnitude, plus `absolute`.
  void check(double ulps = 4, double absolute = 1e-30);
  /// Runs the compiled cluster on given logical operands.
  std::vector<reference::Tensor> run(const std::vector<reference::Tensor> &operands);
  std::vector<reference::Tensor> expected(const std::vector<reference::Tensor> &operands);
  /// What the reference evaluator has for a cluster's body.
  static std::vector<reference::Tensor> evaluate(mlir::Region &body,
                                                 const std::vector<reference::Tensor> &operands);
  std::vector<reference::Tensor> randomOperands(unsigned seed);

  /// Runs what is generated for a GPU.
  std::vector<reference::Tensor> runOnGpu(const std::vector<reference::Tensor> &operands);
  /// The same of a body that may be none for the CPU.
  static std::vector<reference::Tensor> runOnGpu(mlir::Region &body,
                                                 const std::vector<reference::Tensor> &operands);
  /// Whether what is yielded may have other bits there than on the CPU: it is added up in another
  /// order, and the CPU's functions of f64 are a library's.
  static bool mayDifferOnGpu(mlir::Value yielded);

  GeneratedKernel plan();
  mlir::Block &cluster();
  /// The compiled kernel of a stage.
  const rt::KernelRecord &kernel(unsigned stage);
  std::string linalgText, llvmText;

  /// A module of one cluster "c" with that body; and that cluster's body in such a module.
  static mlir::OwningOpRef<mlir::Operation *> moduleOf(mlir::Region &body);
  static mlir::Region &bodyIn(mlir::Operation *module);

private:
  void compile(const CodeTarget &target);
  void compare(const std::vector<reference::Tensor> &got,
               const std::vector<reference::Tensor> &want, double ulps, double absolute);
  void checkOnGpu(const std::vector<reference::Tensor> &operands,
                  const std::vector<reference::Tensor> &onCpu,
                  const std::vector<reference::Tensor> &want, double ulps, double absolute);

  rt::LoopLimits limits;
  mlir::MLIRContext context; // of clusters given as text
  mlir::OwningOpRef<mlir::Operation *> module;
  std::vector<Argument> arguments;
  std::vector<std::pair<std::string, std::string>> results;
  std::unique_ptr<rt::GeneratedCode> code;
};

} // namespace dlc::test
