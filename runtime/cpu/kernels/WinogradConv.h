// A convolution of images or volumes by Winograd's F(4 x 4, 3 x 3), and its two gradients.
//
// Windows are 3 x 3, or of any depth by 3 x 3; depth is summed over as channels are, so that a
// slice of a volume is transformed once for all windows that it is in. Activations lie in blocks of
// a vector of channels (16 with AVX-512, 8 with AVX2) or channels last, weights in blocks of as
// many by as many, the same for the forward pass, the data gradient and the filter gradient.
// Activations and weights are f32 or, with AVX-512, bf16, widened as they are read: sums and filter
// gradients are f32.
//
// A run transforms the weight, and then strip after strip of the images, each of a size that stays
// in a cache: its tiles of 6 x 6 become, at each of 36 points, a row of a matrix with a column per
// channel, whose product with the weight's matrix of that point is transformed back. Where there
// are strips enough each is one thread's, so that no thread waits for what another has in its
// cache; else the team shares each. Of a weight larger than all that is multiplied with it but a
// bundle of the result's channels is in memory at a time, and where some groups of tiles are all
// that is multiplied, each thread transforms what it needs and keeps it, and its sums, in its own
// cache. The order of all sums is fixed by the request, whatever the team.
#pragma once

#include "runtime/cpu/kernels/OwnKernel.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

class WinogradConv {
public:
  /// The implementation's name in plans for a target whose vectors have so many bits; null if
  /// there is none.
  static const char *nameFor(unsigned vectorBits);
  static bool isName(const std::string &implementation);

  /// Layouts of the operands in a family of activations; nothing unless the request is one that
  /// this code computes and the processor has the instructions.
  static std::optional<std::vector<Layout>>
  layouts(const std::string &implementation, const KernelRequest &request, LayoutFamily family);
  /// Of a request whose layouts are given; null unless they are ones that layouts() gives. FLOPs
  /// are those of a run, its transforms included: about a quarter of the direct sum's.
  static std::unique_ptr<const OwnKernel> of(const std::string &implementation,
                                             const KernelRequest &request);
};

} // namespace dlc::rt
