// Scalars of a run in the file format that TensorBoard reads.
//
// A file is a sequence of records: length, checksum of the length, payload, checksum of the payload
// (tensorflow/core/lib/io/record_writer.h); a payload is a tensorflow.Event in protobuf's wire
// encoding (tensorflow/core/util/event.proto). One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlc::rt {

class EventFile {
public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// A new file in the directory. Readers ignore what older files there say of steps after
  /// `firstStep`. Throws Error(Runtime).
  EventFile(const std::string &directory, int64_t firstStep);

  /// Appends figures of a step; they are on disk within about a second, or after flush().
  void write(int64_t step, const Scalars &scalars);
  /// Throws Error(Runtime) if not everything could be written.
  void flush();

private:
  void append(const std::string &event);

  std::string path;
  std::ofstream file;
  std::chrono::steady_clock::time_point flushed;
};

/// CRC-32C (Castagnoli), as RFC 3720 gives it.
uint32_t crc32c(std::string_view bytes);

} // namespace dlc::rt
