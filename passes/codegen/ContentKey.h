// The content of ops as bytes: equal bytes are equal code.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace dlc {

/// Bytes of a region's ops: names, attributes, types, and which value is which; not locations.
/// Equal bytes are equal code, within one context.
class ContentKey {
public:
  explicit ContentKey(mlir::Region &region) { write(region); }
  virtual ~ContentKey() = default;

  std::string bytes;

protected:
  /// For keys that leave something out: their makers call `write`.
  ContentKey() = default;
  virtual mlir::Type typeOf(mlir::BlockArgument argument) const { return argument.getType(); }
  virtual bool hasAttributes(mlir::Operation &op) const { return true; }
  void write(mlir::Region &region);

private:
  void write(mlir::Operation &op);
  void define(mlir::Value value, mlir::Type type);
  template <typename T> void append(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }

  llvm::DenseMap<mlir::Value, size_t> numbers;
};

} // namespace dlc
