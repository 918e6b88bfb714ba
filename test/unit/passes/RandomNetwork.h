// Random networks of convolutions and their filter gradients, elementwise ops, casts, constants and
// moves of channels, and a context to read them in.
#pragma once

#include "dialects/Comm/Comm.h"
#include "dialects/NN/NN.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
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

/// Text of a train program that grows op by op from tensors of one spatial size. Weights are
/// assigned their convolutions' filter gradients.
class RandomNetwork {
public:
  explicit RandomNetwork(unsigned seed) : random(seed) {
    tensors.push_back({"%x", 3});
    addConv("%v0", pick());
    for (int i = 0; i < 16; ++i)
      addOp();
    // Everything is used, or there would be nothing to check.
    for (const Tensor &tensor : tensors)
      if (!tensor.isRead)
        body += "nn.output \"" + tensor.name.substr(1) + "\", " + tensor.name + " : " +
                typeOf(tensor.channels) + "\n";
  }

  std::string text() const {
    return "nn.model @m attributes {stage = \"train\"} {\n" + variables +
           "nn.program @train(%x: " + typeOf(3) + " {nn.input = \"x\"}) {\n" + body + "}\n}\n";
  }

private:
  struct Tensor {
    std::string name;
    unsigned channels;
    bool isRead = false;
  };

  static std::string typeOf(unsigned channels, const std::string &element = "f32") {
    return "tensor<2x" + std::to_string(channels) + "x32x32x" + element + ">";
  }
  /// An operand; rather a late one, for networks that are deep.
  Tensor pick() {
    Tensor &picked = tensors[std::max(random() % tensors.size(), random() % tensors.size())];
    picked.isRead = true;
    return picked;
  }

  void add(const Tensor &result, const std::string &op) {
    body += result.name + " = " + op + "\n";
    tensors.push_back(result);
  }

  void addOp() {
    std::string name = "%v" + std::to_string(tensors.size());
    Tensor x = pick();
    switch (random() % 10) {
    case 0:
    case 1:
    case 2:
      return addConv(name, x);
    case 3:
      return addUnary({name, x.channels}, "relu", x.name, "f32", "f32");
    case 4:
      return addSum(name, x);
    case 5: {
      Tensor y = pick();
      unsigned channels = x.channels + y.channels;
      return add({name, channels}, "nn.concat " + x.name + ", " + y.name + " {dim = 1 : i64} : (" +
                                       typeOf(x.channels) + ", " + typeOf(y.channels) + ") -> " +
                                       typeOf(channels));
    }
    case 6: {
      unsigned start = random() % x.channels, size = 1 + random() % (x.channels - start);
      return add({name, size}, "nn.slice " + x.name + " {start = array<i64: 0, " +
                                   std::to_string(start) + ", 0, 0>, size = array<i64: 2, " +
                                   std::to_string(size) + ", 32, 32>} : (" + typeOf(x.channels) +
                                   ") -> " + typeOf(size));
    }
    case 7:
      return addRounding(name, x);
    case 8:
      return addDouble(name, x);
    default:
      return addConstant(name);
    }
  }

  void addUnary(const Tensor &result, const std::string &op, const std::string &x,
                const std::string &from, const std::string &to) {
    add(result, unary(op, x, result.channels, from, to));
  }
  static std::string unary(const std::string &op, const std::string &x, unsigned channels,
                           const std::string &from, const std::string &to) {
    return "nn." + op + " " + x + " : (" + typeOf(channels, from) + ") -> " + typeOf(channels, to);
  }

  /// With a tensor of as many channels.
  void addSum(const std::string &name, const Tensor &x) {
    Tensor y = pick();
    while (y.channels != x.channels)
      y = pick();
    std::string type = typeOf(x.channels);
    add({name, x.channels},
        "nn.add " + x.name + ", " + y.name + " : (" + type + ", " + type + ") -> " + type);
  }

  /// Two readers of a rounded value, which are made anew of it in other layouts.
  void addRounding(const std::string &name, const Tensor &x) {
    std::string rounded = name + ".rounded";
    body += rounded + " = " + unary("cast", x.name, x.channels, "f32", "bf16") + "\n";
    addUnary({name, x.channels}, "cast", rounded, "bf16", "f32");
    addUnary({name + ".again", x.channels}, "cast", rounded, "bf16", "f32");
  }

  /// No library moves f64.
  void addDouble(const std::string &name, const Tensor &x) {
    std::string wide = name + ".wide", result = name + ".result";
    body += wide + " = " + unary("cast", x.name, x.channels, "f32", "f64") + "\n" + result + " = " +
            unary("relu", wide, x.channels, "f64", "f64") + "\n";
    addUnary({name, x.channels}, "cast", result, "f64", "f32");
  }

  /// Of as many channels as some tensor has: equal everywhere, or per channel.
  void addConstant(const std::string &name) {
    unsigned channels = tensors[random() % tensors.size()].channels;
    bool perChannel = random() % 2;
    std::string one = perChannel ? "tensor<" + std::to_string(channels) + "xf32>" : "tensor<f32>";
    body += name + ".one = nn.constant dense<2.0> : " + one + " : " + one + "\n";
    add({name, channels}, "nn.broadcast " + name + ".one {dims = array<i64" +
                              (perChannel ? ": 1" : "") + ">} : (" + one + ") -> " +
                              typeOf(channels));
  }

  void addConv(const std::string &name, const Tensor &x) {
    constexpr unsigned widths[] = {1, 16, 32, 32, 48};
    unsigned channels = widths[random() % 5];
    std::string weight = "w" + std::to_string(tensors.size());
    std::string type =
        "tensor<" + std::to_string(channels) + "x" + std::to_string(x.channels) + "x3x3xf32>";
    std::string window = " {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, "
                         "padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (";
    variables += "nn.variable @" + weight + " : " + type +
                 " {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}\n";
    body += "%" + weight + " = nn.read @" + weight + " : " + type + "\n";
    add({name, channels}, "nn.conv " + x.name + ", %" + weight + window + typeOf(x.channels) +
                              ", " + type + ") -> " + typeOf(channels));
    if (random() % 2)
      body += name + ".gradient = nn.conv_grad_filter " + x.name + ", " + name +
              " {nn.role = #nn.role<backward, @" + weight + ">, " + window.substr(2) +
              typeOf(x.channels) + ", " + typeOf(channels) + ") -> " + type + "\nnn.assign @" +
              weight + ", " + name + ".gradient {nn.role = #nn.role<update>} : " + type + "\n";
  }

  std::mt19937 random;
  std::vector<Tensor> tensors;
  std::string variables, body;
};

} // namespace dlc
