#include "passes/schedule/ClusterKind.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

Location dlc::withKind(Location location, StringRef kind) {
  if (kindOf(location) == kind)
    return location;
  MLIRContext *context = location.getContext();
  return FusedLoc::get({location}, StringAttr::get(context, kind), context);
}

StringRef dlc::kindOf(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return {};
  if (auto mark = dyn_cast_if_present<StringAttr>(fused.getMetadata()))
    return mark.getValue();
  for (Location part : fused.getLocations())
    if (StringRef kind = kindOf(part); !kind.empty())
      return kind;
  return {};
}
