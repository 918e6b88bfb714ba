// A handle of one of NVIDIA's libraries, destroyed with its owner by the library's own function.
#pragma once

#include <memory>
#include <type_traits>

namespace dlc::rt {

template <typename Handle> struct Destroyer {
  int (*destroy)(Handle handle) = nullptr; // what it says of it is of no use
  void operator()(Handle handle) const { destroy(handle); }
};

/// Made as {handle, {destroy}}; empty without.
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Handle>>;

} // namespace dlc::rt
