#include "test/unit/passes/Elements.h"

#include "dialects/NN/NN.h"

#include <cstring>

using namespace mlir;
using namespace dlc;

void dlc::test::storeElement(Type type, char *to, double value) {
  auto put = [&](auto stored) { std::memcpy(to, &stored, sizeof(stored)); };
  if (type.isF64())
    put(value);
  else if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat rounded(value);
    bool inexact;
    rounded.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    uint64_t bits = rounded.bitcastToAPInt().getZExtValue();
    std::memcpy(to, &bits, nn::elementBytes(type));
  } else {
    auto integer = static_cast<int64_t>(value);
    std::memcpy(to, &integer, nn::elementBytes(type));
  }
}

double dlc::test::loadElement(Type type, const char *from) {
  uint64_t bits = 0;
  unsigned bytes = nn::elementBytes(type);
  std::memcpy(&bits, from, bytes);
  if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(floating.getFloatSemantics(), llvm::APInt(bytes * 8, bits));
    return value.convertToDouble();
  }
  return static_cast<double>(llvm::APInt(bytes * 8, bits).getSExtValue());
}
