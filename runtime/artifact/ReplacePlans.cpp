#include "runtime/artifact/ReplacePlans.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"

namespace dlc::rt {

std::vector<uint8_t> replacePlans(const Artifact &artifact, std::span<const NewPlan> plans,
                                  const std::string &library) {
  std::unique_ptr<artifact::ArtifactT> root(artifact->UnPack());
  root->target->library = library;
  for (const NewPlan &plan : plans) {
    artifact::KernelT &kernel = *root->kernels[plan.kernel];
    if (kernel.kind != artifact::KernelKind::Library)
      throw Error(ErrorCode::Artifact, "kernel " + kernel.name + " is generated and has no plan");
    kernel.implementation = plan.implementation;
    kernel.plan = plan.plan;
    kernel.nanoseconds = plan.nanoseconds;
  }
  ArtifactWriter writer;
  writer.addData(artifact.data()); // as it is, so that spans stay
  return writer.finish(artifact::Artifact::Pack(writer.builder(), root.get()));
}

} // namespace dlc::rt
