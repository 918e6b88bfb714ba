// Averages of parameters over steps, slots `ema` that the training step updates: what evaluation
// takes in the parameters' place.
//
// Local to a rank; one thread at a time.
#pragma once

#include "runtime/core/Session.h"

#include <exception>

namespace dlc::rt {

struct Average {
  std::string slot, parameter; // names of variables
};

/// None if the model keeps none.
std::vector<Average> averagesOf(const Session &session);

/// Lets averages begin as the parameters are.
void startAverages(Session &session);

/// While it lives, parameters and their averages have changed places. Its end throws if the device
/// fails then, unless another exception is passing.
class AveragesInPlace {
public:
  explicit AveragesInPlace(Session &session) : session(session) { swap(); }
  ~AveragesInPlace() noexcept(false);
  AveragesInPlace(const AveragesInPlace &) = delete;
  AveragesInPlace &operator=(const AveragesInPlace &) = delete;

private:
  void swap();

  Session &session;
  int exceptionsAtStart = std::uncaught_exceptions();
};

} // namespace dlc::rt
