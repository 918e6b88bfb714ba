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

CacheModel::CacheModel(const MachineSpeed &speed)
    : speed(speed), l2(speed.l2Bytes), l3(speed.l3Bytes) {}

MemoryLevel CacheModel::use(uint64_t page) {
  bool inL2 = l2.use(page), inL3 = l3.use(page);
  return inL2 ? MemoryLevel::L2 : inL3 ? MemoryLevel::L3 : MemoryLevel::Dram;
}

MemoryWork CacheModel::run(std::span<const Touch> touches) {
  auto pagesOf = [](const Touch &touch) { return (touch.bytes + pageBytes - 1) / pageBytes; };
  uint64_t rounds = 0;
  for (const Touch &touch : touches)
    rounds = std::max(rounds, pagesOf(touch));
  MemoryWork work;
  for (uint64_t round = 0; round < rounds; ++round)
    for (const Touch &touch : touches) {
      uint64_t begin = round * pagesOf(touch) / rounds, end = (round + 1) * pagesOf(touch) / rounds;
      for (uint64_t page = begin; page < end; ++page) {
        auto bytes = static_cast<double>(std::min(pageBytes, touch.bytes - page * pageBytes));
        MemoryLevel level = use(touch.address / pageBytes + page);
        work.nanoseconds += speed.nanoseconds(level, bytes, touch.written ? bytes : 0);
        work.bytes[static_cast<size_t>(level)] += bytes * (touch.written ? 2 : 1);
      }
    }
  return work;
}

} // namespace dlc::rt
