// Where the bytes that a step touches lie: caches that forget what was used longest ago.
//
// A model for bounds, in pages rather than lines: what it takes for cached may still miss.
#pragma once

#include "runtime/core/MachineSpeed.h"

#include <list>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace dlc::rt {

/// A stretch of memory that a kernel reads or not, and writes or not.
struct Touch {
  uint64_t address, bytes;
  bool written, read = true;
};

/// What a kernel moves between levels of memory, and how long that takes.
struct MemoryWork {
  double nanoseconds = 0;
  std::map<std::string, double> bytes; // read, and written, by the name of the level they lie in
};

class CacheModel {
public:
  explicit CacheModel(const MachineSpeed &speed);

  /// Touches the buffers of a kernel, which walks over them side by side.
  MemoryWork run(std::span<const Touch> touches);

private:
  static constexpr uint64_t pageBytes = 32 << 10;

  class Cache {
  public:
    explicit Cache(uint64_t bytes) : capacity(bytes / pageBytes) {}
    /// True if it held the page; holds it from now on.
    bool use(uint64_t page);

  private:
    uint64_t capacity; // pages
    std::list<uint64_t> recent;
    std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places;
  };

  /// The nearest level that has the page.
  size_t use(uint64_t page);

  MachineSpeed speed;
  std::vector<Cache> caches;
};

} // namespace dlc::rt
