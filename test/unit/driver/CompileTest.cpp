// The compiler called as a library.

#include "tools/driver/Compile.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dlc;

namespace {
/// y = relu(x), `rows` at a time, built as an importer would.
ModelSource reluModel(const std::string &op = "nn.relu") {
  auto build = [op](mlir::MLIRContext &context, const std::vector<std::string> &sets,
                    llvm::raw_ostream &errors) -> mlir::OwningOpRef<mlir::ModuleOp> {
    std::string rows = "4";
    for (const std::string &set : sets)
      if (set.starts_with("batch="))
        rows = set.substr(6);
      else {
        errors << "dlc: no parameter in " << set << "\n";
        return {};
      }
    std::string type = "tensor<" + rows + "x1024xf32>";
    return mlir::parseSourceString<mlir::ModuleOp>(
        "nn.model @relu attributes {stage = \"nn\", batch = " + rows + " : i64} {\n" +
            "nn.program @predict(%x: " + type + " {nn.input = \"x\"}) {\n%y = " + op + " %x : (" +
            type + ") -> " + type + "\nnn.output \"y\", %y : " + type + "\n}\n}",
        &context);
  };
  return {"relu", build, /*hasParameters=*/true};
}

struct Outcome {
  std::optional<Compiled> compiled;
  std::string errors, progress;
};

Outcome compileTo(Output output, const ModelSource &source,
                  const std::function<void(CompileOptions &)> &change = {}) {
  CompileOptions options;
  options.output = output;
  options.threads = 1;
  if (change)
    change(options);
  Outcome outcome;
  llvm::raw_string_ostream errors(outcome.errors);
  outcome.compiled = compile(source, options, errors, [&](llvm::StringRef doing) {
    outcome.progress += doing.str() + "\n";
  });
  return outcome;
}

TEST(Compile, GivesAVerifiedArtifact) {
  Outcome outcome = compileTo(Output::Artifact, reluModel());
  ASSERT_TRUE(outcome.compiled && outcome.compiled->artifact) << outcome.errors;
  const rt::Artifact &artifact = *outcome.compiled->artifact;
  EXPECT_NE(artifact.program("predict"), nullptr);
  EXPECT_EQ(outcome.compiled->name, "relu");
  EXPECT_EQ(outcome.errors, "");
  EXPECT_NE(outcome.progress.find("exec: dlc-plan-memory"), std::string::npos) << outcome.progress;
  EXPECT_TRUE(outcome.progress.ends_with("code\n")) << outcome.progress;
  // The same again is the same bytes.
  Outcome again = compileTo(Output::Artifact, reluModel());
  ASSERT_TRUE(again.compiled && again.compiled->artifact);
  EXPECT_TRUE(std::ranges::equal(artifact.bytes(), again.compiled->artifact->bytes()));
}

TEST(Compile, GivesTextOfEachStageAndOfCode) {
  for (auto [output, expected] :
       {std::pair(Output::NN, "stage = \"nn\""), std::pair(Output::Train, "stage = \"train\""),
        std::pair(Output::Schedule, "stage = \"schedule\""),
        std::pair(Output::Exec, "stage = \"exec\""), std::pair(Output::Linalg, "linalg.generic"),
        std::pair(Output::Llvm, "define ")}) {
    Outcome outcome = compileTo(output, reluModel());
    ASSERT_TRUE(outcome.compiled) << outcome.errors;
    EXPECT_NE(outcome.compiled->text.find(expected), std::string::npos) << expected;
    EXPECT_FALSE(outcome.compiled->artifact);
  }
}

TEST(Compile, SaysInOneLineWhatIsWrong) {
  Outcome unknown = compileTo(Output::Artifact, reluModel("nn.unknown"));
  EXPECT_FALSE(unknown.compiled);
  EXPECT_EQ(std::ranges::count(unknown.errors, '\n'), 1) << unknown.errors;
  Outcome parameter = compileTo(Output::Artifact, reluModel(),
                                [](CompileOptions &options) { options.sets = {"depth=3"}; });
  EXPECT_FALSE(parameter.compiled);
  EXPECT_EQ(parameter.errors, "dlc: no parameter in depth=3\n");
  Outcome missing = compileTo(Output::Artifact, sourceOf("/nonexistent/model.dl"));
  EXPECT_FALSE(missing.compiled);
  EXPECT_EQ(missing.errors, "dlc: cannot find the model '/nonexistent/model.dl'\n");
}

TEST(Compile, FindsTheBatchThatFits) {
  auto limit = [](CompileOptions &options) { options.memoryLimit = 64 * 1024; };
  Outcome large = compileTo(Output::Artifact, reluModel(), [&](CompileOptions &options) {
    options.sets = {"batch=64"};
    limit(options);
  });
  EXPECT_FALSE(large.compiled);
  Outcome fits = compileTo(Output::Artifact, reluModel(), [&](CompileOptions &options) {
    options.sets = {"batch=max"};
    limit(options);
  });
  ASSERT_TRUE(fits.compiled && fits.compiled->artifact) << fits.errors;
  uint32_t batch = fits.compiled->artifact->program("predict")->batch();
  EXPECT_NE(large.errors.find("the largest batch that fits is " + std::to_string(batch) + " "),
            std::string::npos)
      << large.errors << fits.errors;
}
} // namespace
