#include "tools/driver/ModelSource.h"

#include "dialects/Comm/Comm.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "frontend/Frontend.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace dlc;

void dlc::registerDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, comm::CommDialect, exec::ExecDialect>();
}

static OwningOpRef<ModuleOp> load(const std::string &path, MLIRContext &context,
                                  const std::vector<std::string> &sets, llvm::raw_ostream &errors) {
  auto fail = [&](const llvm::Twine &message) {
    errors << "dlc: " << message << "\n";
    return OwningOpRef<ModuleOp>();
  };
  if (!llvm::sys::fs::exists(path))
    return fail("cannot find the model '" + path + "'");
  llvm::StringRef extension = llvm::sys::path::extension(path);
  if (extension == ".dl") {
    fe::Options options;
    options.sets = sets;
    return fe::elaborateFile(path, options, context, errors);
  }
  if (extension != ".mlir")
    return fail("'" + path + "' is no model: expected .dl or .mlir");
  if (!sets.empty())
    return fail("--set changes parameters of a .dl model; '" + path + "' has none");
  return parseSourceFile<ModuleOp>(path, &context);
}

ModelSource dlc::sourceOf(const std::string &path) {
  auto build = [path](MLIRContext &context, const std::vector<std::string> &sets,
                      llvm::raw_ostream &errors) { return load(path, context, sets, errors); };
  return {path, build, llvm::StringRef(path).ends_with(".dl")};
}
