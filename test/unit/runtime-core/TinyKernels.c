// The kernels of TinyArtifact, as generated code has them (runtime/cpu/GeneratedCode.h).

#include <stdint.h>

struct KernelRecord {
  void (*body)(void *const *buffers, int64_t begin, int64_t end, const int64_t *sizes);
  uint64_t contract;
};

static void gradient(void *const *buffers, int64_t begin, int64_t end, const int64_t *sizes) {
  (void)sizes;
  const float *weight = buffers[0], *image = buffers[1];
  float *gradient = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    gradient[i] = weight[i] * image[i];
}

static void update(void *const *buffers, int64_t begin, int64_t end, const int64_t *sizes) {
  (void)sizes;
  float *weight = buffers[0];
  const float *gradient = buffers[1], *rate = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    weight[i] -= *rate * gradient[i];
}

static void add(void *const *buffers, int64_t begin, int64_t end, const int64_t *sizes) {
  (void)sizes;
  const float *first = buffers[0], *second = buffers[1];
  float *sum = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    sum[i] = first[i] + second[i];
}

const struct KernelRecord tiny_gradient = {gradient, 0}, tiny_update = {update, 0},
                          tiny_add = {add, 0};
