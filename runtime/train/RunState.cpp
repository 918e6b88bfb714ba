#include "runtime/train/RunState.h"

#include "runtime/train/SavedEntry.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using nlohmann::json;

/// What no run reaches.
static constexpr double mostSteps = 1e15;

/// Sums may be infinite or NaN, which JSON lacks: their bits.
static uint64_t bitsOf(double value) { return std::bit_cast<uint64_t>(value); }

std::string RunState::toJson() const {
  json plateauList = json::array();
  for (const Plateau &plateau : plateaus)
    plateauList.push_back({{"scale", plateau.scale},
                           {"has_best", plateau.hasBest},
                           {"best", plateau.best},
                           {"bad_epochs", plateau.badEpochs}});
  std::vector<uint64_t> totalBits;
  totalBits.reserve(totals.size());
  for (double total : totals)
    totalBits.push_back(bitsOf(total));
  json state = {{"step", step},
                {"epoch", epoch},
                {"step_in_epoch", stepInEpoch},
                {"sample_position", samplePosition()},
                {"told", told},
                {"world", ranks},
                {"batch", batch},
                {"threads", threads},
                {"schedule_hash", scheduleHash},
                {"monitor",
                 {{"has_best", monitor.hasBest},
                  {"best", monitor.best},
                  {"best_epoch", monitor.bestEpoch},
                  {"epochs_without", monitor.epochsWithout}}},
                {"plateaus", plateauList},
                {"totals", totalBits},
                {"recipe", recipe},
                {"overrides", overrides}};
  return state.dump();
}

static SavedEntry savedState(const std::string &text, const std::string &path) {
  return {SavedEntry::Json::parse(text, nullptr, /*allow_exceptions=*/false),
          [path](const std::string &why) {
            return Error(ErrorCode::BadInput, "'" + path + "' is no checkpoint of a run" +
                                                  (why.empty() ? "" : ": " + why) +
                                                  "; start a new run from its weights with --init");
          }};
}

/// What says the same, or limits one another. An epoch has a step at least, of however many ranks.
static void requireAgreement(const RunState &state, const SavedEntry &from) {
  double position = static_cast<double>(state.stepInEpoch) * static_cast<double>(state.batch) *
                    static_cast<double>(state.ranks);
  SavedEntry saved = from.at("sample_position");
  if (saved.number() != position || position > mostSteps)
    throw saved.wrong("step_in_epoch x batch x world");
  int64_t least = state.epoch + (state.stepInEpoch > 0 ? 1 : 0);
  if (state.step < least || (state.step > 0 && least == 0))
    throw from.at("step").wrong("what agrees with epoch " + std::to_string(state.epoch) +
                                " and step_in_epoch " + std::to_string(state.stepInEpoch));
}

/// What a run takes from a checkpoint as if it had been given on the command line; the rest of a
/// recipe is compared with what the model and the data say.
static void requireGiven(const SavedEntry &recipe) {
  auto check = [&](const char *name, auto isGood, const char *wanted) {
    if (recipe.has(name) && !isGood(recipe.at(name).json()))
      throw recipe.at(name).wrong(wanted);
  };
  using Json = SavedEntry::Json;
  auto isOneOf = [](const char *a, const char *b) {
    return [=](const Json &value) { return value == a || value == b; };
  };
  check(
      "lr",
      [](const Json &value) {
        return value.is_null() || (value.is_number() && ranges::notNegative.contains(value));
      },
      "a finite number, 0 or more");
  check("scale-lr", isOneOf("linear", "none"), "linear or none");
  check(
      "seed", [](const Json &value) { return value.is_number_unsigned(); },
      "a whole number from 0 to below 2^64");
  check("shuffle", [](const Json &value) { return value.is_boolean(); }, "true or false");
  check("on-nan", isOneOf("stop", "continue"), "stop or continue");
  if (recipe.has("accumulate"))
    recipe.at("accumulate").count(ranges::ranks);
  if (!recipe.has("length") || recipe.at("length").json().is_null())
    return;
  SavedEntry length = recipe.at("length");
  if (!length.json().is_object())
    throw length.wrong("epochs or steps");
  length.at(length.has("steps") ? "steps" : "epochs").count(ranges::positiveCount);
}

RunState RunState::fromJson(const std::string &text, const std::string &path) {
  SavedEntry from = savedState(text, path);
  RunState state;
  state.step = from.at("step").count({0, mostSteps});
  state.epoch = from.at("epoch").count(ranges::count);
  state.stepInEpoch = from.at("step_in_epoch").count(ranges::count);
  state.told = from.at("told").flag();
  state.ranks = static_cast<int>(from.at("world").count(ranges::positiveCount));
  state.batch = from.at("batch").count(ranges::positiveCount);
  state.threads = static_cast<unsigned>(from.at("threads").count(ranges::positiveCount));
  state.scheduleHash = from.at("schedule_hash").text();
  requireAgreement(state, from);
  SavedEntry monitor = from.at("monitor");
  state.monitor.hasBest = monitor.at("has_best").flag();
  state.monitor.best = monitor.at("best").number();
  state.monitor.bestEpoch = monitor.at("best_epoch").count(ranges::count);
  if (state.monitor.bestEpoch > state.epoch)
    throw monitor.at("best_epoch").wrong("an epoch that has been");
  state.monitor.epochsWithout = monitor.at("epochs_without").count(ranges::count);
  for (const SavedEntry &entry : from.at("plateaus").list()) {
    Plateau &plateau = state.plateaus.emplace_back();
    plateau.scale = entry.at("scale").number();
    plateau.hasBest = entry.at("has_best").flag();
    plateau.best = entry.at("best").number();
    plateau.badEpochs = entry.at("bad_epochs").count(ranges::count);
  }
  for (const SavedEntry &total : from.at("totals").list()) {
    if (!total.json().is_number_unsigned())
      throw total.wrong("the bits of a number, as a whole number");
    state.totals.push_back(std::bit_cast<double>(total.json().get<uint64_t>()));
  }
  if (from.has("recipe")) {
    if (from.at("recipe").json().is_object())
      requireGiven(from.at("recipe"));
    state.recipe = from.at("recipe").json();
  }
  for (const SavedEntry &change : from.at("overrides").list())
    state.overrides.push_back({{"after_step", change.at("after_step").count({0, mostSteps})},
                               {"name", change.at("name").text()},
                               {"was", change.at("was").json()},
                               {"now", change.at("now").json()}});
  return state;
}

} // namespace dlc::rt
