// Global memory of the emulated device: regions far apart, in pages that appear when touched.
//
// Of every byte is known whether it was ever written, and during a launch who wrote and who read it
// last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlc::ptx {

enum class Use : uint8_t { Read, Write, ReadWrite };

/// Who runs: a thread of a block, in an epoch, which a barrier ends.
struct Actor {
  uint32_t block = 0, thread = 0, epoch = 0;
};

class Memory {
public:
  /// Gives what a byte holds that nobody wrote, by its offset.
  using Fill = std::function<uint8_t(uint64_t)>;

  /// A new region, more than 4 GiB from all others; its address. Without `fill` nothing in it is
  /// initialised.
  uint64_t add(std::string name, uint64_t bytes, Use use, Fill fill = {});
  /// A new region that is the host's memory, for whole steps: whether its bytes are initialised and
  /// who uses them meanwhile is not known then, of none of the regions, and nothing is counted.
  uint64_t add(std::string name, std::span<std::byte> host, Use use);
  bool isChecked() const { return checks; }
  /// By the host.
  void write(uint64_t address, const void *from, uint64_t bytes);
  void read(uint64_t address, void *to, uint64_t bytes);

  /// Forgets who touched what, before a launch.
  void beginLaunch();
  /// Bytes that the launch has written, and those it has read, each counted once.
  uint64_t writtenBytes() const { return written; }
  uint64_t readBytes() const { return readOnce; }
  /// Of the region at an address: bytes that the launch has written, and those that it has touched,
  /// each counted once.
  uint64_t writtenIn(uint64_t address) const;
  uint64_t touchedIn(uint64_t address) const;
  std::string nameOf(uint64_t address) const;

  /// Accesses of the device. Each returns what is wrong with it, or nothing.
  std::string load(uint64_t address, uint32_t bytes, const Actor &actor, uint64_t &value);
  std::string store(uint64_t address, uint32_t bytes, const Actor &actor, uint64_t value);

private:
  static constexpr uint64_t pageBytes = 1 << 14;

  /// Of a byte in a launch. A block that reads or writes is remembered plus one; 0: none yet.
  struct Shadow {
    uint32_t writer = 0, writerThread = 0, writerEpoch = 0;
    uint32_t reader = 0, readerThread = 0, readerEpoch = 0;
  };
  struct Page {
    std::vector<uint8_t> bytes = std::vector<uint8_t>(pageBytes);
    std::vector<bool> isInitialised = std::vector<bool>(pageBytes);
    std::vector<Shadow> shadows; // of checked accesses
    uint64_t launch = 0;         // in which the shadows are of use
  };
  struct Region {
    std::string name;
    uint64_t bytes = 0;
    Use use = Use::ReadWrite;
    Fill fill = {};
    std::vector<std::unique_ptr<Page>> pages = {};
    std::byte *host = nullptr;         // instead of pages
    uint64_t written = 0, touched = 0; // in this launch
  };

  Region *regionAt(uint64_t address);
  const Region *regionAt(uint64_t address) const;
  Page &pageOf(Region &region, uint64_t offset);
  Shadow &shadowOf(Page &page, uint64_t offset);
  std::string check(uint64_t address, uint32_t bytes, bool isWrite);
  std::string noteRead(Region &region, uint64_t offset, const Actor &actor);
  std::string noteWrite(Region &region, uint64_t offset, const Actor &actor);

  std::vector<Region> regions;
  bool checks = true;
  uint64_t launch = 1, written = 0, readOnce = 0;
};

} // namespace dlc::ptx
