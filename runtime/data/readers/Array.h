// A dense array read from a file: element type, shape, bytes.
//
// Invariant: the bytes are row-major, in this machine's byte order, and as many as shape and type
// say. They are mapped from the file where its format allows, else decoded into memory. Immutable;
// may be used from any thread.
#pragma once

#include "runtime/data/steps/ElementType.h"
#include "runtime/data/steps/Extents.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::rt {

class MappedFile;

/// Kinds of files; a directory is of the kind of its images.
enum class FileFormat : uint8_t { Npy, Idx, Png, Tiff, Jpeg };

/// What the header of a file says.
struct ArrayHeader {
  std::string path; // for messages
  ElementType type = ElementType::U8;
  std::vector<int64_t> shape;
  FileFormat format = FileFormat::Npy;
  /// What metadata say of the axes: a letter of N C Z Y X for each, and the shape that they give
  /// the elements. Empty if the file has no such metadata.
  std::string axes = {};
  std::vector<int64_t> axesShape = {};
};

/// Text from a file as part of a message's one line.
std::string printable(std::string_view text);

class Array {
public:
  /// `owner` keeps the bytes alive.
  Array(ArrayHeader header, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  const ArrayHeader &header() const { return head; }
  const std::string &path() const { return head.path; }
  ElementType type() const { return head.type; }
  const std::vector<int64_t> &shape() const { return head.shape; }
  size_t rank() const { return head.shape.size(); }
  int64_t elements() const { return count; }
  std::span<const std::byte> bytes() const { return data; }

  /// Element at a row-major position, as a number.
  double at(int64_t position) const;
  /// All elements in order, converted to f32.
  std::vector<float> values() const;

  /// Throws Error(BadInput) if the file was cut since: what was read before may be wrong.
  void requireWhole() const;

  std::shared_ptr<const MappedFile> mapped; // null unless the bytes lie in it

private:
  ArrayHeader head;
  int64_t count = 1;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};

/// Reads `.npy`, IDX, gzipped IDX, a PNG, TIFF or JPEG file, told apart by content. Throws
/// Error(BadInput) for missing, truncated and foreign files.
Array readArray(const std::string &path);

} // namespace dlc::rt
