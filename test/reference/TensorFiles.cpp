#include "test/reference/TensorFiles.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/Safetensors.h"
#include "runtime/data/readers/Array.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dlc;
using namespace dlc::reference;

Tensors reference::readWeights(const std::string &path) {
  Tensors tensors;
  for (const auto &[name, source] : rt::readSafetensors(path).tensors) {
    Tensor &tensor = tensors[name] = Tensor(source.shape);
    tensor.data.assign(source.values.begin(), source.values.end());
  }
  return tensors;
}

Tensor reference::readRows(const std::string &path, int64_t first, int64_t rows) {
  rt::Array array = rt::readArray(path);
  Shape shape(array.shape().begin(), array.shape().end());
  if (shape.empty() || first + rows > shape[0])
    throw rt::Error(rt::ErrorCode::BadInput, "'" + path + "' has " + rt::shapeText(array.shape()) +
                                                 " elements, wanted " +
                                                 std::to_string(first + rows) + " rows");
  int64_t rowElements = array.elements() / shape[0];
  shape[0] = rows;
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data[i] = array.at(first * rowElements + i);
  return tensor;
}

void reference::writeTensors(const std::string &path, const Tensors &tensors) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t offset = 0;
  for (const auto &[name, tensor] : tensors) {
    uint64_t bytes = tensor.data.size() * sizeof(double);
    header[name] = {{"dtype", "F64"},
                    {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t headerBytes = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char *>(&headerBytes), sizeof headerBytes);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const auto &[name, tensor] : tensors)
    out.write(reinterpret_cast<const char *>(tensor.data.data()),
              static_cast<std::streamsize>(tensor.data.size() * sizeof(double)));
  if (!out.flush())
    throw rt::Error(rt::ErrorCode::Runtime, "cannot write '" + path + "'");
}
