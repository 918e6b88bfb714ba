#include "dialects/NN/ElementType.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace dlc;

artifact::DType nn::dtypeOf(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    switch (integer.getWidth()) {
    case 1:
      return artifact::DType::Bool;
    case 8:
      return integer.isUnsigned() ? artifact::DType::U8 : artifact::DType::I8;
    case 16:
      return artifact::DType::U16;
    case 32:
      return artifact::DType::I32;
    default:
      return artifact::DType::I64;
    }
  return element.isF64()    ? artifact::DType::F64
         : element.isBF16() ? artifact::DType::BF16
         : element.isF16()  ? artifact::DType::F16
                            : artifact::DType::F32;
}
