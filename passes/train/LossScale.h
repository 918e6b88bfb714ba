// Dynamic loss scaling for gradients in f16, decided on the device: no step waits for the host.
//
// The rules and numbers are those of torch.amp.GradScaler's defaults: the factor begins at 65,536,
// is halved by a step with a gradient that is not finite, and doubled after 2,000 steps without
// one. It is a power of two, so that scaling and unscaling round nothing.
#pragma once

#include "dialects/NN/Role.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

class LossScale {
public:
  /// True if the model's gradients may be of a type whose range they leave.
  static bool isNeeded(nn::ModelOp model);
  /// The factor of the losses in this step; adds its variable to the model if that is missing.
  static mlir::Value read(mlir::OpBuilder &builder, mlir::Location loc, nn::ModelOp model);
  /// Steps before this one that changed nothing, f32.
  static mlir::Value readSkipped(mlir::OpBuilder &builder, mlir::Location loc, nn::ModelOp model);

  /// Divides the sums over ranks by the factor, finds out whether all of them are finite and
  /// updates the factor. The gradients, which are not empty and in the order of their block, come
  /// to stand behind each other, since whatever uses one waits for all.
  LossScale(nn::ModelOp model, llvm::ArrayRef<nn::GradientOp> gradients);
  /// All assignments of the program but the factor's own leave their variables as they are if a
  /// gradient is not finite.
  void guardAssignments();

private:
  void unscale(llvm::ArrayRef<nn::GradientOp> gradients);
  void updateState();

  nn::ModelOp model;
  nn::RoleStamp stamp;
  mlir::ImplicitLocOpBuilder b;
  mlir::Value scale, isFinite;
};

} // namespace dlc
