// A descriptor of cuDNN's graph API: created, given attributes, finalized, read.
#pragma once

#include "runtime/cuda/libraries/Cudnn.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dlc::rt::cudnn {

/// The attribute type by which a C++ type is passed.
template <typename T> constexpr AttributeType attributeTypeOf = AttributeType::Int64;
template <> inline constexpr AttributeType attributeTypeOf<DataType> = AttributeType::DataType;
template <>
inline constexpr AttributeType attributeTypeOf<DataPointer> = AttributeType::DataPointer;
template <> inline constexpr AttributeType attributeTypeOf<bool> = AttributeType::Boolean;
template <> inline constexpr AttributeType attributeTypeOf<int32_t> = AttributeType::Int32;
template <> inline constexpr AttributeType attributeTypeOf<float> = AttributeType::Float;
template <> inline constexpr AttributeType attributeTypeOf<char> = AttributeType::Char;
template <> inline constexpr AttributeType attributeTypeOf<Handle> = AttributeType::Descriptor;
template <>
inline constexpr AttributeType attributeTypeOf<ConvolutionMode> = AttributeType::ConvolutionMode;
template <>
inline constexpr AttributeType attributeTypeOf<HeuristicMode> = AttributeType::HeuristicMode;
template <>
inline constexpr AttributeType attributeTypeOf<PointwiseMode> = AttributeType::PointwiseMode;
template <>
inline constexpr AttributeType attributeTypeOf<NumericalNote> = AttributeType::NumericalNote;
template <>
inline constexpr AttributeType attributeTypeOf<BehaviorNote> = AttributeType::BehaviorNote;

/// Throws Error(Runtime) with cuDNN's reason where a call fails, unless it says otherwise.
class Descriptor {
public:
  Descriptor(const Functions &library, DescriptorType type);
  ~Descriptor();
  Descriptor(Descriptor &&other) noexcept;
  Descriptor &operator=(Descriptor &&other) noexcept;

  Handle get() const { return handle; }

  template <typename T> Descriptor &set(Attribute name, const T &value) {
    setRaw(name, attributeTypeOf<T>, 1, static_cast<const void *>(&value));
    return *this;
  }
  template <typename T> Descriptor &set(Attribute name, std::span<const T> values) {
    setRaw(name, attributeTypeOf<T>, static_cast<int64_t>(values.size()),
           static_cast<const void *>(values.data()));
    return *this;
  }
  Descriptor &set(Attribute name, const std::vector<int64_t> &values) {
    return set(name, std::span<const int64_t>(values));
  }
  Descriptor &set(Attribute name, const Descriptor &value) { return set(name, value.get()); }
  Descriptor &set(Attribute name, std::string_view text) {
    return set(name, std::span<const char>(text.data(), text.size()));
  }

  Descriptor &finalize();
  /// False if the library refuses, as engines do that cannot compute a graph.
  bool tryFinalize(Status &reason);

  template <typename T> T getOne(Attribute name) const {
    T value{};
    getRaw(name, attributeTypeOf<T>, 1, &value);
    return value;
  }
  /// All that there are, none if the attribute has no value.
  template <typename T> std::vector<T> getAll(Attribute name) const {
    std::vector<T> values(static_cast<size_t>(countOf(name, attributeTypeOf<T>)));
    if (!values.empty())
      values.resize(static_cast<size_t>(
          getRaw(name, attributeTypeOf<T>, static_cast<int64_t>(values.size()), values.data())));
    return values;
  }
  /// A descriptor that this one holds, as one of its own.
  Descriptor getDescriptor(Attribute name, DescriptorType type) const;
  std::vector<Descriptor> getDescriptors(Attribute name, DescriptorType type) const;

private:
  void setRaw(Attribute name, AttributeType type, int64_t count, const void *elements);
  int64_t getRaw(Attribute name, AttributeType type, int64_t room, void *elements) const;
  int64_t countOf(Attribute name, AttributeType type) const;
  void require(Status status, const char *what, Attribute name) const;

  const Functions *library;
  Handle handle = nullptr;
  DescriptorType kind;
};

} // namespace dlc::rt::cudnn
