// An array with named axes: sample i of it as [channels, spatial...].
//
// Axes are letters of N C Z Y X, one per dimension of the array, in any order. A missing N means
// one sample, a missing C one channel. Immutable; may be used from any thread.
#pragma once

#include "runtime/data/Array.h"
#include "runtime/data/Sample.h"

#include <optional>

namespace dlc::rt {

class Source {
public:
  /// Without `axes` they follow from the rank of the input that it feeds; a file one rank short
  /// lacks the channel axis. Throws Error(BadInput) if the array does not fit.
  Source(std::string name, Array array, std::string axes, size_t inputRank);

  const std::string &name() const { return label; }
  const Array &array() const { return data; }
  int64_t samples() const { return count; }
  const std::vector<int64_t> &sampleShape() const { return shape; }

  /// Reads {0, 255} as {0, 1} from now on if the array holds nothing else; true if so.
  bool readAsBinaryMask();
  struct Outlier {
    int64_t sample;
    double value;
    bool besideMask; // all that keeps the file from being read as a mask
  };
  /// The first element outside of the range, as the file holds it; of a mask, where that is 255,
  /// the first element that is neither 0 nor 255.
  std::optional<Outlier> outlier(const ValueRange &range) const;

  /// Stems of the samples' files, if they have one each.
  const std::vector<std::string> &sampleNames() const;
  /// "'masks.npy': sample 3", or "'masks': sample 3 (cell-07)".
  std::string place(int64_t sample) const;

  /// Throws Error(BadInput) for numbers that are not finite in f32.
  void read(int64_t sample, Sample &into) const;

private:
  [[noreturn]] void refuseNonFinite(int64_t sample, std::span<const float> values) const;

  std::string label;
  Array data;
  int64_t count = 1;
  int64_t sampleStride = 0;
  std::vector<int64_t> shape, strides; // of a sample; strides in elements of the array
  bool samplesFirst = false;           // the array's first dimension is N
  bool binaryMask = false;
  std::optional<int64_t> notBinary; // the first element that is neither 0 nor 255, once looked for
};

} // namespace dlc::rt
