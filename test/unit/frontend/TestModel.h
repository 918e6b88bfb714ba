// Elaborates program text and keeps what it printed.
#pragma once

#include "dialects/NN/NN.h"
#include "frontend/Frontend.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <string>

namespace dlc::fe {

struct Elaborated {
  explicit Elaborated(const std::string &text, Options options = {}) {
    llvm::raw_string_ostream os(diagnostics);
    module = elaborateText(text, "test.dl", options, context, os);
  }

  nn::ModelOp model() { return *module->getOps<nn::ModelOp>().begin(); }
  nn::ProgramOp program(llvm::StringRef name) {
    return mlir::dyn_cast_if_present<nn::ProgramOp>(model().lookupSymbol(name));
  }
  nn::VariableOp variable(llvm::StringRef name) {
    return mlir::dyn_cast_if_present<nn::VariableOp>(model().lookupSymbol(name));
  }
  template <typename Op> size_t count(llvm::StringRef name) {
    auto ops = program(name).getBody().getOps<Op>();
    return std::distance(ops.begin(), ops.end());
  }
  template <typename Op> Op first(llvm::StringRef name) {
    return *program(name).getBody().getOps<Op>().begin();
  }

  mlir::MLIRContext context;
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A model around statements that make `y` [2, 1, 8, 8] from `image`; the first statement is on
/// line 4.
inline std::string withBody(const std::string &statements) {
  return "model m(batch = 2, size = 8) {\n"
         "  input image : f32[batch, 1, size, size]\n"
         "  input mask : f32[batch, 1, size, size]\n" +
         statements +
         "\n  output p = sigmoid(y)\n"
         "  loss = mse(y, mask)\n"
         "}\n";
}

/// An error of a text: where it points ("line:column") and what it says.
struct Case {
  const char *text;
  const char *where;
  const char *message;
};

inline void expectError(const std::string &text, const Case &expected,
                        const Options &options = {}) {
  Elaborated result(text, options);
  EXPECT_FALSE(result.module) << text;
  std::string line = std::string(expected.where) + ": error: ";
  EXPECT_TRUE(llvm::StringRef(result.diagnostics).starts_with(line))
      << "expected at " << expected.where << ":\n"
      << result.diagnostics;
  EXPECT_NE(result.diagnostics.find(expected.message), std::string::npos) << result.diagnostics;
}

/// An error of statements of a model, whose `where` lacks the file's name.
inline void expectBodyError(Case expected) {
  std::string where = std::string("test.dl:") + expected.where;
  expected.where = where.c_str();
  expectError(withBody(expected.text), expected);
}

inline void PrintTo(const Case &c, std::ostream *os) { *os << c.text; }

} // namespace dlc::fe
