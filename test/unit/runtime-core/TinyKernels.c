// The two kernels of TinyArtifact, in the ABI of generated code.

#include <stdint.h>

void tiny_gradient(void *const *buffers, int64_t begin, int64_t end) {
  const float *weight = buffers[0], *image = buffers[1];
  float *gradient = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    gradient[i] = weight[i] * image[i];
}

void tiny_update(void *const *buffers, int64_t begin, int64_t end) {
  float *weight = buffers[0];
  const float *gradient = buffers[1], *rate = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    weight[i] -= *rate * gradient[i];
}
