// What an op is in a training step. Who builds the step writes it down (dlc-differentiate,
// dlc-apply-optimizer, dlc-insert-all-reduce); who rewrites ops gives new ones the role of those
// that they stand for; nobody has to find it again in shapes or users.
#pragma once

#include "dialects/NN/NN.h"

#include "mlir/IR/PatternMatch.h"

namespace dlc::nn {

/// The attribute's name.
inline constexpr llvm::StringLiteral roleName = "nn.role";

struct Role {
  Phase phase = Phase::Forward;
  LayerKind kind = LayerKind::Other;
  /// The variable of whose gradient, statistic or update the op computes a part, or null.
  mlir::FlatSymbolRefAttr variable = {};

  bool operator==(const Role &) const = default;
};

/// That of the forward pass if the op has no attribute.
Role roleOf(mlir::Operation *op);
void setRole(mlir::Operation *op, const Role &role);
inline Phase phaseOf(mlir::Operation *op) { return roleOf(op).phase; }

/// The role of one op that does the work of several: it is due when the first of them is, and
/// belongs to a variable if they all do.
Role mergedRole(llvm::ArrayRef<mlir::Operation *> ops);

/// Listens to a builder: new ops get the role, but for those that compute nothing (constants,
/// reads, nn.gradient).
class RoleStamp : public mlir::RewriterBase::Listener {
public:
  RoleStamp() = default;
  explicit RoleStamp(const Role &role) : role(role) {}

  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint former) override;
  /// In a greedy rewrite: what a pattern builds stands for the op that it matches.
  void notifyPatternBegin(const mlir::Pattern &pattern, mlir::Operation *op) override {
    role = roleOf(op);
  }

  Role role;
};

} // namespace dlc::nn
