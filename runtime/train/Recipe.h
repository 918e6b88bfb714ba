// What determines the numbers of a run: facts by name.
//
// Facts of the command line have the names of its flags, those of the model the names of its
// entries. One list makes them (factsOf), one comparison takes them up again (takeUp). Checkpoints
// hold the values; where files lie and how far to train is no part of it. Equal on all ranks.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/train/Course.h"
#include "runtime/train/TrainOptions.h"

#include <nlohmann/json.hpp>

namespace dlc::rt {

/// A fact as this start has it.
struct Fact {
  std::string name;
  std::optional<nlohmann::json> given; // empty: a resumed run keeps what it had
  nlohmann::json byDefault;            // of a fresh run, if nothing is given
  nlohmann::json model;                // what null stands for
};

/// A fact that a resumed run has changed.
struct RecipeChange {
  std::string name;
  nlohmann::json was, now;
};

class Recipe {
public:
  /// The recipe of a fresh run. Throws Error(BadInput) for data files that cannot be read.
  Recipe(const Artifact &artifact, const TrainOptions &options);

  /// Takes the values of the checkpoint `path`. Throws Error(BadInput) if it lacks some, and for
  /// facts given otherwise now, unless `overrides` names them: returns those.
  std::vector<RecipeChange> takeUp(const nlohmann::json &saved,
                                   const std::vector<std::string> &overrides,
                                   const std::string &path);

  /// All values by name, and so that null stands for nothing else.
  const nlohmann::json &values() const { return held; }
  nlohmann::json resolved() const;

  double learningRate() const;
  bool scalesRate() const { return held.at("scale-lr") == "linear"; }
  bool scalesEpochs() const { return held.at("scale-epochs"); }
  int64_t accumulate() const { return held.at("accumulate"); }
  uint64_t seed() const { return held.at("seed"); }
  bool shuffles() const { return held.at("shuffle"); }
  bool stopsOnNan() const { return held.at("on-nan") == "stop"; }
  /// True if the schedule counts to an end.
  bool countsToAnEnd() const { return !held.at("length").is_null(); }
  /// Steps that the schedule counts to, in a run of this course.
  int64_t scheduleSteps(const Course &course) const;

private:
  std::vector<Fact> facts;
  nlohmann::json held;
};

/// "lr was 0.4, is 0.01"; of objects the entries that differ.
std::string differenceText(const RecipeChange &change);

} // namespace dlc::rt
