// Files of dlc-reference: f64 tensors out, arrays and weights in. Functions throw rt::Error.
#pragma once

#include "test/reference/Tensor.h"

namespace dlc::reference {

/// Weights of any float type, as f64.
Tensors readWeights(const std::string &path);
/// Rows [first, first + rows) of an array file.
Tensor readRows(const std::string &path, int64_t first, int64_t rows);
/// A safetensors file of F64.
void writeTensors(const std::string &path, const Tensors &tensors);

} // namespace dlc::reference
