// Threads may not change one module's list of functions at once, so each function moves out.

#include "passes/codegen/SideBySide.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace dlc;

void dlc::changeSideBySide(ArrayRef<func::FuncOp> functions,
                           llvm::function_ref<func::FuncOp(size_t)> change) {
  if (functions.empty())
    return;
  MLIRContext *context = functions.front()->getContext();
  std::vector<Operation *> places; // an empty module stands where a function was
  std::vector<OwningOpRef<ModuleOp>> homes;
  for (func::FuncOp function : functions) {
    OpBuilder builder(function);
    places.push_back(ModuleOp::create(builder, function.getLoc()));
    homes.emplace_back(ModuleOp::create(function.getLoc()));
    function->moveBefore(homes.back()->getBody(), homes.back()->getBody()->end());
  }
  std::vector<func::FuncOp> changed(functions.size());
  parallelFor(context, 0, functions.size(), [&](size_t i) { changed[i] = change(i); });
  for (auto [place, function] : llvm::zip(places, changed)) {
    function->moveBefore(place);
    place->erase();
  }
}
