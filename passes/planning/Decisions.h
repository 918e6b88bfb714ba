// What the options of a compilation decide, and from which stage on the model's text holds the
// decision.
//
// A model of a later stage was planned for the decisions in its text, so an option that differs
// from them is refused. An option that is not given contradicts nothing.
#pragma once

#include "dialects/NN/NN.h"

#include <optional>
#include <string>
#include <vector>

namespace dlc {

struct Link;

/// The value of an option that neither the command line nor the model gives.
struct DefaultDecisions {
  static constexpr char precision[] = "f32", wire[] = "f32", target[] = "cpu:native",
                        math[] = "fast", link[] = "10:30";
};

/// An option of the command line: its name without dashes, and its value.
struct GivenOption {
  std::string name, value;
};

/// Why an option cannot be followed by what is left to do on a model of this stage; empty if all
/// can.
std::string findContradiction(nn::ModelOp model, const std::vector<GivenOption> &given);

/// The link that the model was scheduled for; the default if it names none.
Link plannedLink(nn::ModelOp model);

} // namespace dlc
