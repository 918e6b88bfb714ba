#include "dialects/NN/Role.h"

using namespace mlir;
using namespace dlc::nn;

Role dlc::nn::roleOf(Operation *op) {
  auto attribute = op->getAttrOfType<RoleAttr>(roleName);
  return attribute ? Role{attribute.getPhase(), attribute.getKind(), attribute.getVariable()}
                   : Role();
}

void dlc::nn::setRole(Operation *op, const Role &role) {
  if (role == Role())
    op->removeAttr(roleName);
  else
    op->setAttr(roleName, RoleAttr::get(op->getContext(), role.phase, role.kind, role.variable));
}

Role dlc::nn::mergedRole(ArrayRef<Operation *> ops) {
  Role merged = roleOf(ops.front());
  for (Operation *op : ops.drop_front()) {
    Role role = roleOf(op);
    merged.phase = std::min(merged.phase, role.phase);
    merged.kind = std::max(merged.kind, role.kind);
    if (merged.variable != role.variable)
      merged.variable = {};
  }
  return merged;
}

void RoleStamp::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint former) {
  if (!former.isSet() && !op->hasAttr(roleName) && !isa<ConstantOp, ReadOp, GradientOp>(op))
    setRole(op, role);
}
