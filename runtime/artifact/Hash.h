// XXH64 (Collet, xxHash specification), seed 0: a fast 64-bit hash against damage, not against
// forgery.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace dlc::rt {

inline uint64_t hash64(std::span<const uint8_t> bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t p1 = 0x9E3779B185EBCA87, p2 = 0xC2B2AE3D27D4EB4F, p3 = 0x165667B19E3779F9,
                     p4 = 0x85EBCA77C2B2AE63, p5 = 0x27D4EB2F165667C5;
  auto read64 = [](const uint8_t *at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  };
  auto round = [](uint64_t lane, uint64_t word) { return std::rotl(lane + word * p2, 31) * p1; };
  const uint8_t *at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = p5;
  if (left >= 32) {
    uint64_t lanes[4] = {p1 + p2, p2, 0, 0 - p1};
    for (; left >= 32; left -= 32)
      for (uint64_t &lane : lanes) {
        lane = round(lane, read64(at));
        at += 8;
      }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (uint64_t lane : lanes)
      hash = (hash ^ round(0, lane)) * p1 + p4;
  }
  hash += bytes.size();
  for (; left >= 8; left -= 8, at += 8)
    hash = std::rotl(hash ^ round(0, read64(at)), 27) * p1 + p4;
  if (left >= 4) {
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    hash = std::rotl(hash ^ (word * p1), 23) * p2 + p3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; --left, ++at)
    hash = std::rotl(hash ^ (*at * p5), 11) * p1;
  hash = (hash ^ (hash >> 33)) * p2;
  hash = (hash ^ (hash >> 29)) * p3;
  return hash ^ (hash >> 32);
}

} // namespace dlc::rt
