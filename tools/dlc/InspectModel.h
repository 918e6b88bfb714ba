// What `dlc inspect MODEL` tells: inputs, layers and parameters of a model at stage nn, as JSON and
// as tables.
#pragma once

#include "dialects/NN/NN.h"

#include <nlohmann/json.hpp>

#include <ostream>

namespace dlc {

/// Of @train, else of the first program.
nlohmann::ordered_json describeModel(nn::ModelOp model);

/// Adds how images larger than the predict program's are put together, of a model that has been
/// through stage nn.
void describeTiling(nn::ModelOp model, nlohmann::ordered_json &description);

/// The description as tables for people.
void printModel(const nlohmann::ordered_json &description, std::ostream &out);

} // namespace dlc
