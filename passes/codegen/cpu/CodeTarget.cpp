#include "passes/codegen/cpu/CodeTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace dlc;

CodeTarget CodeTarget::of(const rt::PlannerTarget &target) {
  CodeTarget code;
  code.cpu = "x86-64";
  for (const std::string &feature : target.features)
    code.features += (code.features.empty() ? "+" : ",+") + feature;
  code.vectorBytes = target.vectorBits / 8;
  return code;
}

bool CodeTarget::has(llvm::StringRef feature) const {
  return llvm::is_contained(llvm::split(features, ','), ("+" + feature).str());
}
