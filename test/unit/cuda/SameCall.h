// Functions and numbers that runtime/cuda declares against those of NVIDIA's headers.
#pragma once

#include <type_traits>

namespace dlc::test {

/// A type as a caller passes it: enumerations of one size are alike, and so are pointers.
template <typename T> struct Passed {
  using Type = std::conditional_t<std::is_pointer_v<T>, void *, T>;
};
template <typename T>
  requires std::is_enum_v<T>
struct Passed<T> {
  using Type = int;
  static_assert(sizeof(T) == sizeof(int));
};
template <typename R, typename... A> struct Passed<R(A...)> {
  using Type = typename Passed<R>::Type(typename Passed<A>::Type...);
};

template <typename Ours, typename Theirs>
constexpr bool isSameCall = std::is_same_v<typename Passed<std::remove_pointer_t<Ours>>::Type,
                                           typename Passed<Theirs>::Type>;

} // namespace dlc::test

/// A function of a table against the one whose address it holds.
#define CALL(table, ours, theirs)                                                                  \
  static_assert(dlc::test::isSameCall<decltype(table::Functions::ours), decltype(theirs)>)
#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
