// The part of cuDNN's graph API that dlc uses, declared here, so that nothing of CUDA is needed to
// build.
//
// The numbers are the interface's, which version 9 keeps; a test compares them with NVIDIA's
// headers. The library is opened on demand: what plans and what runs are tables of its functions.
#pragma once

#include "runtime/cuda/libraries/Cudart.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dlc::rt::cudnn {

using Status = int;
constexpr Status success = 0;

using Handle = void *;                 // a descriptor of the graph API
using Context = struct ContextState *; // what executes on a device
/// Of a tensor's memory, or a workspace's.
enum class DataPointer : uintptr_t {};

enum class DataType : int { Float = 0, Half = 2, BFloat16 = 9 };

/// Of a pointwise node.
enum class PointwiseMode : int { Add = 0, ReluForward = 100 };

enum class ConvolutionMode : int { CrossCorrelation = 1 };

enum class HeuristicMode : int { B = 1, Fallback = 2, A = 3 };

/// How the results of an engine come about.
enum class NumericalNote : int {
  TensorCore = 0,
  DownConvertInputs = 1,
  ReducedPrecisionReduction = 2,
  Fft = 3,
  Nondeterministic = 4,
  Winograd = 5,
  WinogradTile4x4 = 6,
  WinogradTile6x6 = 7,
  WinogradTile13x13 = 8,
};

enum class BehaviorNote : int { RuntimeCompilation = 0 };

enum class DescriptorType : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineConfig = 3,
  EngineHeuristics = 4,
  ExecutionPlan = 5,
  ConvolutionForward = 10,
  ConvolutionBackwardFilter = 11,
  ConvolutionBackwardData = 12,
  PointwiseOperation = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
  DeviceProperties = 38,
};

enum class AttributeType : int {
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  Float = 4,
  DataPointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  NumericalNote = 11,
  PointwiseMode = 14,
  Descriptor = 15,
  BehaviorNote = 19,
  Int32 = 23,
  Char = 24,
};

enum class Attribute : int {
  PointwiseMode = 0,
  PointwiseMathPrecision = 1,

  ConvolutionComputeType = 100,
  ConvolutionMode = 101,
  ConvolutionDilations = 102,
  ConvolutionFilterStrides = 103,
  ConvolutionPostPaddings = 104,
  ConvolutionPrePaddings = 105,
  ConvolutionSpatialDims = 106,

  HeuristicsMode = 200,
  HeuristicsOperationGraph = 201,
  HeuristicsResults = 202,
  HeuristicsDeviceProperties = 204,

  ConfigEngine = 300,

  PlanEngineConfig = 401,
  PlanWorkspaceSize = 402,
  PlanJson = 405,
  PlanDeviceProperties = 407,

  ForwardAlpha = 700,
  ForwardBeta = 701,
  ForwardConvolution = 702,
  ForwardW = 703,
  ForwardX = 704,
  ForwardY = 705,
  BackwardDataAlpha = 706,
  BackwardDataBeta = 707,
  BackwardDataConvolution = 708,
  BackwardDataW = 709,
  BackwardDataDx = 710,
  BackwardDataDy = 711,
  BackwardFilterAlpha = 712,
  BackwardFilterBeta = 713,
  BackwardFilterConvolution = 714,
  BackwardFilterDw = 715,
  BackwardFilterX = 716,
  BackwardFilterDy = 717,

  PointwiseDescriptor = 750,
  PointwiseX = 751,
  PointwiseB = 752,
  PointwiseY = 753,

  GraphOperations = 801,

  TensorByteAlignment = 900,
  TensorDataType = 901,
  TensorDimensions = 902,
  TensorStrides = 903,
  TensorUniqueId = 906,
  TensorIsVirtual = 907,

  PackUniqueIds = 1000,
  PackDataPointers = 1001,
  PackWorkspace = 1003,

  EngineOperationGraph = 1300,
  EngineGlobalIndex = 1301,
  EngineNumericalNotes = 1303,
  EngineBehaviorNotes = 1305,
  EngineDeviceProperties = 1307,

  DevicePropertiesId = 2700,
  DevicePropertiesJson = 2702,
};

/// The functions that planning and executing take, under cuDNN's names without their prefix.
struct Functions {
  size_t (*getVersion)();
  const char *(*getErrorString)(Status status);
  Status (*backendCreateDescriptor)(DescriptorType type, Handle *descriptor);
  Status (*backendDestroyDescriptor)(Handle descriptor);
  Status (*backendFinalize)(Handle descriptor);
  Status (*backendSetAttribute)(Handle descriptor, Attribute name, AttributeType type,
                                int64_t count, const void *elements);
  Status (*backendGetAttribute)(Handle descriptor, Attribute name, AttributeType type, int64_t room,
                                int64_t *count, void *elements);
  Status (*create)(Context *context);
  Status (*destroy)(Context context);
  Status (*setStream)(Context context, cudart::Stream stream);
  Status (*backendExecute)(Context context, Handle plan, Handle variantPack);

  /// Throws Error(Runtime) if a call failed.
  void require(Status status, const std::string &doing) const;
};

/// cuDNN 9 of this machine, found by the loader's path or under $CUDA_HOME or /usr/local/cuda; null
/// with `reason` set if there is none. It stays open.
const Functions *open(std::string &reason);

/// As "9.19.0".
std::string versionText(size_t version);
/// As "cuDNN 9.19.0".
std::string nameOf(const Functions &library);

/// Of a device's name, its end included, which the library copies whatever its length.
constexpr size_t nameCharacters = 256;

} // namespace dlc::rt::cudnn
