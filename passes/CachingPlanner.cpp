// The key is the whole request as text.

#include "passes/CachingPlanner.h"

using namespace dlc;

static void append(std::string &key, const std::vector<int64_t> &values) {
  for (int64_t value : values)
    key += std::to_string(value) + ',';
  key += ';';
}

static std::string keyOf(const rt::KernelRequest &request) {
  std::string key;
  append(key, {static_cast<int64_t>(request.op), request.groups, request.transposeA,
               request.transposeB, request.bias, request.relu, request.training,
               static_cast<int64_t>(request.math), request.threads});
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
