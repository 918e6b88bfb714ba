#include "runtime/core/PlacedKernel.h"

#include "runtime/artifact/Align.h"
#include "runtime/core/TensorIo.h"

namespace dlc::rt {

static constexpr size_t alignment = 4096;

size_t PlacedKernel::bytesOf(const artifact::Kernel &definition) {
  size_t bytes = 0;
  if (!definition.operands())
    return 0;
  for (const artifact::TensorType *type : *definition.operands())
    bytes += alignUp(PhysicalType(*type).bytes(), alignment);
  return bytes;
}

PlacedKernel::PlacedKernel(const artifact::Kernel &definition, DeviceSpan memory) {
  size_t at = 0;
  for (const artifact::TensorType *type : *definition.operands()) {
    places.push_back(memory.subspan(at, PhysicalType(*type).bytes()));
    at += alignUp(places.back().bytes, alignment);
  }
}

ResolvedProgram PlacedKernel::launches(Device::Kernel kernel, int count) const {
  ResolvedProgram::Launch launch{kernel, {}};
  for (DeviceSpan operand : places)
    launch.operands.push_back({operand, operand});
  ResolvedProgram program;
  for (int i = 0; i < count; ++i)
    program.instructions.push_back({artifact::Stream::Compute, launch});
  return program;
}

} // namespace dlc::rt
