// What an input of a program takes.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/data/Source.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// An input of one program of the model.
struct InputSpec {
  std::string name;
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;      // logical, batch first; anyExtent where data decides
  std::optional<ValueRange> range; // of the data as the steps leave them
  bool neededByPredict = false;
  bool sumsToOne = false;      // along the channels
  std::string sizeReason = {}; // why the extents cannot differ, for messages; may be empty
  /// The type in which the program takes it, U8 or U16, if that is not `dtype`: elements of its
  /// source. What normalize would make of them, (x - shift) * scale, is then the program's to
  /// compute, of what these inputs, by their numbers, bring it.
  std::optional<artifact::DType> stored = {};
  std::optional<size_t> shift = {}, scale = {};
  bool isOfNormalize = false; // such an input: [rows, channels], which is none of the model's
};

/// Whether the input takes samples of this shape, [channels, ...]; one without channels takes those
/// of one channel, too.
bool takesShape(const InputSpec &spec, std::span<const int64_t> sample);
/// Drops the channel that the input lacks from a shape that it takes.
void dropMissingAxis(const InputSpec &spec, std::vector<int64_t> &sample);

/// Throws Error(BadInput) for a value at a place that the input does not take. `beside`: what the
/// message says behind the value, with a space first.
[[noreturn]] void refuseValue(const InputSpec &spec, const std::string &place, double value,
                              const std::string &beside = "");

/// Throws Error(BadInput) if the input does not take a sample's values, [channels, ...], normalized
/// where that is left to the program: if one is not in its type and range, or shares of a whole do
/// not sum to 1. `place` says where they are from. Reads them, unless their type tells.
void requireValues(const InputSpec &spec, Sample &sample,
                   const std::function<std::string()> &place);

/// Throws Error(BadInput) if files of the source hold other elements than the program takes.
void requireElements(const InputSpec &spec, const Source &source);

} // namespace dlc::rt
