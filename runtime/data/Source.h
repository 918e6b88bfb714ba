// An array with named axes: sample i of it as [channels, spatial...].
//
// Axes are letters of N C Z Y X, one per dimension of the array, in any order. A missing N means
// one sample, a missing C one channel. Immutable; may be used from any thread.
#pragma once

#include "runtime/data/Array.h"
#include "runtime/data/Sample.h"

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
  /// Throws unless all elements are integers in [0, range); the message names the first sample
  /// that has another.
  void checkRange(int64_t range) const;

  void read(int64_t sample, Sample &into) const;

private:
  std::string label;
  Array data;
  int64_t count = 1;
  int64_t sampleStride = 0;
  std::vector<int64_t> shape, strides; // of a sample; strides in elements of the array
  bool binaryMask = false;
};

} // namespace dlc::rt
