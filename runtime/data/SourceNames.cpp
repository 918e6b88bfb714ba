#include "runtime/data/SourceNames.h"

#include <algorithm>
#include <filesystem>

namespace dlc::rt {

bool isRestoration(const artifact::DataChainT &chain) {
  return std::any_of(chain.steps.begin(), chain.steps.end(),
                     [](const auto &call) { return call->name == "denormalize"; });
}

std::vector<std::string> sourceNames(const artifact::DataPipelineT &pipeline,
                                     const std::vector<std::string> &knownInputs) {
  std::vector<std::string> names, made;
  auto addNew = [&](std::vector<std::string> &to, const std::string &name) {
    if (std::ranges::count(names, name) + std::ranges::count(made, name) == 0)
      to.push_back(name);
  };
  for (const auto &source : pipeline.sources)
    addNew(names, source->name);
  for (const auto &chain : pipeline.chains)
    if (!isRestoration(*chain)) {
      for (const std::string &name : chain->inputs)
        addNew(names, name);
      for (const std::string &name : chain->outputs)
        addNew(made, name);
    }
  for (const std::string &name : knownInputs)
    addNew(names, name);
  return names;
}

ImageRule imageRule(const std::string &source, const std::vector<std::string> &sourceNames,
                    const DataPaths &paths) {
  ImageRule rule{source, sourceNames};
  std::erase(rule.others, source);
  std::error_code ignored;
  for (const auto &[name, path] : paths)
    for (const auto &[other, otherPath] : paths)
      rule.isShared = rule.isShared || (name == source && other != source &&
                                        std::filesystem::equivalent(path, otherPath, ignored));
  return rule;
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

} // namespace dlc::rt
