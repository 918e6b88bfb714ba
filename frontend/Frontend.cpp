// Reads a file and its imports, checks what can be checked before running it, then elaborates the
// programs.
#include "frontend/Frontend.h"

#include "frontend/CheckNames.h"
#include "frontend/Configuration.h"
#include "frontend/syntax/Parser.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace dlc::fe {

namespace {
class Loader {
public:
  Loader(SourceMgr &sources, Diagnostics &diags, const Options &options)
      : sources(sources), diags(diags), options(options) {}

  LogicalResult load(std::unique_ptr<MemoryBuffer> buffer, ModelFile &file);
  LogicalResult parseSettings(std::vector<Setting> &settings);

private:
  LogicalResult parse(unsigned buffer, ModelFile &file, unsigned depth);
  LogicalResult import(const Parser::Import &import, StringRef from, ModelFile &file,
                       unsigned depth);

  SourceMgr &sources;
  Diagnostics &diags;
  const Options &options;
  StringSet<> imported;
};
} // namespace

static LogicalResult checkDefinitions(const ModelFile &file, SMLoc start, Diagnostics &diags) {
  if (!file.model)
    return diags.error(start,
                       "this file has no model: model NAME(parameter = default, ...) { ... }");
  for (const Parameter &parameter : file.model->parameters)
    if (!parameter.defaultValue)
      return diags.error(parameter.loc,
                         "a model's parameter needs a default: " + parameter.name + " = ...");
  if (file.functions.size() > maxFunctions)
    return diags.error(file.functions.back()->loc,
                       "more than " + Twine(maxFunctions) + " functions");
  StringMap<SMLoc> functions;
  for (const auto &function : file.functions) {
    if (lookupCall(function->name, CallKind::Operator))
      diags.remark(function->loc, "this function hides the operator '" + function->name + "'");
    if (!functions.try_emplace(function->name, function->loc).second) {
      (void)diags.error(function->loc, "a second function named '" + function->name + "'");
      diags.note(functions[function->name], "the first one");
      return failure();
    }
    for (const Parameter &parameter : function->parameters)
      if (isCommonArgument(parameter.name))
        return diags.error(parameter.loc,
                           "every call has a '" + parameter.name + "' already: that of its layer");
  }
  return checkNames(file, diags);
}

LogicalResult Loader::load(std::unique_ptr<MemoryBuffer> buffer, ModelFile &file) {
  imported.insert(sys::path::remove_leading_dotslash(buffer->getBufferIdentifier()));
  SMLoc start = SMLoc::getFromPointer(buffer->getBufferStart());
  unsigned id = sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  return failed(parse(id, file, 0)) ? failure() : checkDefinitions(file, start, diags);
}

LogicalResult Loader::parse(unsigned buffer, ModelFile &file, unsigned depth) {
  constexpr size_t maxSize = 1 << 18;
  const MemoryBuffer &text = *sources.getMemoryBuffer(buffer);
  if (text.getBufferSize() > maxSize)
    return diags.error(SMLoc(), text.getBufferIdentifier() + " is larger than 256 KiB");
  std::vector<Parser::Import> imports;
  if (failed(Parser(text.getBuffer(), diags).parseFile(file, imports)))
    return failure();
  for (const Parser::Import &each : imports)
    if (failed(import(each, text.getBufferIdentifier(), file, depth + 1)))
      return failure();
  return success();
}

/// Adds the functions of another file, once however often it is imported.
LogicalResult Loader::import(const Parser::Import &import, StringRef from, ModelFile &file,
                             unsigned depth) {
  constexpr unsigned maxDepth = 32;
  if (depth > maxDepth)
    return diags.error(import.loc, "imports nested deeper than " + Twine(maxDepth) + " files");
  StringRef directory = sys::path::parent_path(from);
  SmallString<128> path(directory);
  sys::path::append(path, import.path);
  sys::path::remove_dots(path, /*remove_dot_dot=*/false);
  if (!imported.insert(path).second)
    return success();
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = std::make_error_code(std::errc::invalid_argument);
  if (sys::fs::is_regular_file(path)) // others may never end
    buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return diags.error(import.loc, "cannot read '" + import.path + "'; looked in " +
                                       (directory.empty() ? "." : directory));
  ModelFile other;
  unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), import.loc);
  if (failed(parse(id, other, depth)))
    return failure();
  if (other.model || !other.data.empty() || !other.chains.empty() || !other.sources.empty() ||
      !other.train.empty() || !other.predict.empty())
    return diags.error(import.loc, "'" + import.path +
                                       "' is a program of its own; an imported file "
                                       "has functions only");
  for (auto &function : other.functions)
    file.functions.push_back(std::move(function));
  return success();
}

LogicalResult Loader::parseSettings(std::vector<Setting> &settings) {
  for (const std::string &text : options.sets) {
    unsigned id =
        sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "--set"), SMLoc());
    StringRef stored = sources.getMemoryBuffer(id)->getBuffer();
    auto [name, value] = stored.split('=');
    if (name.empty() || name.size() == stored.size())
      return diags.error(SMLoc::getFromPointer(stored.data()), "--set expects NAME=VALUE");
    settings.push_back({name, value});
  }
  return success();
}

//===- Programs -------------------------------------------------------------------------------===//

/// @train, @eval and, if the model has outputs, @predict, then the attributes.
static LogicalResult elaboratePrograms(const ModelFile &file, MutableArrayRef<Setting> settings,
                                       Graph &graph, Diagnostics &diags) {
  Elaborator elaborator(file, graph, diags);
  Elaborator::Parameters parameters;
  if (failed(elaborator.resolveParameters(settings, {}, parameters)) ||
      failed(checkSettingsUsed(file, settings, diags)) ||
      failed(elaborator.elaborate(ProgramKind::Train, parameters)))
    return failure();
  std::vector<InputInfo> inputs = elaborator.inputs();
  if (failed(elaborator.elaborate(ProgramKind::Eval, parameters)))
    return failure();
  Configuration configuration(file, elaborator, diags, parameters);
  if (failed(configuration.write(graph.model(), inputs, elaborator.metrics())))
    return failure();
  Elaborator::Parameters overrides, predictParameters;
  if (elaborator.hasOutputs() || !file.predict.empty()) {
    if (failed(configuration.evaluatePredict(overrides)) ||
        failed(elaborator.resolveParameters(settings, overrides, predictParameters)))
      return failure();
    if (failed(elaborator.elaborate(ProgramKind::Predict, predictParameters))) {
      std::string values;
      for (const auto &[name, value] : overrides)
        values += (values.empty() ? ", where " : ", ") + name.str() + " = " + toText(value);
      diags.note(SMLoc(), "this is in the program for prediction" + values);
      return failure();
    }
  }
  return graph.checkAllParametersUsed();
}

static mlir::OwningOpRef<mlir::ModuleOp> elaborate(std::unique_ptr<MemoryBuffer> buffer,
                                                   const Options &options,
                                                   mlir::MLIRContext &context, raw_ostream &os) {
  context.loadDialect<nn::NNDialect>();
  SourceMgr sources;
  Diagnostics diags(sources, os);
  Loader loader(sources, diags, options);
  ModelFile file;
  std::vector<Setting> settings;
  if (failed(loader.load(std::move(buffer), file)) || failed(loader.parseSettings(settings)) ||
      failed(applyBlockSettings(file, settings, diags)))
    return nullptr;
  Graph graph(context, file.model->name);
  mlir::ScopedDiagnosticHandler reporter(&context, [&](mlir::Diagnostic &diagnostic) {
    diags.report(diagnostic);
    return success();
  });
  if (failed(elaboratePrograms(file, settings, graph, diags)))
    return nullptr;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    os << "error: internal: the frontend made an invalid model: " << diagnostic << '\n';
    return success();
  });
  if (failed(mlir::verify(graph.module())))
    return nullptr;
  return graph.take();
}

mlir::OwningOpRef<mlir::ModuleOp> elaborateFile(StringRef path, const Options &options,
                                                mlir::MLIRContext &context,
                                                raw_ostream &diagnostics) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    diagnostics << "error: cannot read '" << path << "': " << buffer.getError().message() << '\n';
    return nullptr;
  }
  return elaborate(std::move(*buffer), options, context, diagnostics);
}

mlir::OwningOpRef<mlir::ModuleOp> elaborateText(StringRef text, StringRef name,
                                                const Options &options, mlir::MLIRContext &context,
                                                raw_ostream &diagnostics) {
  return elaborate(MemoryBuffer::getMemBufferCopy(text, name), options, context, diagnostics);
}

} // namespace dlc::fe
