// The comm dialect: collectives on tensors.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Comm/CommDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Comm/CommTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Comm/CommOps.h.inc"
