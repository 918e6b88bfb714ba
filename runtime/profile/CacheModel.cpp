#include "runtime/profile/CacheModel.h"

#include <algorithm>

namespace dlc::rt {

bool CacheModel::Cache::use(uint64_t page) {
  auto found = places.find(page);
  if (found != places.end()) {
    recent.splice(recent.begin(), recent, found->second);
    return true;
  }
  recent.push_front(page);
  places[page] = recent.begin();
  if (recent.size() > capacity) {
    places.erase(recent.back());
    recent.pop_back();
  }
  return false;
}

CacheModel::CacheModel(const MachineSpeed &speed) : speed(speed) {
  for (size_t level = 0; level + 1 < speed.memory.size(); ++level)
    caches.emplace_back(speed.memory[level].bytes);
}

size_t CacheModel::use(uint64_t page) {
  size_t nearest = caches.size();
  for (size_t level = caches.size(); level-- > 0;) // all of them see it
    if (caches[level].use(page))
      nearest = level;
  return nearest;
}

MemoryWork CacheModel::run(std::span<const Touch> touches) {
  auto pagesOf = [](const Touch &touch) { return (touch.bytes + pageBytes - 1) / pageBytes; };
  uint64_t rounds = 0;
  for (const Touch &touch : touches)
    rounds = std::max(rounds, pagesOf(touch));
  MemoryWork work;
  std::vector<double> moved(speed.memory.size());
  for (uint64_t round = 0; round < rounds; ++round)
    for (const Touch &touch : touches) {
      uint64_t begin = round * pagesOf(touch) / rounds, end = (round + 1) * pagesOf(touch) / rounds;
      for (uint64_t page = begin; page < end; ++page) {
        auto bytes = static_cast<double>(std::min(pageBytes, touch.bytes - page * pageBytes));
        size_t level = use(touch.address / pageBytes + page);
        bool bothWays = touch.written && (touch.read || speed.fetchesLines);
        work.nanoseconds += speed.nanoseconds(level, bytes, bothWays ? bytes : 0);
        moved[level] += bytes * (bothWays ? 2 : 1);
      }
    }
  for (size_t level = 0; level < moved.size(); ++level)
    work.bytes[speed.memory[level].name] = moved[level];
  return work;
}

} // namespace dlc::rt
