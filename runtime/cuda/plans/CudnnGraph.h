// A convolution as cuDNN's operation graph, the engines that compute it, and the plans of them.
//
// Nothing here needs a GPU: the device is what a target's description says. A plan's JSON is what
// an artifact stores; it holds the graph, the engine with its knobs and the description.
#pragma once

#include "runtime/core/KernelPlanner.h"
#include "runtime/cuda/libraries/Descriptor.h"

#include <optional>
#include <string>
#include <vector>

namespace dlc::rt::cudnn {

/// A tensor as cuDNN has it: extents in logical order, padded ones where the layout pads, and the
/// elements between neighbours along each.
struct TensorShape {
  std::vector<int64_t> extents, strides;

  /// Nothing if the layout is no permutation with perhaps padded, innermost channels: nhwc, nhwC8c.
  static std::optional<TensorShape> of(const OperandType &operand);
  /// The shape that a bias has beside tensors of this rank.
  static TensorShape ofBias(int64_t channels, size_t rank);
};

/// What the library says of an engine and its results.
struct Engine {
  int64_t index = 0;
  std::vector<NumericalNote> numerical;
  std::vector<BehaviorNote> behavior;

  bool has(NumericalNote note) const;
  bool has(BehaviorNote note) const;
  /// True if it may compute a kernel of this math: it is there already, gives the same bits each
  /// time and, in strict math, multiplies all of both factors, directly.
  bool isAdmissible(DType dtype, Math math) const;
  /// True if it adds the products of the definition, not those of transformed tiles.
  bool isDirect() const;
  /// As "cudnn:38"; its knobs are in a plan's text.
  std::string name() const;
};

struct Plan {
  Engine engine;
  uint64_t workspaceBytes = 0;
  std::string json;
};

class Graph {
public:
  /// The graph of a convolution whose operands all have layouts; nothing with `reason` set if
  /// cuDNN has none for it. Operand i of the request is the tensor with the id i + 1.
  static std::optional<Graph> of(const Functions &library, const KernelRequest &request,
                                 std::string &reason);
  /// The graph that a stored plan's text holds. Throws Error(Artifact) if it is damaged or holds
  /// other operations than those, Error(Runtime) if this library refuses it.
  static Graph stored(const Functions &library, const std::string &json);

  /// What is wanted of plans.
  struct Limits {
    size_t most = 1; // of plans
    uint64_t workspaceBytes =
        0; // at most, unless no plan does with it: then the one with the least
    Math math = Math::Fast;
    bool all = false;          // of what the library suggests, not its better heuristics' alone
    bool clustersLast = false; // of all of that, what runs in clusters of blocks
  };
  /// Plans for a device by admissible engines, best first by the library's heuristics; nothing with
  /// `reason` set if there are none.
  std::vector<Plan> plans(const std::string &properties, const Limits &limits,
                          std::string &reason) const;
  /// One of its engines for a device. Throws Error(Runtime) if the library has none of this number,
  /// Error(Artifact) if it is not admissible in this math.
  Engine engine(int64_t index, const Descriptor &device, Math math) const;

private:
  explicit Graph(const Functions &library) : library(&library) {}

  void finish(std::span<const Handle> nodes, std::string &reason);

  /// Engines with their knobs, best first; none with `reason` set if the library has none.
  std::vector<Descriptor> configurations(const Descriptor &device, HeuristicMode mode,
                                         std::string &reason) const;

  const Functions *library;
  std::vector<Descriptor> parts; // what the graph refers to
  std::optional<Descriptor> graph;
  bool isSingleNode = true;
  DType factors = DType::F32;
};

/// A description of a device as a descriptor.
Descriptor deviceProperties(const Functions &library, const std::string &json);
/// The description of a device of this machine, by CUDA's number of it.
std::string propertiesOf(const Functions &library, int device);

/// A stored plan for a device of other `properties`: the same graph, engine and knobs. Throws
/// Error(Artifact) if the text is not a plan's, or the device of another compute capability.
std::string withProperties(const std::string &json, const std::string &properties);

/// The plan that was stored as `json`, for a device of `properties`, as it loads on a machine.
/// Throws Error(Runtime) if the library refuses it.
Plan reload(const Functions &library, const std::string &properties, const std::string &json);
/// The plan of another version of the library, planned again by this one for a device of
/// `properties`, within a workspace: by the same engine with the same knobs, or, where those are
/// not offered, the best one, and then `isSame` is false. Throws Error if there is none.
Plan replan(const Functions &library, const std::string &properties, const std::string &json,
            uint64_t workspaceBytes, Math math, bool &isSame);
/// True if a stored plan computes the last of these tensors of the others, as they lie in memory.
bool isOf(const std::string &json, std::span<const OperandType> operands);
/// What a stored plan computes of operands that it is of. Throws Error(Artifact) if the text is not
/// a plan's.
KernelRequest requestOf(const std::string &json, std::vector<OperandType> operands);
/// Its engine, as this library describes it. Throws Error(Artifact) if the text is not a plan's or
/// the engine not admissible in this math, Error(Runtime) if this library has none of its number.
Engine engineOf(const Functions &library, const std::string &json, Math math);
/// True if a stored plan is of this version of the library.
bool isOwn(const Functions &library, const std::string &json);
/// The same as reload, as a descriptor that can be executed.
Descriptor load(const Functions &library, const Descriptor &properties, const std::string &json);

} // namespace dlc::rt::cudnn
