#include "test/cuda/StoredGraph.h"

#include "runtime/artifact/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace dlc::rt::test {
namespace {

using Json = nlohmann::json;

artifact::DType typeOf(const std::string &name) {
  if (name == "CUDNN_DATA_FLOAT")
    return artifact::DType::F32;
  if (name == "CUDNN_DATA_BFLOAT16")
    return artifact::DType::BF16;
  if (name == "CUDNN_DATA_HALF")
    return artifact::DType::F16;
  throw Error(ErrorCode::Artifact, "a plan has a tensor of type " + name);
}

/// One position in space after the other, in up to three dimensions.
struct Window {
  std::vector<int64_t> extents; // of the image or the filter
  int64_t count = 1;

  explicit Window(const std::vector<int64_t> &tensor) : extents(tensor.begin() + 2, tensor.end()) {
    for (int64_t extent : extents)
      count *= extent;
  }
  std::vector<int64_t> at(int64_t position) const {
    std::vector<int64_t> index(extents.size());
    for (size_t dim = extents.size(); dim-- > 0; position /= extents[dim])
      index[dim] = position % extents[dim];
    return index;
  }
};

/// to += factor * from
void add(float factor, const float *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += factor * from[i];
}

/// [O, taps, I] as [taps, groups, I, O / groups].
std::vector<float> byTaps(const std::vector<float> &filter, int64_t outputs, int64_t taps,
                          int64_t inputs, int64_t groups) {
  std::vector<float> turned(filter.size());
  int64_t each = outputs / groups;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t i = 0; i < inputs; ++i)
        turned[static_cast<size_t>(((tap * groups + o / each) * inputs + i) * each + o % each)] =
            filter[static_cast<size_t>((o * taps + tap) * inputs + i)];
  return turned;
}

} // namespace

StoredGraph::StoredGraph(const std::string &plan) try {
  Json graph = Json::parse(plan).at("operationGraph");
  for (const Json &tensor : graph.at("tensors")) {
    std::string name = tensor.at("name");
    tensors[name] = {typeOf(tensor.at("dataType")), tensor.at("dim"), tensor.at("stride")};
    if (!tensor.at("isVirtual").get<bool>())
      operands[name] = std::stoul(name) - 1;
  }
  for (const Json &node : graph.at("nodes")) {
    std::string operation = node.at("operation");
    auto isA = [&](const char *name) { return operation.find(name) != std::string::npos; };
    if (isA("POINTWISE")) {
      std::string mode = node.at("pointwiseMode");
      bool isSum = mode == "CUDNN_POINTWISE_ADD";
      if (!isSum && mode != "CUDNN_POINTWISE_RELU_FWD")
        throw Error(ErrorCode::Artifact, "a plan has a pointwise node " + mode);
      nodes.push_back({isSum ? Kind::Add : Kind::Relu, node.at("X"),
                       isSum ? node.at("B").get<std::string>() : "", node.at("Y")});
      continue;
    }
    Kind kind = isA("CONVOLUTION_FORWARD")         ? Kind::Forward
                : isA("CONVOLUTION_BACKWARD_DATA") ? Kind::Data
                : isA("CONVOLUTION_BACKWARD_FILTER")
                    ? Kind::Filter
                    : throw Error(ErrorCode::Artifact, "a plan has a node " + operation);
    if (node.at("mode") != "CUDNN_CROSS_CORRELATION" || node.at("alpha") != 1 ||
        node.at("beta") != 0)
      throw Error(ErrorCode::Artifact, "a plan has a scaled or flipped convolution");
    auto padding = [&](const char *side) {
      return node.contains("pad") ? node.at("pad") : node.at(side);
    };
    nodes.push_back({kind, node.at(kind == Kind::Data ? "dX" : "X"),
                     node.at(kind == Kind::Filter ? "dW" : "W"),
                     node.at(kind == Kind::Forward ? "Y" : "dY"), padding("pad_lower"),
                     padding("pad_upper"), node.at("stride"), node.at("dilation")});
  }
  if (!std::ranges::all_of(nodes, [this](const Node &node) { return fits(node); }))
    throw Error(ErrorCode::Artifact, "a plan has a window that does not fit its images");
} catch (const Json::exception &error) {
  throw Error(ErrorCode::Artifact, std::string("a stored plan is damaged: ") + error.what());
} catch (const std::logic_error &error) { // no such tensor
  throw Error(ErrorCode::Artifact, std::string("a stored plan is damaged: ") + error.what());
}

bool StoredGraph::fits(const Node &node) const {
  if (node.kind > Kind::Filter)
    return true;
  const std::vector<int64_t> &image = tensors.at(node.x).extents,
                             &filter = tensors.at(node.w).extents,
                             &result = tensors.at(node.y).extents;
  size_t space = node.strides.size();
  bool fits =
      node.lower.size() == space && node.upper.size() == space && node.dilations.size() == space;
  for (const std::vector<int64_t> *extents : {&image, &filter, &result})
    fits &= extents->size() == space + 2;
  for (size_t i = 0; fits && i < space; ++i)
    fits = node.strides[i] > 0 &&
           (image[i + 2] + node.lower[i] + node.upper[i] - node.dilations[i] * (filter[i + 2] - 1) -
            1) / node.strides[i] +
                   1 ==
               result[i + 2];
  return fits && filter[1] > 0 && image[1] % filter[1] == 0 && filter[0] == result[1] &&
         image[0] == result[0];
}

void StoredGraph::convolve(const Node &node, Values &values) const {
  const StoredTensor &image = tensors.at(node.x), &filter = tensors.at(node.w),
                     &result = tensors.at(node.y);
  Window places(result.extents), taps(filter.extents), pixels(image.extents);
  int64_t batch = image.extents[0], channels = image.extents[1], outputs = result.extents[1];
  int64_t inputs = filter.extents[1], groups = channels / inputs, each = outputs / groups;
  const std::string &written = node.kind == Kind::Forward ? node.y
                               : node.kind == Kind::Data  ? node.x
                                                          : node.w;
  values[written].assign(static_cast<size_t>(tensors.at(written).elements()), 0);
  std::vector<float> turned;
  if (node.kind == Kind::Forward)
    turned = byTaps(values.at(node.w), outputs, taps.count, inputs, groups);
  float *x = values.at(node.x).data(), *w = values.at(node.w).data(), *y = values.at(node.y).data();
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t place = 0; place < places.count; ++place)
      for (int64_t tap = 0; tap < taps.count; ++tap) {
        std::vector<int64_t> out = places.at(place), offset = taps.at(tap);
        int64_t pixel = 0;
        bool isInside = true;
        for (size_t dim = 0; dim < out.size(); ++dim) {
          int64_t at =
              out[dim] * node.strides[dim] - node.lower[dim] + offset[dim] * node.dilations[dim];
          isInside &= at >= 0 && at < pixels.extents[dim];
          pixel = pixel * pixels.extents[dim] + at;
        }
        if (!isInside)
          continue;
        float *from = x + (n * pixels.count + pixel) * channels;
        float *to = y + (n * places.count + place) * outputs;
        for (int64_t group = 0; group < groups; ++group, from += inputs, to += each) {
          if (node.kind == Kind::Forward) {
            const float *row = turned.data() + (tap * groups + group) * inputs * each;
            for (int64_t i = 0; i < inputs; ++i)
              add(from[i], row + i * each, to, each);
            continue;
          }
          for (int64_t o = 0; o < each; ++o) {
            float *row = w + ((group * each + o) * taps.count + tap) * inputs;
            if (node.kind == Kind::Data)
              add(to[o], row, from, inputs);
            else
              add(to[o], from, row, inputs);
          }
        }
      }
}

void StoredGraph::addBias(const Node &node, Values &values) const {
  std::vector<float> sums = values.at(node.x);
  const std::vector<float> &bias = values.at(node.w);
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += bias[i % bias.size()];
  values[node.y] = std::move(sums);
}

void StoredGraph::run(std::span<const std::span<std::byte>> memory, bool isTf32) const {
  Values values;
  auto memoryOf = [&](const std::string &name) {
    size_t place = operands.at(name);
    if (place >= memory.size())
      throw Error(ErrorCode::Artifact, "a plan has an operand " + name + " more than its kernel");
    return memory[place];
  };
  for (const Node &node : nodes) {
    bool isConvolution = node.kind <= Kind::Filter;
    std::vector<std::string> read{node.kind == Kind::Data ? node.y : node.x};
    if (node.kind != Kind::Relu)
      read.push_back(node.kind == Kind::Filter ? node.y : node.w);
    for (const std::string &name : read) {
      if (!values.contains(name))
        values[name] = tensors.at(name).read(memoryOf(name), name);
      if (isConvolution && isTf32 && tensors.at(name).dtype == artifact::DType::F32)
        roundToTf32(values.at(name));
    }
    if (isConvolution)
      convolve(node, values);
    else if (node.kind == Kind::Add)
      addBias(node, values);
    else
      for (values[node.y] = values.at(node.x); float &value : values.at(node.y))
        value = value > 0 || value != value ? value : 0;
    const std::string &written = node.kind == Kind::Data     ? node.x
                                 : node.kind == Kind::Filter ? node.w
                                                             : node.y;
    if (operands.contains(written))
      tensors.at(written).write(values.at(written), memoryOf(written), written);
  }
}

} // namespace dlc::rt::test
