// How far a model has been lowered: the attribute `stage` of nn.model.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace dlc::nn {

/// In the order of the pipelines.
enum class Stage { NN, Train, Schedule, Exec };

inline constexpr llvm::StringLiteral stageNames[] = {"nn", "train", "schedule", "exec"};

inline llvm::StringRef nameOf(Stage stage) { return stageNames[static_cast<size_t>(stage)]; }

/// Nothing for a name that is no stage's.
inline std::optional<Stage> stageNamed(llvm::StringRef name) {
  auto *found = llvm::find(stageNames, name);
  if (found == std::end(stageNames))
    return std::nullopt;
  return static_cast<Stage>(found - std::begin(stageNames));
}

} // namespace dlc::nn
