#include "dialects/NN/ParameterPatterns.h"

#include "runtime/artifact/NearNames.h"

using namespace mlir;

namespace dlc::nn {

FailureOr<ParameterPatterns> ParameterPatterns::create(ModelOp model, StringRef what,
                                                       ArrayRef<Attribute> texts) {
  ParameterPatterns result;
  for (Attribute entry : texts) {
    auto text = dyn_cast<StringAttr>(entry);
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(text ? text.getValue() : "[");
    if (!glob)
      return model.emitOpError("has ")
             << what << " pattern " << entry << ": " << llvm::toString(glob.takeError());
    result.patterns.push_back(std::move(*glob));
  }
  return result;
}

std::optional<size_t> ParameterPatterns::firstMatch(StringRef parameter) const {
  auto found = llvm::find_if(
      patterns, [&](const llvm::GlobPattern &pattern) { return pattern.match(parameter); });
  if (found == patterns.end())
    return std::nullopt;
  return found - patterns.begin();
}

std::string patternFault(ModelOp model, StringRef pattern) {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (!glob)
    return "is no pattern: " + llvm::toString(glob.takeError());
  std::vector<std::string> names;
  for (auto variable : model.getBody().getOps<VariableOp>())
    if (variable.getKind() == VariableKind::Parameter)
      names.push_back(variable.getSymName().str());
  if (llvm::any_of(names, [&](const std::string &name) { return glob->match(name); }))
    return "";
  if (names.empty())
    return "matches nothing: the model has no parameters";
  return "matches no parameter of the model; near it are " + rt::nearNames(pattern.str(), names);
}

} // namespace dlc::nn
