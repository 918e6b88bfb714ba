// A convolution of images or volumes by Winograd's F(4 x 4, 3 x 3), and its two gradients.
//
// Windows are 3 x 3, or of any depth by 3 x 3; depth is summed over as channels are, so that a
// slice of a volume is transformed once for all windows that it is in. Activations lie in blocks of
// 16 channels or channels last, weights in blocks of 16 x 16, the same for the forward pass, the
// data gradient and the filter gradient. Activations and weights are f32 or bf16, widened as they
// are read: sums and filter gradients are f32.
//
// A run transforms the weight, and then strip after strip of the images, each of a size that stays
// in a cache: its tiles of 6 x 6 become, at each of 36 points, a row of a matrix with a column per
// channel, whose product with the weight's matrix of that point is transformed back. Where there
// are strips enough each is one thread's, so that no thread waits for what another has in its
// cache; else the team shares each. Of a weight larger than all that is multiplied with it but a
// bundle of the result's channels is in memory at a time. The order of all sums is fixed by the
// request, whatever the team.
#pragma once

#include "runtime/core/KernelPlanner.h"
#include "runtime/cpu/kernels/RegisterProduct.h"

#include <optional>
#include <span>
#include <vector>

namespace dlc::rt {

class WinogradConv {
public:
  /// The implementation's name in plans.
  static constexpr const char *name = "winograd:avx512";

  /// Layouts of the operands in a family of activations; nothing unless the request is one that
  /// this code computes and the processor has the instructions.
  static std::optional<std::vector<Layout>> layouts(const KernelRequest &request,
                                                    LayoutFamily family);
  /// Of a request whose layouts are given; nothing unless they are ones that layouts() gives.
  static std::optional<WinogradConv> of(const KernelRequest &request);

  uint64_t workspaceBytes() const;
  /// FLOPs of a run, its transforms included: about a quarter of the direct sum's.
  uint64_t flops() const;
  /// Buffers in the order of the request's operands, last the workspace. On the calling thread's
  /// team.
  void run(std::span<void *const> buffers) const;

private:
  /// Images or gradients of images: extents, and steps between neighbours in elements.
  struct Images {
    DType dtype = DType::F32;
    int64_t volumes = 0, depth = 0, rows = 0, columns = 0, blocks = 0;
    int64_t volumeStep = 0, depthStep = 0, rowStep = 0, columnStep = 0, blockStep = 0;
    int64_t channels() const { return blocks * vectorLanes; }
    static Images of(const OperandType &operand);
  };
  /// Some of the result's channels, whose sums are in registers together.
  struct Panel {
    int64_t firstBlock, vectors;
  };
  /// Panels whose weights are in memory together.
  struct Bundle {
    int64_t firstPanel, panels, firstBlock, blocks;
  };
  /// Tiles at the same places of some slices.
  struct Strip {
    int64_t volume, firstTile, tiles, firstSlice, slices;
    int64_t firstStep; // of all strips'
  };
  /// Slices of a strip that are computed at one time.
  struct Step {
    int64_t firstSlice, slices;
    int64_t firstNewSlice, newSlices; // of the source; those ahead are there from the step before
    int64_t number;                   // of all strips'
  };
  using Parts = std::vector<ProductPart>;
  /// Parts of the workspace: the weight's or the sums', and those of a strip.
  struct Matrices {
    float *weight = nullptr, *source = nullptr, *result = nullptr;
  };
  struct Operands {
    const void *source = nullptr, *weight = nullptr;
    const float *bias = nullptr;
    void *result = nullptr; // of a filter gradient what `gradient` is computed of
    float *gradient = nullptr;
  };

  void plan(int64_t threads);
  bool planOwnStrips(int64_t threads);
  void planSharedStrips();
  void cutStrips(int64_t stripsOfSlice, int64_t stripSlices);
  void planBundles(int64_t threads);
  Parts partsOfSlice(int64_t slice) const;
  Parts partsOfPlane(const Strip &strip, const Step &step, int64_t plane) const;
  void planParts();
  bool isOfFilter() const { return op == KernelOp::ConvGradFilter; }
  int64_t tilesOfSlice() const { return tileRows * tileColumns; }
  int64_t groupsOf(const Strip &strip) const;
  int64_t sliceElements(const Images &images) const;
  int64_t planeElements() const;
  int64_t stripElements() const;
  int64_t slots() const { return stepSlices + windowDepth - 1; }
  int64_t slotOf(int64_t slice) const { return slice % slots(); }
  Matrices matricesOf(float *workspace, int64_t share, int64_t place) const;
  template <typename Body> void forSteps(const Strip &strip, Body &&body) const;

  template <typename Transform, typename Element>
  void transformTiles(const Images &images, const Element *from, const Strip &strip, int64_t slice,
                      int64_t begin, int64_t end, float *to) const;
  void transformSlice(const Strip &strip, const Step &step, int64_t i, int64_t begin, int64_t end,
                      const Operands &operands, const Matrices &matrices) const;
  void transformWeight(const Bundle &bundle, int64_t task, const void *weight, float *to) const;
  void transformWeights(const Bundle &bundle, const Operands &operands, float *to) const;
  template <typename Element>
  void writeGroup(const Strip &strip, const Panel &panel, int64_t slice, int64_t group,
                  const float *products, const float *bias, Element *to) const;
  void multiplyGroup(const Strip &strip, const Bundle &bundle, const Panel &panel, int64_t slice,
                     int64_t group, const Operands &operands, const Matrices &matrices) const;
  void addGradient(const Bundle &bundle, int64_t task, const Step &step, bool isFirst,
                   const Matrices &matrices) const;
  void writeGradients(const Bundle &bundle, const float *sums, float *to) const;
  void writeGradient(const Bundle &bundle, int64_t task, const float *sums, float *to) const;

  void convolveOwnStrips(const Operands &operands, float *workspace) const;
  void differentiateOwnStrips(const Operands &operands, float *workspace) const;
  void shareStrips(const Operands &operands, float *workspace) const;

  KernelOp op = KernelOp::Conv;
  bool hasBias = false, hasRelu = false, isWeightNarrow = false;
  Images source, result; // dy and dx of a data gradient, x and dy of a filter gradient
  int64_t windowDepth = 1;
  int64_t paddingDepth = 0, paddingRow = 0, paddingColumn = 0;
  int64_t stacked = 1; // images whose rows of tiles follow each other as those of one
  int64_t imageTileRows = 0, tileRows = 0, tileColumns = 0; // tileRows: of the stack
  int64_t places = 0; // strips that are computed at one time, each by a thread; 0: the team shares
  int64_t shares = 1; // of a filter gradient's strips, each with sums of its own
  int64_t stripTiles = 0, stepSlices = 1; // most of a strip and of a step
  std::vector<Panel> panels;
  std::vector<Bundle> bundles; // one, unless there is one strip
  int64_t bundleBlocks = 0;    // most of a bundle
  std::vector<Strip> strips;
  /// What is summed over: by slice of the result, or for a filter gradient by step and plane.
  std::vector<Parts> parts;
};

} // namespace dlc::rt
