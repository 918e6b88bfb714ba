#include "runtime/train/RunState.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/train/SavedEntry.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using nlohmann::json;

/// More steps than any run does.
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
  json state = {
      {"step", step},
      {"epoch", epoch},
      {"step_in_epoch", stepInEpoch},
      {"sample_position", samplePosition()},
      {"steps_per_epoch", stepsPerEpoch},
      {"steps_per_epoch_since",
       {{"step", since.step}, {"epoch", since.epoch}, {"step_in_epoch", since.stepInEpoch}}},
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
  if (!platform.empty())
    state["platform"] = platform;
  return jsonText(state);
}

static SavedEntry savedState(const std::string &text, const std::string &path) {
  return {SavedEntry::Json::parse(text, nullptr, /*allow_exceptions=*/false),
          [path](const std::string &why) {
            return Error(ErrorCode::BadInput, "'" + path + "' is no checkpoint of a run" +
                                                  (why.empty() ? "" : ": " + why) +
                                                  "; start a new run from its weights with --init");
          }};
}

/// Checks that the steps of the run, its epochs and the samples of the epoch begun agree.
static void requireSamePlace(const RunState &state, const SavedEntry &from) {
  double position = static_cast<double>(state.stepInEpoch) * static_cast<double>(state.batch) *
                    static_cast<double>(state.ranks);
  SavedEntry saved = from.at("sample_position");
  if (saved.number() != position || position > mostSteps)
    throw saved.wrong("step_in_epoch x batch x world");
  std::string perEpoch = "steps_per_epoch " + std::to_string(state.stepsPerEpoch);
  if (state.stepInEpoch > state.stepsPerEpoch)
    throw from.at("step_in_epoch").wrong("at most " + perEpoch);
  // A whole epoch has a step at least, of however many ranks.
  SavedEntry since = from.at("steps_per_epoch_since");
  const auto &[step, epoch, stepInEpoch] = state.since;
  if (stepInEpoch > state.stepsPerEpoch)
    throw since.at("step_in_epoch").wrong("at most " + perEpoch);
  if (step < epoch + (stepInEpoch > 0 ? 1 : 0))
    throw since.at("step").wrong("as many as its epoch " + std::to_string(epoch) +
                                 " and step_in_epoch " + std::to_string(stepInEpoch) + " take");
  int64_t wanted =
      step + state.place(state.stepsPerEpoch) - epoch * state.stepsPerEpoch - stepInEpoch;
  if (state.step != wanted || state.step < step)
    throw from.at("step").wrong(
        (wanted < step ? "at least " + std::to_string(step) : std::to_string(wanted)) +
        ": epoch is " + std::to_string(state.epoch) + ", step_in_epoch " +
        std::to_string(state.stepInEpoch) + ", " + perEpoch +
        (step > 0 ? " since step " + std::to_string(step) : ""));
}

/// Checks totals, monitor and plateaus against the epochs done and the epoch begun.
static void requireEpochs(const RunState &state, const SavedEntry &from) {
  std::string epochs = "epoch is " + std::to_string(state.epoch);
  if (state.stepInEpoch == 0 && !state.told)
    throw from.at("told").wrong("true: step_in_epoch is 0");
  if (state.stepInEpoch == 0 && !state.totals.empty())
    throw from.at("totals").wrong("an empty list: step_in_epoch is 0");
  SavedEntry monitor = from.at("monitor");
  int64_t best = state.monitor.bestEpoch;
  if (best > state.epoch)
    throw monitor.at("best_epoch").wrong("an epoch that has been: " + epochs);
  if (state.monitor.hasBest != (best > 0))
    throw monitor.at("has_best")
        .wrong(std::string(best > 0 ? "true" : "false") + ": best_epoch is " +
               std::to_string(best));
  // Fewer where another figure has been watched since.
  bool isOther =
      std::any_of(state.overrides.begin(), state.overrides.end(), [](const json &change) {
        return change["name"] == "monitor" || change["name"] == "val";
      });
  int64_t most = state.epoch - best;
  if (isOther ? state.monitor.epochsWithout > most : state.monitor.epochsWithout != most)
    throw monitor.at("epochs_without")
        .wrong((isOther ? "at most " : "") + std::to_string(most) + ": " + epochs +
               ", best_epoch " + std::to_string(best));
  for (const SavedEntry &plateau : from.at("plateaus").list())
    if (plateau.at("bad_epochs").json() > state.epoch)
      throw plateau.at("bad_epochs").wrong("at most the epochs done: " + epochs);
}

/// Checks the entries that the recipe implies.
static void requireRecipe(const RunState &state, const SavedEntry &from) {
  SavedEntry recipe = from.at("recipe");
  if (recipe.has("batch") && recipe.has("accumulate")) {
    int64_t batch = recipe.at("batch").count(ranges::positiveCount) *
                    recipe.at("accumulate").count(ranges::ranks);
    if (state.batch != batch)
      throw from.at("batch").wrong(std::to_string(batch) + ", recipe.batch x recipe.accumulate");
  }
  if (!recipe.has("schedule"))
    return;
  size_t plateaus = 0;
  for (const SavedEntry &entry : recipe.at("schedule").list())
    plateaus += entry.has("name") && entry.at("name").json() == "reduce_on_plateau" ? 1 : 0;
  if (state.plateaus.size() != plateaus)
    throw from.at("plateaus")
        .wrong(std::to_string(plateaus) + " of them, one for each reduce_on_plateau of "
                                          "recipe.schedule");
}

static void requireOrder(const RunState &state, const SavedEntry &overrides) {
  int64_t before = 0;
  for (const SavedEntry &change : overrides.list()) {
    SavedEntry after = change.at("after_step");
    int64_t step = after.count({0, mostSteps});
    if (step < before || step > state.step)
      throw after.wrong("a step from " + std::to_string(before) + ", that of the one before, to " +
                        std::to_string(state.step) + ", the run's step");
    before = step;
  }
}

/// Checks the entries that stand for flags of the command line. The others are compared with the
/// model and the data later.
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
  check("scale-epochs", [](const Json &value) { return value.is_boolean(); }, "true or false");
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
  if (from.has("platform"))
    state.platform = from.at("platform").text();
  state.stepsPerEpoch = from.at("steps_per_epoch").count(ranges::positiveCount);
  SavedEntry since = from.at("steps_per_epoch_since");
  state.since = {since.at("step").count({0, mostSteps}), since.at("epoch").count(ranges::count),
                 since.at("step_in_epoch").count(ranges::count)};
  requireSamePlace(state, from);
  SavedEntry monitor = from.at("monitor");
  state.monitor.hasBest = monitor.at("has_best").flag();
  state.monitor.best = monitor.at("best").number();
  state.monitor.bestEpoch = monitor.at("best_epoch").count(ranges::count);
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
  for (const SavedEntry &change : from.at("overrides").list())
    state.overrides.push_back({{"after_step", change.at("after_step").count({0, mostSteps})},
                               {"name", change.at("name").text()},
                               {"was", change.at("was").json()},
                               {"now", change.at("now").json()}});
  requireEpochs(state, from);
  if (from.has("recipe")) {
    if (from.at("recipe").json().is_object()) {
      requireGiven(from.at("recipe"));
      requireRecipe(state, from);
    }
    state.recipe = from.at("recipe").json();
  }
  requireOrder(state, from.at("overrides"));
  return state;
}

} // namespace dlc::rt
