// Functions of numbers that are known when compiling, whose results are ints.
#include "frontend/operators/Emission.h"

#include <cmath>

using namespace llvm;

namespace dlc::fe {

/// What `function` makes of a float. Ints stay as they are.
static Result emitWhole(Emission &call, double (*function)(double)) {
  const Value &x = call["x"];
  if (x.isIntegral())
    return Value(x.asIntegral());
  double result = function(x.asDouble());
  // -2^63 is an int, 2^63 is none.
  if (!(result >= -0x1p63 && result < 0x1p63))
    return call.error("x", toText(x) + " is too large for an int");
  return Value(static_cast<int64_t>(result));
}

Result emitInt(Emission &call) { return emitWhole(call, std::trunc); }
Result emitFloor(Emission &call) { return emitWhole(call, std::floor); }

/// std::nearbyint would depend on the rounding mode.
Result emitRound(Emission &call) {
  return emitWhole(call, [](double x) { return x - std::remainder(x, 1.0); });
}

} // namespace dlc::fe
