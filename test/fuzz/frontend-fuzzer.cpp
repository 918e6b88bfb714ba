// libFuzzer target: any text either elaborates to a valid model or is refused with a message; never
// a crash.
//
// The text may end in lines "--set NAME=VALUE", which become settings. Imports find nothing.
#include "frontend/Frontend.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  dlc::fe::Options options;
  for (size_t at = text.rfind("\n--set "); at != llvm::StringRef::npos;
       at = text.rfind("\n--set ")) {
    options.sets.push_back(text.drop_front(at + 7).str());
    text = text.take_front(at);
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  llvm::raw_string_ostream os(diagnostics);
  auto module = dlc::fe::elaborateText(text, "fuzz.dl", options, context, os);
  bool refused = !module && !diagnostics.empty();
  bool internal = llvm::StringRef(diagnostics).starts_with("error: internal");
  if ((!module && !refused) || internal) {
    llvm::errs() << diagnostics;
    std::abort();
  }
  return 0;
}
