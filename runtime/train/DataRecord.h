// What weights keep of the data that they were trained on, in their file: measured statistics as
// tensors, the names of classes as metadata.
//
// Plain data and pure functions; any thread.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/Safetensors.h"

namespace dlc::rt {

struct DataRecord {
  Dataset::Statistics statistics;
  Dataset::Classes classes;

  void addTo(TensorFile &file) const;
  /// Throws Error(BadInput) naming `path` for classes that somebody has damaged.
  static DataRecord of(const TensorFile &file, const std::string &path);
};

/// Class 3 of the one is class 3 of the other. Throws Error(BadInput) with the names of both and
/// `advice` where a source's folders differ.
void requireSameClasses(const Dataset::Classes &trained, const std::string &training,
                        const Dataset::Classes &given, const std::string &giver,
                        const std::string &advice);

} // namespace dlc::rt
