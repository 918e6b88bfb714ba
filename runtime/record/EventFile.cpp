#include "runtime/record/EventFile.h"

#include "runtime/artifact/Error.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace dlc::rt {

static constexpr std::array<uint32_t, 256> crcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0);
    table[byte] = value;
  }
  return table;
}();

uint32_t crc32c(std::string_view bytes) {
  uint32_t value = ~0u;
  for (char byte : bytes)
    value = crcTable[(value ^ static_cast<uint8_t>(byte)) & 255] ^ (value >> 8);
  return ~value;
}

namespace {

/// Little-endian, as this code's only hosts are.
template <typename T> std::string bytesOf(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

/// Checksums of data that holds checksums are weak unless masked.
std::string checksum(std::string_view bytes) {
  return bytesOf(std::rotr(crc32c(bytes), 15) + 0xa282ead8u);
}

/// A message of protobuf's wire encoding, field by field.
class Message {
public:
  Message &add(int field, double value) { return tag(field, 1, bytesOf(value)); }
  Message &add(int field, float value) { return tag(field, 5, bytesOf(value)); }
  Message &add(int field, int64_t value) {
    return tag(field, 0, varint(static_cast<uint64_t>(value)));
  }
  Message &add(int field, const std::string &value) {
    return tag(field, 2, varint(value.size()) + value);
  }
  Message &add(int field, const Message &value) { return add(field, value.text); }
  const std::string &bytes() const { return text; }

private:
  Message &tag(int field, int wireType, const std::string &value) {
    text += varint(static_cast<uint64_t>(field << 3 | wireType)) + value;
    return *this;
  }
  static std::string varint(uint64_t value) {
    std::string result;
    for (; value > 127; value >>= 7)
      result += static_cast<char>(value | 128);
    return result + static_cast<char>(value);
  }

  std::string text;
};

// Numbers of the fields of tensorflow.Event and of what it holds.
constexpr int eventWallTime = 1, eventStep = 2, eventFileVersion = 3, eventSummary = 5,
              eventSessionLog = 7, sessionStatus = 1, summaryValue = 1, valueTag = 1,
              valueSimple = 2;
constexpr int64_t sessionStart = 1;

Message event(int64_t step) {
  std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Message message;
  message.add(eventWallTime, now.count());
  return step ? message.add(eventStep, step) : message;
}

/// TensorBoard reads the files of a directory in the order of their names.
std::string freePath(const std::string &directory) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  for (int64_t k = 0;; ++k) {
    std::string path =
        directory + "/events.out.tfevents." + std::to_string(seconds + k) + "." + host;
    if (!std::filesystem::exists(path))
      return path;
  }
}

} // namespace

EventFile::EventFile(const std::string &directory, int64_t firstStep)
    : path(freePath(directory)), file(path, std::ios::binary) {
  append(event(0).add(eventFileVersion, std::string("brain.Event:2")).bytes());
  // Drops what an interrupted run wrote of the steps that this one takes again.
  append(event(firstStep + 1)
             .add(eventSessionLog, Message().add(sessionStatus, sessionStart))
             .bytes());
  flush();
}

void EventFile::append(const std::string &event) {
  std::string length = bytesOf(uint64_t{event.size()});
  file << length << checksum(length) << event << checksum(event);
}

void EventFile::write(int64_t step, const Scalars &scalars) {
  Message summary;
  for (const auto &[name, value] : scalars)
    summary.add(summaryValue,
                Message().add(valueTag, name).add(valueSimple, static_cast<float>(value)));
  append(event(step).add(eventSummary, summary).bytes());
  if (std::chrono::steady_clock::now() - flushed > std::chrono::seconds(1))
    flush();
}

void EventFile::flush() {
  file.flush();
  if (!file)
    throw Error(ErrorCode::Runtime, "cannot write '" + path + "': " + std::strerror(errno));
  flushed = std::chrono::steady_clock::now();
}

} // namespace dlc::rt
