#include "test/ptx/Memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlc::ptx {
namespace {

constexpr unsigned regionBits = 42; // of an offset; none of the device's is larger
constexpr uint32_t several = ~uint32_t{0};
// Where regions begin in their slot, so that what lies before one is nobody's.
constexpr uint64_t firstOffset = uint64_t{1} << 20;

uint64_t addressOf(size_t region) { return (region + 1) << regionBits | firstOffset; }

} // namespace

uint64_t Memory::add(std::string name, uint64_t bytes, Use use, Fill fill) {
  Region region{std::move(name), bytes, use, std::move(fill)};
  region.pages.resize((bytes + pageBytes - 1) / pageBytes);
  regions.push_back(std::move(region));
  return addressOf(regions.size() - 1);
}

uint64_t Memory::add(std::string name, std::span<std::byte> host, Use use) {
  Region region{std::move(name), host.size(), use};
  region.host = host.data();
  regions.push_back(std::move(region));
  checks = false;
  return addressOf(regions.size() - 1);
}

const Memory::Region *Memory::regionAt(uint64_t address) const {
  uint64_t number = address >> regionBits;
  return number == 0 || number > regions.size() ? nullptr : &regions[number - 1];
}

Memory::Region *Memory::regionAt(uint64_t address) {
  return const_cast<Region *>(std::as_const(*this).regionAt(address));
}

static uint64_t offsetOf(uint64_t address) {
  return (address & ((uint64_t{1} << regionBits) - 1)) - firstOffset;
}

Memory::Page &Memory::pageOf(Region &region, uint64_t offset) {
  std::unique_ptr<Page> &page = region.pages[offset / pageBytes];
  if (!page) {
    page = std::make_unique<Page>();
    uint64_t begin = offset / pageBytes * pageBytes;
    if (region.fill)
      for (uint64_t i = 0; i < std::min(pageBytes, region.bytes - begin); ++i) {
        page->bytes[i] = region.fill(begin + i);
        page->isInitialised[i] = true;
      }
  }
  return *page;
}

void Memory::write(uint64_t address, const void *from, uint64_t bytes) {
  Region &region = *regionAt(address);
  for (uint64_t i = 0; i < bytes; ++i) {
    uint64_t offset = offsetOf(address) + i;
    Page &page = pageOf(region, offset);
    page.bytes[offset % pageBytes] = static_cast<const uint8_t *>(from)[i];
    page.isInitialised[offset % pageBytes] = true;
  }
}

void Memory::read(uint64_t address, void *to, uint64_t bytes) {
  Region &region = *regionAt(address);
  for (uint64_t i = 0; i < bytes; ++i) {
    uint64_t offset = offsetOf(address) + i;
    static_cast<uint8_t *>(to)[i] = pageOf(region, offset).bytes[offset % pageBytes];
  }
}

void Memory::beginLaunch() {
  ++launch;
  written = readOnce = 0;
  for (Region &region : regions)
    region.written = region.touched = 0;
}

uint64_t Memory::writtenIn(uint64_t address) const { return regionAt(address)->written; }
uint64_t Memory::touchedIn(uint64_t address) const { return regionAt(address)->touched; }

std::string Memory::nameOf(uint64_t address) const {
  const Region *region = regionAt(address);
  return region ? region->name : "nothing";
}

//===- Accesses of the device -----------------------------------------------------------------===//

std::string Memory::check(uint64_t address, uint32_t bytes, bool isWrite) {
  const Region *region = regionAt(address);
  if (!region)
    return "is out of bounds: no memory is there";
  uint64_t offset = offsetOf(address);
  if (offset >= region->bytes || bytes > region->bytes - offset)
    return "is out of bounds of " + region->name + ", which has " + std::to_string(region->bytes) +
           " bytes: from " + std::to_string(static_cast<int64_t>(offset)) + " on";
  if (isWrite && region->use == Use::Read)
    return "writes to " + region->name + ", which is read only";
  return "";
}

Memory::Shadow &Memory::shadowOf(Page &page, uint64_t offset) {
  if (page.launch != launch) {
    page.shadows.assign(pageBytes, {});
    page.launch = launch;
  }
  return page.shadows[offset % pageBytes];
}

/// Reads after writes: of another block, or of another thread since the last barrier.
std::string Memory::noteRead(Region &region, uint64_t offset, const Actor &actor) {
  Page &page = pageOf(region, offset);
  Shadow &shadow = shadowOf(page, offset);
  if (!page.isInitialised[offset % pageBytes])
    return "reads what was never written, byte " + std::to_string(offset) + " of " + region.name;
  if (shadow.writer != 0 &&
      (shadow.writer != actor.block + 1 ||
       (shadow.writerThread != actor.thread && shadow.writerEpoch == actor.epoch)))
    return "reads what another thread writes meanwhile, byte " + std::to_string(offset) + " of " +
           region.name;
  readOnce += shadow.reader == 0;
  region.touched += shadow.reader == 0 && shadow.writer == 0;
  bool isSame = shadow.reader == actor.block + 1 && shadow.readerEpoch == actor.epoch;
  if (shadow.reader != 0 && shadow.reader != actor.block + 1)
    shadow.reader = several;
  else if (isSame && shadow.readerThread != actor.thread)
    shadow.readerThread = several;
  else if (shadow.reader != several) {
    shadow.reader = actor.block + 1;
    shadow.readerThread = actor.thread;
    shadow.readerEpoch = actor.epoch;
  }
  return "";
}

std::string Memory::noteWrite(Region &region, uint64_t offset, const Actor &actor) {
  Page &page = pageOf(region, offset);
  Shadow &shadow = shadowOf(page, offset);
  auto isAnother = [&](uint32_t block, uint32_t thread, uint32_t epoch) {
    return block != 0 &&
           (block != actor.block + 1 || (thread != actor.thread && epoch == actor.epoch));
  };
  if (isAnother(shadow.writer, shadow.writerThread, shadow.writerEpoch))
    return "writes what another thread writes meanwhile, byte " + std::to_string(offset) + " of " +
           region.name;
  if (isAnother(shadow.reader, shadow.readerThread, shadow.readerEpoch))
    return "writes what another thread reads meanwhile, byte " + std::to_string(offset) + " of " +
           region.name;
  written += shadow.writer == 0;
  region.written += shadow.writer == 0;
  region.touched += shadow.reader == 0 && shadow.writer == 0;
  shadow.writer = actor.block + 1;
  shadow.writerThread = actor.thread;
  shadow.writerEpoch = actor.epoch;
  return "";
}

std::string Memory::load(uint64_t address, uint32_t bytes, const Actor &actor, uint64_t &value) {
  if (std::string fault = check(address, bytes, /*isWrite=*/false); !fault.empty())
    return fault;
  Region &region = *regionAt(address);
  uint64_t offset = offsetOf(address);
  value = 0;
  if (region.host) {
    std::memcpy(&value, region.host + offset, bytes);
    return "";
  }
  for (uint32_t i = 0; i < bytes; ++i) {
    if (checks)
      if (std::string fault = noteRead(region, offset + i, actor); !fault.empty())
        return fault;
    uint64_t byte = pageOf(region, offset + i).bytes[(offset + i) % pageBytes];
    value |= byte << (8 * i);
  }
  return "";
}

std::string Memory::store(uint64_t address, uint32_t bytes, const Actor &actor, uint64_t value) {
  if (std::string fault = check(address, bytes, /*isWrite=*/true); !fault.empty())
    return fault;
  Region &region = *regionAt(address);
  uint64_t offset = offsetOf(address);
  if (region.host) {
    std::memcpy(region.host + offset, &value, bytes);
    return "";
  }
  for (uint32_t i = 0; i < bytes; ++i) {
    if (checks)
      if (std::string fault = noteWrite(region, offset + i, actor); !fault.empty())
        return fault;
    Page &page = pageOf(region, offset + i);
    page.bytes[(offset + i) % pageBytes] = static_cast<uint8_t>(value >> (8 * i));
    page.isInitialised[(offset + i) % pageBytes] = true;
  }
  return "";
}

} // namespace dlc::ptx
