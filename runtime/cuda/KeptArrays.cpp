#include "runtime/cuda/KeptArrays.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dlc::rt {
namespace {

constexpr const char *doing = "gather inputs on the GPU";
constexpr uint64_t alignment = 256;

uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

constexpr const char *gatherPrologue = R"(.version 8.0
.target sm_80
.address_size 64

.visible .entry gather(
  .param .u64 .ptr .global .align 16 arrays,
  .param .u64 .ptr .global .align 16 rows,
  .param .u64 .ptr .global .align 16 to,
  .param .u64 elements,     // of a row
  .param .u64 blocks,       // likewise
  .param .u64 elementShift     // of the bytes of a written element: of u8, u16 and f32
)
{
  .reg .pred isOver;
  .reg .b16 half;
  .reg .b32 %r<7>;
  .reg .b32 element;
  .reg .b32 value;
  .reg .b32 bytes;
  .reg .b64 count;
  .reg .b64 source;
  .reg .b64 target;
  .reg .b64 row;
  .reg .b64 at;
  .reg .b64 x;
  .reg .b64 stride;

  ld.param.b64 x, [blocks];
  cvt.u32.u64 %r1, x;
  mov.u32 %r0, %ctaid.x;
  div.u32 %r2, %r0, %r1;
  rem.u32 %r3, %r0, %r1;
  mov.u32 %r0, %ntid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 element, %r3, %r0, %r1;
  ld.param.b64 count, [elements];
  cvt.u64.u32 at, element;
  setp.ge.u64 isOver, at, count;
  @isOver bra $END;

  ld.param.b64 row, [rows];
  mul.wide.u32 x, %r2, 160;
  add.u64 row, row, x;
  ld.global.b32 bytes, [row+112];
  setp.eq.u32 isOver, bytes, 0;
  @isOver bra $END;

  cvt.u64.u32 target, %r2;
  mul.lo.u64 target, target, count;
  add.u64 target, target, at;
  ld.param.b64 x, [elementShift];
  cvt.u32.u64 %r6, x;
  shl.b64 target, target, %r6;
  ld.param.b64 x, [to];
  add.u64 target, target, x;

  mov.b32 value, 0;
  ld.global.b64 at, [row+8];
)";

/// Takes the index along one axis off the element's number, from the last axis on, into %r1. What
/// the array lacks is 0.
std::string axisCode(unsigned axis) {
  unsigned offset = 16 + 24 * axis;
  auto field = [&](unsigned within) { return "[row+" + std::to_string(offset + within) + "]"; };
  return "  ld.global.b32 %r0, " + field(0) +
         ";\n"
         "  rem.u32 %r1, element, %r0;\n"
         "  div.u32 element, element, %r0;\n"
         "  ld.global.b32 %r2, " +
         field(4) +
         ";\n"
         "  setp.lt.u32 isOver, %r1, %r2;\n"
         "  @isOver bra $WRITE;\n"
         "  ld.global.b32 %r2, " +
         field(8) +
         ";\n"
         "  setp.ge.u32 isOver, %r1, %r2;\n"
         "  @isOver bra $WRITE;\n"
         "  ld.global.b64 stride, " +
         field(16) +
         ";\n"
         "  cvt.u64.u32 x, %r1;\n"
         "  mul.lo.s64 x, x, stride;\n"
         "  add.s64 at, at, x;\n";
}

constexpr const char *readCode = R"(
  ld.param.b64 source, [arrays];
  ld.global.b64 x, [row];
  add.u64 source, source, x;
  setp.eq.u32 isOver, bytes, 2;
  @isOver bra $WORD;
  add.u64 source, source, at;
  ld.global.b8 half, [source];
  bra.uni $READ;
$WORD:
  shl.b64 at, at, 1;
  add.u64 source, source, at;
  ld.global.b16 half, [source];
$READ:
  cvt.u32.u16 value, half;
  ld.global.b32 %r0, [row+116];
  setp.eq.u32 isOver, %r0, 0;
  @isOver bra $UNMASKED;
  min.u32 value, value, 1;
$UNMASKED:
  setp.ne.u32 isOver, %r6, 2;
  @isOver bra $WRITE;
  cvt.rn.f32.u32 value, value;
  ld.global.b32 %r0, [row+120];
  setp.eq.u32 isOver, %r0, 0;
  @isOver bra $WRITE;
  mul.wide.u32 x, %r1, 4; // of the channel, whose axis was the last
  add.u64 x, row, x;
  ld.global.b32 %r0, [x+128];
  sub.rn.f32 value, value, %r0;
  ld.global.b32 %r0, [x+144];
  mul.rn.f32 value, value, %r0;

$WRITE:
)";

constexpr const char *replacePrologue = R"(
.visible .entry replace(
  .param .u64 .ptr .global .align 16 spots,
  .param .u64 .ptr .global .align 16 to,
  .param .u64 spotCount,
  .param .u64 elementShift
)
{
  .reg .pred isOver;
  .reg .b16 half;
  .reg .b32 %r<7>;
  .reg .b32 value;
  .reg .b64 count;
  .reg .b64 spot;
  .reg .b64 target;
  .reg .b64 x;

  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  cvt.u64.u32 x, %r3;
  ld.param.b64 count, [spotCount];
  setp.ge.u64 isOver, x, count;
  @isOver bra $END;

  ld.param.b64 spot, [spots];
  mul.wide.u32 x, %r3, 16;
  add.u64 spot, spot, x;
  ld.global.b64 target, [spot];
  ld.global.b32 value, [spot+8];
  ld.param.b64 x, [elementShift];
  cvt.u32.u64 %r6, x;
  shl.b64 target, target, %r6;
  ld.param.b64 x, [to];
  add.u64 target, target, x;
)";

/// Writes the value as 1 << %r6 bytes.
constexpr const char *writeCode = R"(
  setp.eq.u32 isOver, %r6, 2;
  @isOver bra $FLOAT;
  cvt.u16.u32 half, value;
  setp.eq.u32 isOver, %r6, 1;
  @isOver bra $HALF;
  st.global.b8 [target], half;
  bra.uni $END;
$HALF:
  st.global.b16 [target], half;
  bra.uni $END;
$FLOAT:
  st.global.b32 [target], value;
$END:
  ret;
}
)";

/// Bytes of an input's element are 1 << so many.
uint64_t elementShiftOf(artifact::DType type) {
  return type == artifact::DType::U8 ? 0 : type == artifact::DType::U16 ? 1 : 2;
}

uint64_t blocksOf(uint64_t threads) {
  return (threads + KeptArrays::threads() - 1) / KeptArrays::threads();
}

} // namespace

//===- Rows -----------------------------------------------------------------------------------===//

// Where the kernels read.
using PackedSpot = KeptArrays::PackedSpot;
static_assert(sizeof(PackedSpot) == 16 && offsetof(PackedSpot, bits) == 8);
using Packed = KeptArrays::PackedRow;
static_assert(sizeof(Packed) == 160 && sizeof(Packed::axes[0]) == 24);
static_assert(offsetof(Packed, first) == 8 && offsetof(Packed, axes) == 16);
static_assert(offsetof(Packed, elementBytes) == 112 && offsetof(Packed, isMask) == 116);
static_assert(offsetof(Packed, isScaled) == 120 && offsetof(Packed, shift) == 128);
static_assert(offsetof(Packed, scale) == 144);

static size_t spotBytes(const DeviceSpan &memory, artifact::DType type, size_t rows) {
  size_t most = ArrayRow::mostSpots(memory.bytes / rows >> elementShiftOf(type));
  return rows * most * sizeof(PackedSpot);
}

GatheredInput::GatheredInput(const CudaContext &context, DeviceSpan memory, artifact::DType type,
                             size_t count)
    : memory(memory), type(type), rows(count), packed(context.lock(count * sizeof(Packed))),
      onDevice(context.allocate(count * sizeof(Packed))),
      packedSpots(context.lock(spotBytes(memory, type, count))),
      spotsOnDevice(context.allocate(spotBytes(memory, type, count))) {}

KeptArrays::PackedRow KeptArrays::packed(const ArrayRow &row, uint64_t place) {
  PackedRow packed;
  packed.place = place;
  packed.first = row.first;
  for (size_t i = 0; i < row.axes.size(); ++i) {
    const ArrayRow::Axis &axis = row.axes[i];
    packed.axes[i] = {static_cast<uint32_t>(axis.extent), static_cast<uint32_t>(axis.low),
                      static_cast<uint32_t>(axis.high), 0, axis.stride};
  }
  packed.elementBytes = row.type == artifact::DType::U16 ? 2 : 1;
  packed.isMask = row.isMask;
  packed.isScaled = row.isScaled;
  packed.shift = row.shift;
  packed.scale = row.scale;
  return packed;
}

std::vector<PackedSpot> KeptArrays::packedSpots(std::span<const ArrayRow> rows,
                                                artifact::DType type, uint64_t rowElements) {
  std::vector<PackedSpot> packed;
  for (size_t row = 0; row < rows.size(); ++row)
    for (const ArrayRow::Spot &spot : rows[row].spots)
      packed.push_back({row * rowElements + spot.element, type == artifact::DType::F32
                                                              ? std::bit_cast<uint32_t>(spot.value)
                                                              : static_cast<uint32_t>(spot.value)});
  return packed;
}

std::string KeptArrays::text() {
  std::string text = gatherPrologue;
  for (unsigned axis = 4; axis-- > 0;)
    text += axisCode(axis);
  return text + readCode + writeCode + replacePrologue + writeCode;
}

//===- Arrays ---------------------------------------------------------------------------------===//

uint64_t KeptArrays::bytesFor(std::span<const uint64_t> sizes) {
  uint64_t bytes = 0;
  for (uint64_t size : sizes)
    bytes += aligned(size);
  return bytes;
}

KeptArrays::KeptArrays(const CudaContext &context, Owned<void *> memory, uint64_t bytes)
    : context(context), memory(std::move(memory)), room(bytes),
      library(context.cuda().load(text(), doing)) {
  const cudart::Functions &cuda = context.cuda();
  cuda.require(cuda.libraryGetKernel(&gatherRows, library.get(), "gather"), doing);
  cuda.require(cuda.libraryGetKernel(&replaceSpots, library.get(), "replace"), doing);
}

void KeptArrays::copy(uint64_t to, std::span<const std::byte> from, cudart::Stream stream) const {
  context.require(context.cuda().memcpyAsync(reinterpret_cast<void *>(to), from.data(), from.size(),
                                             cudart::CopyKind::HostToDevice, stream),
                  "copy inputs to the GPU");
}

uint64_t KeptArrays::placeOf(const ArrayRow &row, cudart::Stream stream) {
  auto [kept, isNew] = arrays.try_emplace(row.array.data());
  if (isNew) {
    if (row.array.size() > room - used)
      throw Error(ErrorCode::Runtime,
                  "more data are read than were there at the start: start again, and leave the "
                  "files as they are meanwhile");
    copy(reinterpret_cast<uint64_t>(memory.get()) + used, row.array, stream);
    kept->second = {used, row.owner};
    used += aligned(row.array.size());
  }
  return kept->second.place;
}

bool KeptArrays::wantsArrays(const GatheredInput &input) const {
  return std::ranges::any_of(input.rows, [&](const ArrayRow &row) {
    return !row.isStaged() && !arrays.contains(row.array.data());
  });
}

void KeptArrays::launch(cudart::Kernel kernel, std::span<uint64_t> parameters, uint64_t blocks,
                        cudart::Stream stream) const {
  std::vector<void *> arguments;
  for (uint64_t &parameter : parameters)
    arguments.push_back(&parameter);
  context.require(context.cuda().launchKernel(kernel, {static_cast<unsigned>(blocks)}, {threads()},
                                              arguments.data(), 0, stream),
                  doing);
}

bool KeptArrays::gather(GatheredInput &input, std::span<const std::byte> staged,
                        cudart::Stream stream) {
  std::vector<ArrayRow> &rows = input.rows;
  if (std::ranges::all_of(rows, [](const ArrayRow &row) { return row.isStaged(); }))
    return false;
  size_t rowBytes = input.memory.bytes / rows.size();
  uint64_t elementShift = elementShiftOf(input.type), elements = rowBytes >> elementShift;
  std::vector<PackedSpot> spots = packedSpots(rows, input.type, elements);
  for (size_t i = 0; i < rows.size(); ++i) {
    PackedRow packed;
    if (rows[i].isStaged())
      copy(input.memory.address + i * rowBytes, staged.subspan(i * rowBytes, rowBytes), stream);
    else
      packed = KeptArrays::packed(rows[i], placeOf(rows[i], stream));
    std::memcpy(input.packed.bytes.data() + i * sizeof packed, &packed, sizeof packed);
    rows[i] = {};
  }
  auto packedRows = reinterpret_cast<uint64_t>(input.onDevice.get());
  copy(packedRows, input.packed.bytes, stream);
  uint64_t blocks = blocksOf(elements);
  uint64_t parameters[] = {reinterpret_cast<uint64_t>(memory.get()),
                           packedRows,
                           input.memory.address,
                           elements,
                           blocks,
                           elementShift};
  launch(gatherRows, parameters, blocks * rows.size(), stream);
  if (!spots.empty())
    replace(input, spots, stream);
  return true;
}

void KeptArrays::replace(GatheredInput &input, std::span<const PackedSpot> spots,
                         cudart::Stream stream) const {
  std::span<const std::byte> bytes = std::as_bytes(spots);
  if (bytes.size() > input.packedSpots.bytes.size())
    throw Error(ErrorCode::Runtime, "a row of more spots than the GPU has room for was not staged: "
                                    "please report this fault of dlc");
  std::ranges::copy(bytes, input.packedSpots.bytes.begin());
  auto packed = reinterpret_cast<uint64_t>(input.spotsOnDevice.get());
  copy(packed, std::span(input.packedSpots.bytes).first(bytes.size()), stream);
  uint64_t parameters[] = {packed, input.memory.address, spots.size(), elementShiftOf(input.type)};
  launch(replaceSpots, parameters, blocksOf(spots.size()), stream);
}

} // namespace dlc::rt
