#include "runtime/train/RunState.h"

#include "runtime/artifact/Error.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using nlohmann::json;

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

/// A whole number, from `least` to what no run reaches.
static int64_t countIn(const json &from, const char *key, int64_t least) {
  constexpr double most = 1e15;
  const json &value = from.at(key);
  double number = value.is_number_integer() ? value.get<double>() : -1;
  if (number < static_cast<double>(least) || number > most)
    throw std::out_of_range(std::string(key) + " is " + value.dump());
  return value;
}

RunState RunState::fromJson(const std::string &text, const std::string &path) {
  try {
    json from = json::parse(text);
    RunState state;
    state.step = countIn(from, "step", 0);
    state.epoch = countIn(from, "epoch", 0);
    state.stepInEpoch = countIn(from, "step_in_epoch", 0);
    state.told = from.value("told", true);
    state.ranks = static_cast<int>(countIn(from, "world", 1));
    state.batch = countIn(from, "batch", 1);
    state.threads = from.at("threads");
    state.scheduleHash = from.at("schedule_hash");
    const json &monitor = from.at("monitor");
    state.monitor.hasBest = monitor.at("has_best");
    state.monitor.best = monitor.at("best");
    state.monitor.bestEpoch = monitor.at("best_epoch");
    state.monitor.epochsWithout = monitor.at("epochs_without");
    for (const json &entry : from.at("plateaus")) {
      Plateau &plateau = state.plateaus.emplace_back();
      plateau.scale = entry.at("scale");
      plateau.hasBest = entry.at("has_best");
      plateau.best = entry.at("best");
      plateau.badEpochs = entry.at("bad_epochs");
    }
    for (uint64_t bits : from.at("totals"))
      state.totals.push_back(std::bit_cast<double>(bits));
    state.recipe = from.value("recipe", json());
    state.overrides = from.value("overrides", json::array());
    if (state.step < 0 || state.epoch < 0 || state.stepInEpoch < 0 || state.ranks < 1 ||
        state.batch < 1)
      throw std::out_of_range("a count is negative");
    return state;
  } catch (const std::exception &problem) { // of the JSON library, or the line above
    throw Error(ErrorCode::BadInput, "'" + path + "' is no checkpoint of a run: " + problem.what());
  }
}

} // namespace dlc::rt
