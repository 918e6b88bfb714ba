// What runtime/cuda declares of NVIDIA's libraries against their own headers, where these are.

#include "runtime/cuda/libraries/CublasLt.h"
#include "runtime/cuda/libraries/Cudart.h"
#include "runtime/cuda/libraries/Cudnn.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

#include <cstdlib>

#ifdef DLC_CUDNN_HEADERS
#include <cudnn_version.h>
#if CUDNN_VERSION < 90800 || !__has_include(<cublasLt.h>) // the first refused by runtime/cuda, too
#undef DLC_CUDNN_HEADERS
#endif
#endif

#ifdef DLC_CUDNN_HEADERS
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <cstddef>

using namespace dlc::rt::cudnn;
using dlc::test::isSameCall;

namespace dlc::test {
template <> struct Passed<dim3> {
  using Type = dlc::rt::cudart::Extent3;
};
} // namespace dlc::test

namespace {

static_assert(isSameCall<decltype(Functions::getVersion), decltype(cudnnGetVersion)>);
static_assert(isSameCall<decltype(Functions::getErrorString), decltype(cudnnGetErrorString)>);
static_assert(isSameCall<decltype(Functions::backendCreateDescriptor),
                         decltype(cudnnBackendCreateDescriptor)>);
static_assert(isSameCall<decltype(Functions::backendDestroyDescriptor),
                         decltype(cudnnBackendDestroyDescriptor)>);
static_assert(isSameCall<decltype(Functions::backendFinalize), decltype(cudnnBackendFinalize)>);
static_assert(
    isSameCall<decltype(Functions::backendSetAttribute), decltype(cudnnBackendSetAttribute)>);
static_assert(
    isSameCall<decltype(Functions::backendGetAttribute), decltype(cudnnBackendGetAttribute)>);
static_assert(isSameCall<decltype(Functions::create), decltype(cudnnCreate)>);
static_assert(isSameCall<decltype(Functions::destroy), decltype(cudnnDestroy)>);
static_assert(isSameCall<decltype(Functions::setStream), decltype(cudnnSetStream)>);
static_assert(isSameCall<decltype(Functions::backendExecute), decltype(cudnnBackendExecute)>);
static_assert(success == CUDNN_STATUS_SUCCESS);

SAME(DataType::Float, CUDNN_DATA_FLOAT);
SAME(DataType::Half, CUDNN_DATA_HALF);
SAME(DataType::BFloat16, CUDNN_DATA_BFLOAT16);
SAME(PointwiseMode::Add, CUDNN_POINTWISE_ADD);
SAME(PointwiseMode::ReluForward, CUDNN_POINTWISE_RELU_FWD);
SAME(ConvolutionMode::CrossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(HeuristicMode::B, CUDNN_HEUR_MODE_B);
SAME(HeuristicMode::A, CUDNN_HEUR_MODE_A);
SAME(HeuristicMode::Fallback, CUDNN_HEUR_MODE_FALLBACK);

SAME(NumericalNote::TensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(NumericalNote::DownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(NumericalNote::ReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(NumericalNote::Fft, CUDNN_NUMERICAL_NOTE_FFT);
SAME(NumericalNote::Nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(NumericalNote::Winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(NumericalNote::WinogradTile4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
SAME(NumericalNote::WinogradTile6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
SAME(NumericalNote::WinogradTile13x13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
SAME(BehaviorNote::RuntimeCompilation, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);

SAME(DescriptorType::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(DescriptorType::Convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(DescriptorType::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DescriptorType::EngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DescriptorType::EngineHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DescriptorType::ExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DescriptorType::ConvolutionForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(DescriptorType::ConvolutionBackwardFilter,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(DescriptorType::ConvolutionBackwardData,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(DescriptorType::PointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(DescriptorType::OperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DescriptorType::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DescriptorType::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DescriptorType::DeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

SAME(AttributeType::DataType, CUDNN_TYPE_DATA_TYPE);
SAME(AttributeType::Boolean, CUDNN_TYPE_BOOLEAN);
SAME(AttributeType::Int64, CUDNN_TYPE_INT64);
SAME(AttributeType::Float, CUDNN_TYPE_FLOAT);
SAME(AttributeType::ConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(AttributeType::HeuristicMode, CUDNN_TYPE_HEUR_MODE);
SAME(AttributeType::NumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(AttributeType::PointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
SAME(AttributeType::Descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(AttributeType::BehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE);
SAME(AttributeType::DataPointer, CUDNN_TYPE_VOID_PTR);
SAME(AttributeType::Int32, CUDNN_TYPE_INT32);
SAME(AttributeType::Char, CUDNN_TYPE_CHAR);

SAME(Attribute::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
SAME(Attribute::PointwiseMathPrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(Attribute::ConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(Attribute::ConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(Attribute::ConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(Attribute::ConvolutionFilterStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(Attribute::ConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(Attribute::ConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(Attribute::ConvolutionSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(Attribute::HeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(Attribute::HeuristicsOperationGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(Attribute::HeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(Attribute::HeuristicsDeviceProperties, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(Attribute::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(Attribute::PlanEngineConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(Attribute::PlanWorkspaceSize, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(Attribute::PlanJson, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
SAME(Attribute::PlanDeviceProperties, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(Attribute::ForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(Attribute::ForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(Attribute::ForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(Attribute::ForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(Attribute::ForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(Attribute::ForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(Attribute::BackwardDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(Attribute::BackwardDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(Attribute::BackwardDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(Attribute::BackwardDataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(Attribute::BackwardDataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(Attribute::BackwardDataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(Attribute::BackwardFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(Attribute::BackwardFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(Attribute::BackwardFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(Attribute::BackwardFilterDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(Attribute::BackwardFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(Attribute::BackwardFilterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(Attribute::PointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(Attribute::PointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(Attribute::PointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(Attribute::PointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(Attribute::GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(Attribute::TensorByteAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(Attribute::TensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(Attribute::TensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(Attribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(Attribute::TensorUniqueId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(Attribute::TensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(Attribute::PackUniqueIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(Attribute::PackDataPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(Attribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(Attribute::EngineOperationGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(Attribute::EngineGlobalIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(Attribute::EngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(Attribute::EngineBehaviorNotes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
SAME(Attribute::EngineDeviceProperties, CUDNN_ATTR_ENGINE_DEVICEPROP);
SAME(Attribute::DevicePropertiesId, CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
SAME(Attribute::DevicePropertiesJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);

// CUDA's runtime.

namespace cudart = dlc::rt::cudart;

CALL(cudart, getErrorString, cudaGetErrorString);
CALL(cudart, getLastError, cudaGetLastError);
CALL(cudart, runtimeGetVersion, cudaRuntimeGetVersion);
CALL(cudart, driverGetVersion, cudaDriverGetVersion);
CALL(cudart, getDeviceCount, cudaGetDeviceCount);
CALL(cudart, setDevice, cudaSetDevice);
CALL(cudart, getDeviceProperties, cudaGetDeviceProperties);
CALL(cudart, eventQuery, cudaEventQuery);
static_assert(sizeof(cudaDeviceProp) <= sizeof(cudart::Properties));
static_assert(offsetof(cudaDeviceProp, name) == offsetof(cudart::Properties, name));
static_assert(offsetof(cudaDeviceProp, uuid) == offsetof(cudart::Properties, uuid));
static_assert(sizeof(cudaUUID_t) == sizeof(cudart::Properties::uuid));
SAME(cudart::notReady, cudaErrorNotReady);
CALL(cudart, deviceGetAttribute, cudaDeviceGetAttribute);
CALL(cudart, deviceGetPciBusId, cudaDeviceGetPCIBusId);
CALL(cudart, deviceGetStreamPriorityRange, cudaDeviceGetStreamPriorityRange);
CALL(cudart, deviceSynchronize, cudaDeviceSynchronize);
CALL(cudart, memGetInfo, cudaMemGetInfo);
CALL(cudart, free, cudaFree);
CALL(cudart, freeHost, cudaFreeHost);
CALL(cudart, memcpy, cudaMemcpy);
CALL(cudart, memcpyAsync, cudaMemcpyAsync);
CALL(cudart, streamCreateWithPriority, cudaStreamCreateWithPriority);
CALL(cudart, streamDestroy, cudaStreamDestroy);
CALL(cudart, streamWaitEvent, cudaStreamWaitEvent);
CALL(cudart, streamBeginCapture, cudaStreamBeginCapture);
CALL(cudart, streamEndCapture, cudaStreamEndCapture);
CALL(cudart, eventCreateWithFlags, cudaEventCreateWithFlags);
CALL(cudart, eventDestroy, cudaEventDestroy);
CALL(cudart, eventRecord, cudaEventRecord);
CALL(cudart, eventRecordWithFlags, cudaEventRecordWithFlags);
CALL(cudart, eventSynchronize, cudaEventSynchronize);
CALL(cudart, eventElapsedTime, cudaEventElapsedTime);
CALL(cudart, graphInstantiate, cudaGraphInstantiate);
CALL(cudart, graphLaunch, cudaGraphLaunch);
CALL(cudart, graphDestroy, cudaGraphDestroy);
CALL(cudart, graphExecDestroy, cudaGraphExecDestroy);
CALL(cudart, libraryLoadData, cudaLibraryLoadData);
CALL(cudart, libraryUnload, cudaLibraryUnload);
CALL(cudart, libraryGetKernel, cudaLibraryGetKernel);
CALL(cudart, malloc, cudaMalloc);
CALL(cudart, hostAlloc, cudaHostAlloc);
CALL(cudart, launchKernel, cudaLaunchKernel);
static_assert(sizeof(cudart::Extent3) == sizeof(dim3));
static_assert(cudart::success == cudaSuccess);
SAME(cudart::CopyKind::HostToDevice, cudaMemcpyHostToDevice);
SAME(cudart::CopyKind::DeviceToHost, cudaMemcpyDeviceToHost);
SAME(cudart::CopyKind::DeviceToDevice, cudaMemcpyDeviceToDevice);
SAME(cudart::CaptureMode::ThreadLocal, cudaStreamCaptureModeThreadLocal);
SAME(cudart::DeviceAttribute::MemoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
SAME(cudart::DeviceAttribute::CacheBytes, cudaDevAttrL2CacheSize);
SAME(cudart::DeviceAttribute::CapabilityMajor, cudaDevAttrComputeCapabilityMajor);
SAME(cudart::DeviceAttribute::CapabilityMinor, cudaDevAttrComputeCapabilityMinor);
SAME(cudart::nonBlockingStream, cudaStreamNonBlocking);
SAME(cudart::eventWithoutTime, cudaEventDisableTiming);
SAME(cudart::externalRecord, cudaEventRecordExternal);

// cuBLASLt.

namespace cublas = dlc::rt::cublas;

CALL(cublas, getVersion, cublasLtGetVersion);
CALL(cublas, getStatusString, cublasLtGetStatusString);
CALL(cublas, create, cublasLtCreate);
CALL(cublas, destroy, cublasLtDestroy);
CALL(cublas, matmulDescCreate, cublasLtMatmulDescCreate);
CALL(cublas, matmulDescDestroy, cublasLtMatmulDescDestroy);
CALL(cublas, matmulDescSetAttribute, cublasLtMatmulDescSetAttribute);
CALL(cublas, matrixLayoutCreate, cublasLtMatrixLayoutCreate);
CALL(cublas, matrixLayoutDestroy, cublasLtMatrixLayoutDestroy);
CALL(cublas, matmulPreferenceCreate, cublasLtMatmulPreferenceCreate);
CALL(cublas, matmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy);
CALL(cublas, matmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute);
CALL(cublas, matmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic);
CALL(cublas, matmul, cublasLtMatmul);
static_assert(cublas::success == CUBLAS_STATUS_SUCCESS);
static_assert(sizeof(cublas::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublas::Found) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublas::Found, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cublas::Found, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(cublas::DataType::Float, CUDA_R_32F);
SAME(cublas::DataType::Half, CUDA_R_16F);
SAME(cublas::DataType::BFloat16, CUDA_R_16BF);
SAME(cublas::ComputeType::Float, CUBLAS_COMPUTE_32F);
SAME(cublas::ComputeType::Tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(cublas::Operation::None, CUBLAS_OP_N);
SAME(cublas::Operation::Transpose, CUBLAS_OP_T);
SAME(cublas::Epilogue::None, CUBLASLT_EPILOGUE_DEFAULT);
SAME(cublas::Epilogue::Relu, CUBLASLT_EPILOGUE_RELU);
SAME(cublas::Epilogue::Bias, CUBLASLT_EPILOGUE_BIAS);
SAME(cublas::Epilogue::ReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(cublas::reductionInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(cublas::ProductAttribute::TransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(cublas::ProductAttribute::TransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(cublas::ProductAttribute::Epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(cublas::ProductAttribute::BiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(cublas::PreferenceAttribute::WorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(cublas::PreferenceAttribute::ReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(cublas::PreferenceAttribute::AlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(cublas::PreferenceAttribute::AlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(cublas::PreferenceAttribute::AlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(cublas::PreferenceAttribute::AlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

} // namespace

TEST(CudaHeaders, AgreeWithWhatIsDeclared) { SUCCEED() << "compiled, so they do"; }

#else

TEST(CudaHeaders, AgreeWithWhatIsDeclared) {
  if (std::getenv("DLC_REQUIRE_CUDA"))
    FAIL() << "DLC_REQUIRE_CUDA is set and cuDNN's headers were not found";
  GTEST_SKIP() << "no headers of cuDNN";
}

#endif
