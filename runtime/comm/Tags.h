// Message tags. Messages of one tag keep their order, so the tag need only tell kinds apart.
#pragma once

namespace dlc::rt::tags {

inline constexpr int small = 1;
inline constexpr int contribution = 2;
inline constexpr int sum = 3;

} // namespace dlc::rt::tags
