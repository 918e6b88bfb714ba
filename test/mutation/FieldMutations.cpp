// One recursive walk over tables, structs and vectors, by the reflection that the schema gives.

#include "test/mutation/FieldMutations.h"

#include "flatbuffers/reflection.h"

#include <cstring>
#include <limits>
#include <set>
#include <type_traits>

namespace dlc::rt::test {
namespace {

namespace fb = flatbuffers;
using Base = reflection::BaseType;

template <typename Number> std::vector<uint8_t> bytesOf(Number value) {
  std::vector<uint8_t> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

class Walk {
public:
  Walk(const reflection::Schema &schema, std::span<const uint8_t> buffer)
      : schema(schema), buffer(buffer) {}

  void table(const reflection::Object &type, const fb::Table &table, const std::string &path);
  std::vector<FieldMutation> take() { return std::move(mutations); }

private:
  void field(const reflection::Field &field, const reflection::Object &parent,
             const fb::Table &table, const std::string &path);
  void structure(const reflection::Object &type, const uint8_t *data, const std::string &path);
  void vector(const reflection::Type &type, const uint8_t *data, const std::string &path);
  void number(Base type, const uint8_t *data, const std::string &path);
  template <typename Number> void numbers(const uint8_t *data, const std::string &path);
  void add(const std::string &path, const std::string &value, const uint8_t *data,
           std::vector<uint8_t> bytes) {
    if (std::memcmp(data, bytes.data(), bytes.size()) != 0)
      mutations.push_back(
          {path + " = " + value, static_cast<size_t>(data - buffer.data()), std::move(bytes)});
  }
  const reflection::Object &objectOf(const reflection::Type &type) const {
    return *schema.objects()->Get(static_cast<fb::uoffset_t>(type.index()));
  }

  const reflection::Schema &schema;
  std::span<const uint8_t> buffer;
  std::vector<FieldMutation> mutations;
  std::set<const void *> seen; // tables may be shared
};

template <typename Number> void Walk::numbers(const uint8_t *data, const std::string &path) {
  auto value = fb::ReadScalar<Number>(data);
  using Limits = std::numeric_limits<Number>;
  auto change = [&](Number changed) { add(path, std::to_string(changed), data, bytesOf(changed)); };
  change(0);
  change(1);
  if constexpr (std::is_floating_point_v<Number>) {
    for (Number changed : {value + 1, value * 512, -value, Number(-1), Limits::max(),
                           Limits::infinity(), Limits::quiet_NaN()})
      change(changed);
  } else {
    auto bits = static_cast<std::make_unsigned_t<Number>>(value);
    change(static_cast<Number>(bits + 1));
    change(static_cast<Number>(bits * 512));
    change(Limits::max());
    change(static_cast<Number>(0 - bits));
    change(static_cast<Number>(uint64_t(Limits::max()) + 1)); // the least, if signed
    change(static_cast<Number>(-1));
  }
}

void Walk::number(Base type, const uint8_t *data, const std::string &path) {
  switch (type) {
  case Base::Bool:
  case Base::UType:
  case Base::UByte:
    return numbers<uint8_t>(data, path);
  case Base::Byte:
    return numbers<int8_t>(data, path);
  case Base::Short:
    return numbers<int16_t>(data, path);
  case Base::UShort:
    return numbers<uint16_t>(data, path);
  case Base::Int:
    return numbers<int32_t>(data, path);
  case Base::UInt:
    return numbers<uint32_t>(data, path);
  case Base::Long:
    return numbers<int64_t>(data, path);
  case Base::ULong:
    return numbers<uint64_t>(data, path);
  case Base::Float:
    return numbers<float>(data, path);
  case Base::Double:
    return numbers<double>(data, path);
  default:
    return;
  }
}

void Walk::structure(const reflection::Object &type, const uint8_t *data, const std::string &path) {
  for (const reflection::Field *field : *type.fields())
    number(field->type()->base_type(), data + field->offset(), path + "." + field->name()->str());
}

void Walk::vector(const reflection::Type &type, const uint8_t *data, const std::string &path) {
  auto count = fb::ReadScalar<uint32_t>(data);
  add(path, "[]", data, bytesOf(uint32_t{0}));
  add(path, "[one less]", data, bytesOf(count - 1));
  add(path, "[one more]", data, bytesOf(count + 1));
  add(path, "[512 times as many]", data, bytesOf(count * 512));
  const uint8_t *first = data + sizeof(uint32_t);
  // Bytes that are another buffer, or text, are no numbers.
  constexpr uint32_t most = 64;
  for (uint32_t i = 0; i < count; ++i) {
    std::string at = path + "[" + std::to_string(i) + "]";
    if (type.element() == Base::Obj) {
      const reflection::Object &object = objectOf(type);
      if (object.is_struct())
        structure(object, first + i * static_cast<size_t>(object.bytesize()), at);
      else if (const uint8_t *place = first + i * sizeof(uint32_t))
        table(object, *reinterpret_cast<const fb::Table *>(place + fb::ReadScalar<uint32_t>(place)),
              at);
    } else if (type.element() != Base::String && count <= most) {
      number(type.element(), first + i * fb::GetTypeSize(type.element()), at);
    }
  }
}

void Walk::field(const reflection::Field &field, const reflection::Object &parent,
                 const fb::Table &table, const std::string &path) {
  const uint8_t *data = table.GetAddressOf(field.offset());
  if (!data)
    return;
  const reflection::Type &type = *field.type();
  auto followed = [&] { return data + fb::ReadScalar<uint32_t>(data); };
  switch (type.base_type()) {
  case Base::String:
    return add(path, "\"\"", followed(), bytesOf(uint32_t{0}));
  case Base::Vector:
    return vector(type, followed(), path);
  case Base::Obj:
    if (objectOf(type).is_struct())
      return structure(objectOf(type), data, path);
    return this->table(objectOf(type), *reinterpret_cast<const fb::Table *>(followed()), path);
  case Base::Union: {
    const reflection::Object &object = fb::GetUnionType(schema, parent, field, table);
    return this->table(object, *reinterpret_cast<const fb::Table *>(followed()), path);
  }
  default:
    return number(type.base_type(), data, path);
  }
}

void Walk::table(const reflection::Object &type, const fb::Table &table, const std::string &path) {
  if (!seen.insert(&table).second)
    return;
  for (const reflection::Field *member : *type.fields())
    field(*member, type, table,
          path.empty() ? member->name()->str() : path + "." + member->name()->str());
}

} // namespace

std::vector<FieldMutation> fieldMutations(const Schema &schema, std::span<const uint8_t> buffer,
                                          size_t root) {
  const reflection::Schema &types = *reflection::GetSchema(schema.data());
  Walk walk(types, buffer);
  const uint8_t *start = buffer.data() + root;
  walk.table(*types.root_table(),
             *reinterpret_cast<const fb::Table *>(start + fb::ReadScalar<uint32_t>(start)), "");
  return walk.take();
}

} // namespace dlc::rt::test
