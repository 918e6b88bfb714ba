#include "runtime/data/steps/Extents.h"

#include <sstream>

namespace dlc::rt {

std::string shapeText(std::span<const int64_t> shape) {
  if (shape.empty())
    return "a scalar";
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : " x ") +
            (extent == anyExtent ? std::string("any") : std::to_string(extent));
  return text;
}

std::string numberText(double value) {
  std::ostringstream text;
  text.precision(9);
  text << value;
  return text.str();
}

} // namespace dlc::rt
