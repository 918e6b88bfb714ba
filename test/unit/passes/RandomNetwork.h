// Random networks of convolutions, elementwise ops and moves of channels, and a context to read
// them in.
#pragma once

#include "dialects/Comm/Comm.h"
#include "dialects/NN/NN.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace dlc {

inline std::unique_ptr<mlir::MLIRContext> makeContext() {
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  context->loadDialect<nn::NNDialect, comm::CommDialect>();
  return context;
}

/// Text of a predict program that grows op by op from tensors of one spatial size.
class RandomNetwork {
public:
  explicit RandomNetwork(unsigned seed) : random(seed) {
    tensors.push_back({"%x", 3});
    for (int i = 0; i < 12; ++i)
      addOp();
    // Everything is used, or there would be nothing to check.
    for (const Tensor &tensor : tensors)
      body += "nn.output \"" + tensor.name.substr(1) + "\", " + tensor.name + " : " +
              typeOf(tensor.channels) + "\n";
  }

  std::string text() const {
    return "nn.model @m attributes {stage = \"train\"} {\n" + variables +
           "nn.program @predict(%x: " + typeOf(3) + " {nn.input = \"x\"}) {\n" + body + "}\n}\n";
  }

private:
  struct Tensor {
    std::string name;
    unsigned channels;
  };

  static std::string typeOf(unsigned channels) {
    return "tensor<2x" + std::to_string(channels) + "x8x8xf32>";
  }
  const Tensor &pick() { return tensors[random() % tensors.size()]; }

  void addOp() {
    std::string name = "%v" + std::to_string(tensors.size());
    Tensor x = pick();
    switch (random() % 5) {
    case 0:
    case 1:
      return addConv(name, x);
    case 2:
      body += name + " = nn.relu " + x.name + " : (" + typeOf(x.channels) + ") -> " +
              typeOf(x.channels) + "\n";
      return tensors.push_back({name, x.channels});
    case 3: {
      Tensor y = pick();
      unsigned channels = x.channels + y.channels;
      body += name + " = nn.concat " + x.name + ", " + y.name + " {dim = 1 : i64} : (" +
              typeOf(x.channels) + ", " + typeOf(y.channels) + ") -> " + typeOf(channels) + "\n";
      return tensors.push_back({name, channels});
    }
    default: {
      unsigned start = random() % x.channels, size = 1 + random() % (x.channels - start);
      body += name + " = nn.slice " + x.name + " {start = array<i64: 0, " + std::to_string(start) +
              ", 0, 0>, size = array<i64: 2, " + std::to_string(size) + ", 8, 8>} : (" +
              typeOf(x.channels) + ") -> " + typeOf(size) + "\n";
      return tensors.push_back({name, size});
    }
    }
  }

  void addConv(const std::string &name, const Tensor &x) {
    constexpr unsigned widths[] = {1, 8, 16, 32, 48};
    unsigned channels = widths[random() % 5];
    std::string weight = "w" + std::to_string(tensors.size());
    std::string type =
        "tensor<" + std::to_string(channels) + "x" + std::to_string(x.channels) + "x3x3xf32>";
    variables += "nn.variable @" + weight + " : " + type +
                 " {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}\n";
    body += "%" + weight + " = nn.read @" + weight + " : " + type + "\n" + name + " = nn.conv " +
            x.name + ", %" + weight +
            " {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, "
            "padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (" +
            typeOf(x.channels) + ", " + type + ") -> " + typeOf(channels) + "\n";
    tensors.push_back({name, channels});
  }

  std::mt19937 random;
  std::vector<Tensor> tensors;
  std::string variables, body;
};

} // namespace dlc
