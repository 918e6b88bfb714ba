#include "passes/planning/PlanningTarget.h"

#include "passes/planning/CachingPlanner.h"
#include "runtime/core/BackEnd.h"

#include "mlir/IR/DialectInterface.h"

#include <map>

using namespace mlir;
using namespace dlc;

std::optional<PlanningTarget> PlanningTarget::of(nn::ModelOp model) {
  auto name = model->getAttrOfType<StringAttr>("target");
  auto threads = model->getAttrOfType<IntegerAttr>("threads");
  auto math = model->getAttrOfType<StringAttr>("math");
  if (!name || !threads || !math || threads.getInt() < 1)
    return std::nullopt;
  return PlanningTarget{name.str(), static_cast<unsigned>(threads.getInt()),
                        math.getValue() == "strict" ? rt::Math::Strict : rt::Math::Fast};
}

void PlanningTarget::writeTo(nn::ModelOp model) const {
  Builder builder(model.getContext());
  model->setAttr("target", builder.getStringAttr(name));
  model->setAttr("threads", builder.getI64IntegerAttr(threads));
  model->setAttr("math", builder.getStringAttr(math == rt::Math::Strict ? "strict" : "fast"));
}

namespace {
/// The planners of a context, kept where a context keeps what lives as long as it does.
class OpenPlanners : public DialectInterface::Base<OpenPlanners> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OpenPlanners)
  explicit OpenPlanners(Dialect *dialect) : Base(dialect) {}

  static OpenPlanners &of(MLIRContext *context) {
    auto *dialect = context->getOrLoadDialect<nn::NNDialect>();
    auto *planners = dialect->getRegisteredInterface<OpenPlanners>();
    return planners ? *planners : dialect->addInterface<OpenPlanners>();
  }

  std::shared_ptr<rt::KernelPlanner> open(const std::string &target, unsigned threads,
                                          std::string &reason) {
    std::shared_ptr<rt::KernelPlanner> &planner = planners[{target, threads}];
    if (planner)
      return planner;
    std::unique_ptr<rt::KernelPlanner> opened;
    if (const rt::BackEnd *backEnd = rt::findBackEnd(target, reason))
      opened = backEnd->makePlanner(target, threads, reason);
    if (!opened)
      return nullptr;
    if (!opened->target().loops.areConsistent()) {
      reason = "the limits of loops of target '" + target + "' contradict each other";
      return nullptr;
    }
    planner = std::make_shared<CachingPlanner>(std::move(opened));
    // A model names its target by what "native" stands for.
    return planners.try_emplace({PlanningTarget::nameOf(planner->target()), threads}, planner)
        .first->second;
  }

private:
  std::map<std::pair<std::string, unsigned>, std::shared_ptr<rt::KernelPlanner>> planners;
};
} // namespace

std::shared_ptr<rt::KernelPlanner> dlc::openPlanner(MLIRContext *context, const std::string &target,
                                                    unsigned threads, std::string &reason) {
  return OpenPlanners::of(context).open(target, threads, reason);
}

std::shared_ptr<rt::KernelPlanner> dlc::openPlanner(nn::ModelOp model) {
  std::optional<PlanningTarget> target = PlanningTarget::of(model);
  if (!target) {
    model.emitError("has no target, threads and math; run dlc-assign-layouts first");
    return nullptr;
  }
  std::string reason;
  std::shared_ptr<rt::KernelPlanner> planner =
      openPlanner(model.getContext(), target->name, target->threads, reason);
  if (!planner)
    model.emitError(reason);
  return planner;
}
