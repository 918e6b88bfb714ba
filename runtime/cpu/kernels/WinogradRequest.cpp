#include "runtime/cpu/kernels/WinogradRequest.h"

#include <algorithm>

namespace dlc::rt::winograd {
namespace {

constexpr unsigned mostThreads = 1024;

/// True if the source's windows are the result.
bool doExtentsFit(const KernelRequest &request, const std::vector<int64_t> &image,
                  const std::vector<int64_t> &windows, const std::vector<int64_t> &weight) {
  if (image[0] != windows[0] || weight[0] != windows[1] || weight[1] != image[1])
    return false;
  for (size_t i = 0; i + 2 < image.size(); ++i)
    if (windows[i + 2] !=
        image[i + 2] + request.paddingLow[i] + request.paddingHigh[i] - weight[i + 2] + 1)
      return false;
  return true;
}

/// Images alike, and of the rest what a convolution has in f32.
bool areTypesFit(const KernelRequest &request, bool readsBF16) {
  auto isFit = [&](const OperandType &operand) {
    return operand.dtype == DType::F32 || (readsBF16 && operand.dtype == DType::BF16);
  };
  const std::vector<OperandType> &operands = request.operands;
  const OperandType &weight = operands[*weightOperand(request.op)];
  return isFit(operands[sourceOperand()]) &&
         operands[sourceOperand()].dtype == operands[resultOperand(request)].dtype &&
         (request.op == KernelOp::ConvGradFilter ? weight.dtype == DType::F32 : isFit(weight)) &&
         (!request.bias || operands[2].dtype == DType::F32);
}

} // namespace

size_t resultOperand(const KernelRequest &request) {
  return request.op == KernelOp::ConvGradFilter ? 1 : request.operands.size() - 1;
}

Layout weightLayout(size_t rank, int64_t block) {
  Layout layout = Layout::rowMajor(rank);
  auto lanes = static_cast<uint16_t>(block);
  layout.blocks = {{1, lanes}, {0, lanes}};
  return layout;
}

bool isComputed(const KernelRequest &request, const Abilities &abilities) {
  int64_t block = abilities.block;
  std::optional<size_t> weight = weightOperand(request.op);
  if (!weight || request.groups != 1 || request.threads < 1 || request.threads > mostThreads)
    return false;
  const std::vector<int64_t> &window = request.operands[*weight].shape;
  size_t rank = window.size();
  auto isOne = [](int64_t value) { return value == 1; };
  if (rank < 4 || window[rank - 1] != 3 || window[rank - 2] != 3 || window[0] % block != 0 ||
      window[1] % block != 0 || !std::ranges::all_of(request.strides, isOne) ||
      !std::ranges::all_of(request.dilations, isOne))
    return false;
  const std::vector<int64_t> &from = request.operands[sourceOperand()].shape;
  const std::vector<int64_t> &to = request.operands[resultOperand(request)].shape;
  bool isGradient = request.op == KernelOp::ConvGradData;
  if (request.bias && request.operands[2].shape[0] != to[1])
    return false;
  return areTypesFit(request, abilities.readsBF16) &&
         doExtentsFit(request, isGradient ? to : from, isGradient ? from : to, window);
}

} // namespace dlc::rt::winograd
