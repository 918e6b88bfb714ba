// A thread takes 16 bytes of the wider side at a time, beside those of its neighbours, then those
// as far behind them as all threads take. Elements that are left, which do not fill 16 bytes, are
// taken by the first threads, one each. Denormals are kept when rounding and flushed when adding,
// as by CPUs.
#include "runtime/cuda/WireKernels.h"

#include <algorithm>

namespace dlc::rt {
namespace {

constexpr unsigned threads = 256;
constexpr size_t mostBlocks = 1024; // about as many as a large device holds at a time

/// What all kernels begin with.
constexpr const char *prologue = R"((
  .param .u64 .ptr .global .align 16 from,
  .param .u64 .ptr .global .align 16 to,
  .param .u64 count,
  .param .u64 contributions
)
{
  .reg .pred isOver;
  .reg .b16 half;
  .reg .b32 %r<5>;
  .reg .b32 %s<8>;
  .reg .b64 source;
  .reg .b64 target;
  .reg .b64 elements;
  .reg .b64 ranks;
  .reg .b64 thread;
  .reg .b64 threads;
  .reg .b64 item;
  .reg .b64 items;
  .reg .b64 rank;
  .reg .b64 x;

  ld.param.b64 source, [from];
  ld.param.b64 target, [to];
  ld.param.b64 elements, [count];
  ld.param.b64 ranks, [contributions];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 thread, %r2, %r1;
  cvt.u64.u32 x, %r0;
  add.u64 thread, thread, x;
  mul.wide.u32 threads, %r3, %r1;
  mov.b64 item, thread;
)";

constexpr const char *epilogue = R"(
$END:
  ret;
}
)";

constexpr const char *narrowCode = R"(
  shr.u64 items, elements, 2;
$NEXT:
  setp.ge.u64 isOver, item, items;
  @isOver bra $REST;
  shl.b64 x, item, 4;
  add.u64 x, source, x;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [x];
  cvt.rn.bf16x2.f32 %r0, %r1, %r0; // of which the first is the upper half
  cvt.rn.bf16x2.f32 %r1, %r3, %r2;
  shl.b64 x, item, 3;
  add.u64 x, target, x;
  st.global.v2.b32 [x], {%r0, %r1};
  add.u64 item, item, threads;
  bra $NEXT;
$REST:
  shl.b64 item, items, 2;
  add.u64 item, item, thread;
  setp.ge.u64 isOver, item, elements;
  @isOver bra $END;
  shl.b64 x, item, 2;
  add.u64 x, source, x;
  ld.global.b32 %r0, [x];
  cvt.rn.bf16.f32 half, %r0;
  shl.b64 x, item, 1;
  add.u64 x, target, x;
  st.global.b16 [x], half;)";

constexpr const char *widenCode = R"(
  shr.u64 items, elements, 2;
$NEXT:
  setp.ge.u64 isOver, item, items;
  @isOver bra $REST;
  shl.b64 x, item, 3;
  add.u64 x, source, x;
  ld.global.v2.b32 {%r1, %r3}, [x];
  shl.b32 %r0, %r1, 16;
  and.b32 %r1, %r1, 0xFFFF0000;
  shl.b32 %r2, %r3, 16;
  and.b32 %r3, %r3, 0xFFFF0000;
  shl.b64 x, item, 4;
  add.u64 x, target, x;
  st.global.v4.b32 [x], {%r0, %r1, %r2, %r3};
  add.u64 item, item, threads;
  bra $NEXT;
$REST:
  shl.b64 item, items, 2;
  add.u64 item, item, thread;
  setp.ge.u64 isOver, item, elements;
  @isOver bra $END;
  shl.b64 x, item, 1;
  add.u64 x, source, x;
  ld.global.b16 half, [x];
  cvt.u32.u16 %r0, half;
  shl.b32 %r0, %r0, 16;
  shl.b64 x, item, 2;
  add.u64 x, target, x;
  st.global.b32 [x], %r0;)";

/// The elements of a contribution fill 16 bytes.
constexpr const char *addCode = R"(
  shr.u64 items, elements, 3;
  shl.b64 elements, elements, 1; // bytes from here on
$NEXT:
  setp.ge.u64 isOver, item, items;
  @isOver bra $END;
  shl.b64 x, item, 4;
  add.u64 x, source, x;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [x];
  shl.b32 %s0, %r0, 16;
  and.b32 %s1, %r0, 0xFFFF0000;
  shl.b32 %s2, %r1, 16;
  and.b32 %s3, %r1, 0xFFFF0000;
  shl.b32 %s4, %r2, 16;
  and.b32 %s5, %r2, 0xFFFF0000;
  shl.b32 %s6, %r3, 16;
  and.b32 %s7, %r3, 0xFFFF0000;
  mov.b64 rank, 1;
$RANK:
  setp.ge.u64 isOver, rank, ranks;
  @isOver bra $SUM;
  add.u64 x, x, elements;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [x];
  shl.b32 %r4, %r0, 16;
  add.rn.ftz.f32 %s0, %s0, %r4;
  and.b32 %r4, %r0, 0xFFFF0000;
  add.rn.ftz.f32 %s1, %s1, %r4;
  shl.b32 %r4, %r1, 16;
  add.rn.ftz.f32 %s2, %s2, %r4;
  and.b32 %r4, %r1, 0xFFFF0000;
  add.rn.ftz.f32 %s3, %s3, %r4;
  shl.b32 %r4, %r2, 16;
  add.rn.ftz.f32 %s4, %s4, %r4;
  and.b32 %r4, %r2, 0xFFFF0000;
  add.rn.ftz.f32 %s5, %s5, %r4;
  shl.b32 %r4, %r3, 16;
  add.rn.ftz.f32 %s6, %s6, %r4;
  and.b32 %r4, %r3, 0xFFFF0000;
  add.rn.ftz.f32 %s7, %s7, %r4;
  add.u64 rank, rank, 1;
  bra $RANK;
$SUM:
  cvt.rn.bf16x2.f32 %r0, %s1, %s0;
  cvt.rn.bf16x2.f32 %r1, %s3, %s2;
  cvt.rn.bf16x2.f32 %r2, %s5, %s4;
  cvt.rn.bf16x2.f32 %r3, %s7, %s6;
  shl.b64 x, item, 4;
  add.u64 x, target, x;
  st.global.v4.b32 [x], {%r0, %r1, %r2, %r3};
  add.u64 item, item, threads;
  bra $NEXT;)";

std::string entry(const std::string &name, const std::string &body) {
  return "\n.visible .entry " + name + prologue + body + epilogue;
}

} // namespace

std::string WireKernels::text() {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + entry("narrow", narrowCode) +
         entry("add", addCode) + entry("widen", widenCode);
}

static constexpr const char *loading = "load the kernels of --wire=bf16";

WireKernels::WireKernels(const cudart::Functions &cuda)
    : cuda(cuda), library(cuda.load(text(), loading)) {
  for (auto [kernel, name] :
       {std::pair(&narrowing, "narrow"), {&adding, "add"}, {&widening, "widen"}})
    cuda.require(cuda.libraryGetKernel(kernel, library.get(), name), loading);
}

void WireKernels::narrow(DeviceSpan from, DeviceSpan to, cudart::Stream stream) const {
  launch(narrowing, from, to, from.bytes / sizeof(float), 1, stream);
}

void WireKernels::widen(DeviceSpan from, DeviceSpan to, cudart::Stream stream) const {
  launch(widening, from, to, to.bytes / sizeof(float), 1, stream);
}

void WireKernels::add(DeviceSpan contributions, DeviceSpan sum, cudart::Stream stream) const {
  launch(adding, contributions, sum, sum.bytes / sizeof(uint16_t), contributions.bytes / sum.bytes,
         stream);
}

void WireKernels::launch(cudart::Kernel kernel, DeviceSpan from, DeviceSpan to, uint64_t elements,
                         uint64_t ranks, cudart::Stream stream) const {
  constexpr uint64_t each = 4; // elements that a thread takes at a time, or more
  uint64_t parameters[] = {from.address, to.address, elements, ranks};
  void *arguments[] = {&parameters[0], &parameters[1], &parameters[2], &parameters[3]};
  auto blocks = static_cast<unsigned>(std::min(elements / each / threads + 1, mostBlocks));
  cuda.require(cuda.launchKernel(kernel, {blocks}, {threads}, arguments, 0, stream),
               "run a kernel of --wire=bf16");
}

} // namespace dlc::rt
