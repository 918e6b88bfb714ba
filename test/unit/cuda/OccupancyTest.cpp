// What is forecast of resident threads against NVIDIA's own calculator, where its header is.

#include "runtime/artifact/Occupancy.h"

#include <gtest/gtest.h>

#include <cstdlib>

#ifdef DLC_CUDNN_HEADERS
#include <cuda_occupancy.h>
#endif

using namespace dlc::rt;

TEST(Occupancy, NeedsAKnownDeviceAndKernel) {
  EXPECT_FALSE(occupancy(0, {256, 32, 0}));
  EXPECT_FALSE(occupancy(70, {256, 32, 0}));
  EXPECT_FALSE(occupancy(90, {256, 0, 0}));
  EXPECT_EQ(occupancy(90, {256, 32, 0}), 1);
  EXPECT_EQ(occupancy(90, {256, 64, 0}), 0.5);
  EXPECT_EQ(occupancy(90, {1024, 255, 0}), 0);
}

TEST(Occupancy, IsThatOfNvidiasCalculator) {
#ifdef DLC_CUDNN_HEADERS
  struct Device {
    int major, minor, threads;
    size_t shared;
  };
  for (Device device :
       {Device{8, 0, 2048, 164}, Device{8, 6, 1536, 100}, Device{8, 7, 1536, 164},
        Device{8, 9, 1536, 100}, Device{9, 0, 2048, 228}, Device{10, 0, 2048, 228},
        Device{10, 3, 2048, 228}, Device{12, 0, 1536, 100}, Device{12, 1, 1536, 100}}) {
    cudaOccDeviceProp properties;
    properties.computeMajor = device.major;
    properties.computeMinor = device.minor;
    properties.maxThreadsPerBlock = 1024;
    properties.maxThreadsPerMultiprocessor = device.threads;
    properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
    properties.warpSize = 32;
    properties.sharedMemPerBlock = 48 * 1024;
    properties.sharedMemPerMultiprocessor = device.shared * 1024;
    properties.sharedMemPerBlockOptin = (device.shared - 1) * 1024;
    properties.reservedSharedMemPerBlock = 1024;
    properties.numSms = 100;
    for (unsigned threads : {32u, 96u, 256u, 512u, 1024u})
      for (unsigned registers : {16u, 33u, 40u, 64u, 100u, 168u, 255u})
        for (unsigned shared : {0u, 100u, 4096u, 20000u, 48u * 1024}) {
          cudaOccFuncAttributes kernel;
          kernel.maxThreadsPerBlock = 1024;
          kernel.numRegs = static_cast<int>(registers);
          kernel.sharedSizeBytes = shared;
          cudaOccDeviceState state;
          cudaOccResult result;
          ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &kernel, &state,
                                                            static_cast<int>(threads), 0),
                    CUDA_OCC_SUCCESS);
          double expected =
              static_cast<double>(result.activeBlocksPerMultiprocessor) * threads / device.threads;
          auto architecture = static_cast<unsigned>(10 * device.major + device.minor);
          EXPECT_EQ(occupancy(architecture, {threads, registers, shared}), expected)
              << architecture << " " << threads << " " << registers << " " << shared;
        }
  }
#else
  if (std::getenv("DLC_REQUIRE_CUDA"))
    FAIL() << "no cuda_occupancy.h";
  GTEST_SKIP() << "no cuda_occupancy.h";
#endif
}
