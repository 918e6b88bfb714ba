#include "tools/dlc/Compile.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Writer.h"
#include "tools/dlc/InspectModel.h"
#include "tools/dlc/Progress.h"
#include "tools/driver/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

#include <iostream>

using namespace dlc;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "dlc: " << message << "\n";
  return 1;
}

static int writeText(llvm::StringRef path, llvm::StringRef text) {
  std::error_code error;
  llvm::ToolOutputFile file(path.empty() ? "-" : path, error, llvm::sys::fs::OF_None);
  if (error)
    return fail("cannot write '" + path + "': " + error.message());
  file.os() << text;
  file.os().flush();
  if (file.os().has_error()) {
    file.os().clear_error();
    return fail("cannot write '" + path + "': the disk may be full");
  }
  file.keep();
  return 0;
}

static int writeArtifact(const std::string &path, const rt::Artifact &artifact) {
  std::string reason = rt::ArtifactWriter::writeFile(path, artifact.bytes());
  if (!reason.empty())
    return fail(reason);
  llvm::outs() << closingLine(artifact, path) << "\n";
  return 0;
}

int dlc::compileFile(const std::string &input, const std::string &output,
                     const CompileOptions &options) {
  if (llvm::sys::fs::equivalent(input, output))
    return fail("'" + output + "' is the model; -o would overwrite it");
  std::optional<Compiled> compiled;
  {
    Progress progress(llvm::errs());
    compiled = compile(sourceOf(input), options, llvm::errs(), [&](llvm::StringRef doing) {
      progress.show(("compiling: " + doing).str());
    });
  }
  if (!compiled)
    return 1;
  if (!compiled->artifact)
    return writeText(output, compiled->text);
  return writeArtifact(output.empty() ? compiled->name + ".dlx" : output, *compiled->artifact);
}

int dlc::inspectModel(const std::string &input, const CompileOptions &options, bool json) {
  Compilation compilation(options, llvm::errs());
  if (!compilation.load(sourceOf(input)))
    return 1;
  if (compilation.model().getBody().getOps<nn::ProgramOp>().empty())
    return fail("'" + input + "' has no program of nn ops to inspect");
  nlohmann::ordered_json description = describeModel(compilation.model());
  if (compilation.model().getStage() == "nn" && !compilation.lower(nn::Stage::NN))
    return 1;
  describeTiling(compilation.model(), description);
  if (json)
    std::cout << rt::jsonText(description, 2) << "\n";
  else
    printModel(description, std::cout);
  return 0;
}
