#include "frontend/syntax/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dlc::fe {

LogicalResult Diagnostics::error(SMLoc loc, const Twine &message) {
  ++errors;
  print(loc, SourceMgr::DK_Error, message);
  return failure();
}

void Diagnostics::note(SMLoc loc, const Twine &message) { print(loc, SourceMgr::DK_Note, message); }

void Diagnostics::remark(SMLoc loc, const Twine &message) {
  print(loc, SourceMgr::DK_Remark, message);
}

void Diagnostics::report(mlir::Diagnostic &diagnostic) {
  (void)error(find(diagnostic.getLocation()), diagnostic.str());
  for (mlir::Diagnostic &attached : diagnostic.getNotes())
    note(find(attached.getLocation()), attached.str());
}

mlir::Location Diagnostics::locationOf(mlir::MLIRContext &context, SMLoc loc) const {
  unsigned buffer = loc.isValid() ? sources.FindBufferContainingLoc(loc) : 0;
  if (buffer == 0)
    return mlir::UnknownLoc::get(&context);
  auto [line, column] = sources.getLineAndColumn(loc, buffer);
  StringRef name = sources.getMemoryBuffer(buffer)->getBufferIdentifier();
  return mlir::FileLineColLoc::get(&context, name, line, column);
}

SMLoc Diagnostics::find(mlir::Location location) const {
  if (auto place = dyn_cast<mlir::FileLineColLoc>(location))
    for (unsigned buffer = 1; buffer <= sources.getNumBuffers(); ++buffer)
      if (sources.getMemoryBuffer(buffer)->getBufferIdentifier() == place.getFilename().getValue())
        return sources.FindLocForLineAndColumn(buffer, place.getLine(), place.getColumn());
  return SMLoc();
}

void Diagnostics::print(SMLoc loc, SourceMgr::DiagKind kind, const Twine &message) {
  if (loc.isValid()) {
    sources.PrintMessage(os, loc, kind, message, {}, {}, /*ShowColors=*/false);
    return;
  }
  os << (kind == SourceMgr::DK_Error ? "error: " : "note: ") << message << '\n';
}

std::string didYouMean(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef best;
  // A third of the letters may be wrong; more is another word. Of two as near, the longer word of
  // which the name is the beginning.
  unsigned limit = name.size() / 3 + 1;
  for (StringRef candidate : candidates) {
    unsigned distance =
        name.edit_distance_insensitive(candidate, /*AllowReplacements=*/true, limit);
    bool beginning = candidate.starts_with_insensitive(name) && !best.starts_with_insensitive(name);
    bool first = best.empty() && distance < name.size();
    if (distance < limit || (distance == limit && (first || beginning))) {
      best = candidate;
      limit = distance;
    }
  }
  return best.empty() ? "" : ("; did you mean '" + best + "'?").str();
}

std::string listNames(ArrayRef<StringRef> names) {
  constexpr size_t shown = 12;
  std::string text;
  for (StringRef name : names.take_front(shown))
    text += (Twine(text.empty() ? "" : ", ") + "'" + name + "'").str();
  if (names.size() > shown)
    text += (Twine(" and ") + Twine(names.size() - shown) + " more").str();
  return text.empty() ? "none" : text;
}

} // namespace dlc::fe
