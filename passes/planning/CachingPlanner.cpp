// The key is the whole request as text.

#include "passes/planning/CachingPlanner.h"

using namespace dlc;

static void append(std::string &key, const std::vector<int64_t> &values) {
  for (int64_t value : values)
    key += std::to_string(value) + ',';
  key += ';';
}

static std::string keyOf(const rt::KernelRequest &request) {
  std::string key;
  append(key,
         {static_cast<int64_t>(request.op), request.groups, request.transposeA, request.transposeB,
          request.bias, request.relu, static_cast<int64_t>(request.math), request.threads});
  for (const rt::OperandType &operand : request.operands) {
    append(key, operand.shape);
    key += std::to_string(static_cast<int>(operand.dtype)) +
           (operand.layout ? operand.layout->toString() : std::string("?")) + ';';
  }
  for (const auto *list : {&request.kernel, &request.strides, &request.paddingLow,
                           &request.paddingHigh, &request.dilations})
    append(key, *list);
  return key;
}

rt::CandidateList CachingPlanner::candidates(const rt::KernelRequest &request) noexcept {
  auto [entry, isNew] = answers.try_emplace(keyOf(request));
  if (isNew)
    entry->second = planner->candidates(request);
  return entry->second;
}

std::vector<uint8_t> CachingPlanner::finalise(const rt::KernelRequest &request,
                                              const rt::KernelCandidate &choice,
                                              std::string &reason) noexcept {
  std::string key =
      keyOf(request) + choice.implementation + ';' + std::to_string(choice.workspaceBytes) + ';';
  for (const rt::Layout &layout : choice.layouts)
    key += layout.toString() + ';';
  std::vector<uint8_t> &plan = plans[key];
  if (plan.empty()) // Without a plan there is a reason to give.
    plan = planner->finalise(request, choice, reason);
  return plan;
}
