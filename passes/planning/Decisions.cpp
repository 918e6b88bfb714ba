// One table. Options and attributes are compared in one canonical text: targets by the name that
// their planner gives itself, links by their figures.

#include "passes/planning/Decisions.h"

#include "dialects/NN/Stage.h"
#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/PlanningTarget.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <charconv>

using namespace mlir;
using namespace dlc;

namespace {
struct Decision {
  StringLiteral option;    // of dlc compile
  StringLiteral attribute; // of the model, which the deciding pass writes
  nn::Stage stage;         // the first one whose text has it decided
  StringLiteral fallback;  // what a missing attribute stands for
};

/// A model of stage nn may be written by hand, without the attribute: then nothing is decided yet.
constexpr Decision decisions[] = {
    {"precision", "precision", nn::Stage::Train, DefaultDecisions::precision},
    {"source", "sources", nn::Stage::Train, ""},
    {"wire", "wire", nn::Stage::Train, DefaultDecisions::wire},
    {"target", "target", nn::Stage::Schedule, DefaultDecisions::target},
    {"threads", "threads", nn::Stage::Schedule, "1"},
    {"math", "math", nn::Stage::Schedule, DefaultDecisions::math},
    {"bucket-size", "bucket_size", nn::Stage::Schedule, "0"},
    {"link", "link", nn::Stage::Schedule, DefaultDecisions::link},
    {"no-overlap", "no_overlap", nn::Stage::Schedule, "false"}};

/// The shortest text that reads back as the number.
std::string textOf(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string textOf(const Link &link) {
  return textOf(link.gbitPerSecond) + ":" + textOf(link.latencyMicroseconds);
}

std::optional<Link> linkOf(Attribute attribute) {
  auto dictionary = dyn_cast_if_present<DictionaryAttr>(attribute);
  if (!dictionary)
    return std::nullopt;
  return Link{dictionary.getAs<FloatAttr>("gbit_per_s").getValueAsDouble(),
              dictionary.getAs<FloatAttr>("latency_us").getValueAsDouble()};
}

std::string textOf(Attribute attribute) {
  if (std::optional<Link> link = linkOf(attribute))
    return textOf(*link);
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue() ? "true" : "false";
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return std::to_string(number.getInt());
  return cast<StringAttr>(attribute).str();
}

/// The canonical text of a given value; nothing, with the reason in `error`, if there is none.
std::optional<std::string> canonical(MLIRContext *context, const GivenOption &given,
                                     std::string &error) {
  if (given.name == "link")
    return textOf(*Link::parse(given.value));
  if (given.name == "source") { // in any order
    SmallVector<StringRef> sources = llvm::to_vector(llvm::split(StringRef(given.value), ','));
    llvm::sort(sources);
    return llvm::join(sources, ",");
  }
  if (given.name != "target")
    return given.value;
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(context, given.value, 1, error);
  if (!planner)
    return std::nullopt;
  return PlanningTarget::nameOf(planner->target());
}
} // namespace

Link dlc::plannedLink(nn::ModelOp model) {
  return linkOf(model->getAttr("link")).value_or(*Link::parse(DefaultDecisions::link));
}

std::string dlc::findContradiction(nn::ModelOp model, const std::vector<GivenOption> &given) {
  for (const GivenOption &option : given) {
    const Decision *decision =
        llvm::find_if(decisions, [&](const Decision &it) { return it.option == option.name; });
    assert(decision != std::end(decisions) && "every option that plans is in the table");
    Attribute attribute = model->getAttr(decision->attribute);
    bool isDecided = attribute || *nn::stageNamed(model.getStage()) >= decision->stage;
    if (!isDecided)
      continue;
    std::string planned = attribute ? textOf(attribute) : decision->fallback.str(), error;
    std::optional<std::string> wanted = canonical(model.getContext(), option, error);
    if (!wanted)
      return error;
    if (*wanted != planned)
      return llvm::formatv("is at stage {0} and was made with --{1}={2}, which --{1}={3} "
                           "contradicts: leave --{1} out, or compile from text of a stage before "
                           "{4}",
                           model.getStage(), option.name, planned, option.value,
                           nn::nameOf(decision->stage));
  }
  return "";
}
