#include "test/cuda/standin/Memory.h"

#include "runtime/artifact/Error.h"

#include <cstdlib>
#include <iterator>
#include <sys/mman.h>

namespace dlc::rt::standin {
namespace {

constexpr std::byte notANumber{0xff};

uintptr_t numberOf(const void *address) { return reinterpret_cast<uintptr_t>(address); }

/// The last block that begins at an address or before it.
template <typename Blocks> auto blockBefore(Blocks &blocks, uintptr_t address) {
  auto above = blocks.upper_bound(address);
  return above == blocks.begin() ? blocks.end() : std::prev(above);
}

size_t rangeOf(size_t bytes) { return bytes + 1; } // where an empty one has an address of its own

} // namespace

void *Memory::allocate(size_t bytes) {
  if (bytes > freeBytes())
    return nullptr;
  void *address = mmap(nullptr, rangeOf(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return nullptr;
  device.emplace(numberOf(address), std::vector<std::byte>(bytes, notANumber));
  used += bytes;
  return address;
}

bool Memory::free(void *address) {
  auto found = device.find(numberOf(address));
  if (found == device.end())
    return false;
  used -= found->second.size();
  munmap(address, rangeOf(found->second.size()));
  device.erase(found);
  return true;
}

void *Memory::allocateLocked(size_t bytes) {
  void *address = std::malloc(bytes);
  if (address)
    locked[numberOf(address)] = bytes;
  return address;
}

bool Memory::freeLocked(void *address) {
  if (locked.erase(numberOf(address)) == 0)
    return false;
  std::free(address);
  return true;
}

bool Memory::isDevice(const void *address, size_t bytes) const {
  auto block = blockBefore(device, numberOf(address));
  if (block == device.end())
    return false;
  size_t offset = numberOf(address) - block->first;
  return offset <= block->second.size() && bytes <= block->second.size() - offset;
}

bool Memory::isLocked(const void *address, size_t bytes) const {
  auto block = blockBefore(locked, numberOf(address));
  if (block == locked.end())
    return false;
  size_t offset = numberOf(address) - block->first;
  return offset <= block->second && bytes <= block->second - offset;
}

std::span<std::byte> Memory::from(const void *address) {
  if (!isDevice(address, 0))
    throw Error(ErrorCode::Runtime, "an address that is in no memory of the device");
  auto block = blockBefore(device, numberOf(address));
  return std::span(block->second).subspan(numberOf(address) - block->first);
}

std::span<std::byte> Memory::at(const void *address, size_t bytes) {
  std::span<std::byte> memory = from(address);
  if (bytes > memory.size())
    throw Error(ErrorCode::Runtime, "more bytes than the device's memory has there");
  return memory.first(bytes);
}

} // namespace dlc::rt::standin
