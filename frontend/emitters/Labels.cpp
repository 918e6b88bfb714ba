#include "frontend/emitters/Labels.h"
#include "dialects/NN/InputRange.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

FailureOr<Labels> labelsOf(const Emission &call, StringRef argument, int64_t classes) {
  Graph &graph = call.graph;
  mlir::Value labels = call[argument].asTensor();
  auto last = static_cast<double>(classes - 1);
  if (call["ignore"].isAbsent()) {
    nn::expectRange(labels, 0, last);
    return Labels{labels, {}, {}};
  }
  constexpr int64_t most = 1 << 24; // samples are f32 when they are checked
  FailureOr<int64_t> ignore = call.integer("ignore", -most, most);
  if (failed(ignore))
    return failure();
  auto ignored = static_cast<double>(*ignore);
  bool isClass = ignored >= 0 && ignored <= last;
  nn::expectRange(labels, 0, last, isClass ? ArrayRef<double>() : ArrayRef(ignored));
  mlir::RankedTensorType type = nn::tensorType(labels);
  mlir::Value counted = graph.compare(nn::Comparison::NE, labels, graph.constant(type, ignored));
  if (!isClass)
    labels =
        nn::SelectOp::create(graph.builder, call.loc(), counted, labels, graph.constant(type, 0));
  return Labels{labels, counted, ignore};
}

} // namespace dlc::fe
