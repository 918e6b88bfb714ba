// Names, attributes and types are unique in a context, so the key has their addresses.

#include "passes/codegen/ContentKey.h"

using namespace mlir;
using namespace dlc;

void ContentKey::write(Region &region) {
  for (Block &block : region) {
    append('{');
    for (BlockArgument argument : block.getArguments())
      define(argument, typeOf(argument));
    for (Operation &op : block)
      write(op);
    append('}');
  }
}

void ContentKey::write(Operation &op) {
  append(op.getName().getAsOpaquePointer());
  if (hasAttributes(op))
    append(op.getAttrDictionary().getAsOpaquePointer());
  for (Value operand : op.getOperands())
    append(numbers.at(operand));
  for (Value result : op.getResults())
    define(result, result.getType());
  for (Region &region : op.getRegions())
    write(region);
}

void ContentKey::define(Value value, Type type) {
  numbers.try_emplace(value, numbers.size());
  append(type.getAsOpaquePointer());
}
