// Arrays with named axes, of a file or of each file of a directory: sample i of them as [channels,
// spatial...].
//
// Axes are letters of N C Z Y X, one per dimension of an array, in any order. A missing N means one
// sample a file, unless the array has one dimension more, which then comes first; a missing C means
// one channel. Of image files the reader knows where channels are. Samples of several files may
// differ in size. The images of a directory are decoded when they are read; planes that are no
// samples, but channels or slices of one, once. May be used from any thread.
#pragma once

#include "runtime/data/readers/ImageCache.h"
#include "runtime/data/readers/ImageDirectory.h"
#include "runtime/data/steps/Geometry.h"

#include <optional>

namespace dlc::rt {

/// What a source's files are read for.
struct SourceUse {
  std::string axes = {};      // of the source line; may be empty
  size_t inputRank = 0;       // of the input that it feeds
  bool takesClasses = false;  // that input takes a class of each sample, not an image
  ImageRule images = {};      // of a directory
  bool lacksChannels = false; // behind that input's batch are the spatial axes
};

class Source {
public:
  /// `path`: of a file, or of a directory of images of one type; of classes, of a directory with a
  /// folder for each. Without axes of the source line a file's metadata decide, else the rank of
  /// the input, its channels counted in; a file one rank short lacks the channel axis. Throws
  /// Error(BadInput) if files cannot be read or do not fit.
  Source(std::string name, std::string path, const SourceUse &use,
         std::shared_ptr<ImageCache> cache);

  const std::string &name() const { return label; }
  const std::string &path() const { return from; }
  ElementType type() const { return parts.front().header.type; }
  FileFormat format() const { return parts.front().header.format; }
  int64_t samples() const { return count; }
  const Extents &sampleShape(int64_t sample) const { return partOf(sample).shape; }
  /// The file of a sample.
  const ArrayHeader &fileOf(int64_t sample) const { return partOf(sample).header; }
  /// The axes that a file's metadata name, where they decide; else empty.
  std::string axesByMetadata(int64_t sample) const;
  /// The first sample of each file; those of one file are of one shape.
  std::vector<int64_t> firstSamples() const;
  /// The first sample of another shape than this one, if any.
  std::optional<int64_t> otherShape(int64_t sample) const;

  /// Reads {0, 255} as {0, 1} from now on if the files hold nothing else; true if so.
  bool readAsBinaryMask();
  struct Outlier {
    int64_t sample;
    double value;
    bool besideMask; // all that keeps the files from being read as a mask
  };
  /// The first element outside of the range, as the file holds it; of a mask, where that is 255,
  /// the first element that is neither 0 nor 255.
  std::optional<Outlier> outlier(const ValueRange &range) const;

  /// What the images are called, if the samples have one each.
  const std::vector<std::string> &sampleNames() const { return names; }
  /// The folders that the source numbers as classes; none if it holds something else.
  const std::vector<std::string> &classes() const { return folders; }
  /// "'masks.npy': sample 3", or "'masks': sample 3 (cell-07)".
  std::string place(int64_t sample) const;

  /// The sample, or a part of it, of which nothing else is read; integers are left unread. Throws
  /// Error(BadInput) for numbers that are not finite in f32.
  void read(int64_t sample, const Box *part, Sample &into) const;

  /// Bytes of each array of u8 or u16 that the source holds, or will once it is decoded, as long as
  /// it lives: what it reads of them is a view of the array.
  std::vector<uint64_t> heldArrays() const;

  /// Throws Error(BadInput) if a file was cut since: what was read before may be wrong.
  void requireWhole() const;

private:
  /// The samples of one file.
  struct Part {
    ArrayHeader header;
    std::shared_ptr<const Array> data; // null: in the cache, once it is decoded
    int64_t first = 0, count = 1;
    int64_t sampleStride = 0;
    Extents shape = {}, strides = {}; // of a sample; strides in elements of the array
    bool axesAreFromMetadata = false;
  };
  struct Element {
    size_t part;
    int64_t at;
    double value;
  };

  void openClasses(const SourceUse &use);
  void openImages(const SourceUse &use);
  void addPart(ArrayHeader header, std::shared_ptr<const Array> data, const SourceUse &use);
  Part makePart(ArrayHeader header, const SourceUse &use) const;
  std::shared_ptr<const Array> dataOf(const Part &part) const;
  bool holds(const Part &part) const { return part.data || cache->holdsAll(); }
  const Part &partOf(int64_t sample) const;
  template <typename Good> static std::optional<Element> findNotIn(const Array &data, Good &good);
  template <typename Good> std::optional<Element> findNot(Good good) const;
  [[noreturn]] void refuseNonFinite(int64_t sample, std::span<const float> values) const;

  std::string label, from;
  std::shared_ptr<ImageCache> cache;
  std::vector<Part> parts; // in the order of their samples
  int64_t count = 0;
  std::vector<std::string> names, folders;
  bool binaryMask = false;
  std::optional<Element> notBinary; // the first that is neither 0 nor 255, once looked for
};

} // namespace dlc::rt
