#include "runtime/data/Safetensors.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/core/Bf16.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/data/readers/Array.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using nlohmann::json;

namespace {

/// The format's own bound on headers.
constexpr uint64_t maximumHeaderBytes = 100'000'000;

/// torch.save writes a zip archive, before version 1.6 a pickle: no size of a header that we take.
bool isPyTorchs(std::span<const std::byte> bytes, uint64_t headerBytes) {
  auto begins = [&](std::string_view magic) {
    return std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  };
  return begins("PK\x03\x04") || (begins("\x80\x02") && headerBytes > maximumHeaderBytes);
}

class Reader {
public:
  explicit Reader(const std::string &path) : path(path), file(path) {}

  TensorFile read() {
    std::span<const std::byte> bytes = file.bytes();
    uint64_t headerBytes = 0;
    if (bytes.size() < 8)
      throw damaged("it is truncated");
    std::memcpy(&headerBytes, bytes.data(), 8);
    if (isPyTorchs(bytes, headerBytes))
      throw Error(ErrorCode::BadInput,
                  "'" + path +
                      "' is a file of PyTorch's; convert it in Python: import torch, "
                      "safetensors.torch; safetensors.torch.save_file(torch.load('" +
                      path + "', weights_only=True), 'weights.safetensors')");
    if (headerBytes > maximumHeaderBytes)
      throw damaged("its header claims " + std::to_string(headerBytes) + " bytes");
    if (headerBytes > bytes.size() - 8)
      throw damaged("it is truncated: its header ends early");
    data = bytes.subspan(8 + headerBytes);
    const char *text = reinterpret_cast<const char *>(bytes.data()) + 8;
    json header = json::parse(text, text + headerBytes, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object())
      throw damaged("its header is no JSON object");
    TensorFile result;
    for (const auto &[name, entry] : header.items())
      if (name == "__metadata__")
        result.metadata = metadata(entry);
      else
        result.tensors.emplace(name, tensor(name, entry));
    checkRanges();
    return result;
  }

private:
  Error damaged(const std::string &why) const {
    return unreadable(why + "; copy it again, or give another one");
  }
  Error unreadable(const std::string &why) const {
    return Error(ErrorCode::BadInput,
                 "cannot read safetensors file '" + path + "': " + printable(why));
  }

  std::map<std::string, std::string> metadata(const json &entry) const {
    std::map<std::string, std::string> result;
    if (!entry.is_object())
      throw damaged("its metadata is no JSON object");
    for (const auto &[key, value] : entry.items()) {
      if (!value.is_string())
        throw damaged("its metadata holds something else than strings");
      result.emplace(key, value.get<std::string>());
    }
    return result;
  }

  ElementType type(const std::string &name, const json &entry) {
    std::string dtype = entry["dtype"];
    isBfloat = dtype == "BF16";
    if (dtype == "F32")
      return ElementType::F32;
    if (dtype == "F16" || isBfloat)
      return ElementType::F16;
    if (dtype == "F64")
      return ElementType::F64;
    if (dtype == "I64")
      return ElementType::I64;
    throw unreadable("tensor " + name + " has type " + dtype +
                     "; wanted F32, F16, BF16, F64 or I64");
  }

  static bool isEntry(const json &entry) {
    auto isSize = [](const json &number) { return number.is_number_unsigned(); };
    return entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
           entry.contains("shape") && entry["shape"].is_array() &&
           std::all_of(entry["shape"].begin(), entry["shape"].end(), isSize) &&
           entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
           entry["data_offsets"].size() == 2 &&
           std::all_of(entry["data_offsets"].begin(), entry["data_offsets"].end(), isSize);
  }

  Tensor tensor(const std::string &name, const json &entry) {
    if (!isEntry(entry))
      throw damaged("the entry of tensor " + name + " lacks dtype, shape or data_offsets");
    uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    if (begin > end)
      throw damaged("tensor " + name + " ends before it begins");
    if (end > data.size())
      throw damaged("it is truncated: tensor " + name + " ends at byte " + std::to_string(end) +
                    " of " + std::to_string(data.size()));
    ranges.emplace_back(begin, end);
    Array array({path + ", tensor " + printable(name), type(name, entry),
                 entry["shape"].get<std::vector<int64_t>>()},
                data.subspan(begin, end - begin), nullptr);
    if (!isBfloat)
      return {array.shape(), array.values()};
    Tensor result{array.shape(), std::vector<float>(static_cast<size_t>(array.elements()))};
    for (size_t i = 0; i < result.values.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, array.bytes().data() + 2 * i, 2);
      result.values[i] = floatFromBf16(bits);
    }
    return result;
  }

  void checkRanges() {
    std::sort(ranges.begin(), ranges.end());
    uint64_t next = 0;
    for (auto [begin, end] : ranges) {
      if (begin != next)
        throw damaged(begin < next ? "its tensors overlap" : "there is a hole between its tensors");
      next = end;
    }
    if (next != data.size())
      throw damaged("bytes follow the last tensor");
  }

  const std::string &path;
  MappedFile file;
  std::span<const std::byte> data;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  bool isBfloat = false; // of the tensor being read; has the size of a half
};

} // namespace

TensorFile readSafetensors(const std::string &path) { return Reader(path).read(); }

void writeSafetensors(const std::string &path, const TensorFile &file) {
  json header = json::object();
  if (!file.metadata.empty())
    header["__metadata__"] = file.metadata;
  uint64_t offset = 0;
  for (const auto &[name, tensor] : file.tensors) {
    uint64_t bytes = tensor.values.size() * sizeof(float);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = jsonText(header);
  text.resize((text.size() + 7) / 8 * 8, ' '); // keeps the tensors aligned
  uint64_t headerBytes = text.size();
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(&headerBytes, 1)));
  out.write(std::as_bytes(std::span(text)));
  for (const auto &[name, tensor] : file.tensors)
    out.write(std::as_bytes(std::span(tensor.values)));
  out.commit();
}

} // namespace dlc::rt
