// Each kind of kernel lists its operands (argument index and view) and fills one operation
// descriptor; everything after that - iterating, querying, checking - is the same for all.

#include "runtime/cpu/OneDnnOperation.h"

#include <algorithm>

namespace dlc::rt {
namespace {

void check(dnnl_status_t status, const char *what) { dnnl::error::wrap_c_api(status, what); }

std::shared_ptr<dnnl_primitive_desc> own(dnnl_primitive_desc_t pd) {
  return {pd, [](dnnl_primitive_desc_t handle) { dnnl_primitive_desc_destroy(handle); }};
}

} // namespace

// Ahead of the library's own name.
static constexpr const char *productPrefix = "product:";

Algorithm algorithmOf(const std::string &implementation) {
  if (implementation.starts_with(productPrefix))
    return Algorithm::Product;
  return implementation.find("wino") != std::string::npos ? Algorithm::Winograd : Algorithm::Direct;
}

bool isReferenceCode(const std::string &implementation) {
  return implementation.find("ref") != std::string::npos ||
         implementation.find("simple") != std::string::npos;
}

OneDnnOperation::OneDnnOperation(const dnnl::engine &engine, const KernelRequest &request,
                                 const LayoutChoice &layouts, Algorithm algorithm)
    : engine(engine), request(request), layouts(layouts), algorithm(algorithm) {
  for (int64_t dilation : request.dilations)
    dilates.push_back(dilation - 1);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  describe();
}

void OneDnnOperation::describe() {
  switch (request.op) {
  case KernelOp::Conv:
    return describeConv();
  case KernelOp::ConvGradData:
    return request.bias || request.relu ? describeDeconvolution() : describeConvGradData();
  case KernelOp::ConvGradFilter:
    return algorithm == Algorithm::Product ? describeFilterProduct() : describeConvGradFilter();
  case KernelOp::Matmul:
    return describeMatmul();
  case KernelOp::MaxPool:
    return describePool();
  case KernelOp::MaxPoolGrad:
    return describePoolGrad();
  case KernelOp::Reorder:
    return describeReorder();
  }
}

OperandType OneDnnOperation::libraryOperand(size_t operand) const {
  OperandType type = request.operands[operand];
  // A pooling's index is u8 there; positions stay below 128, so both types read alike.
  if (arguments[operand] == DNNL_ARG_WORKSPACE && type.dtype == DType::I8)
    type.dtype = DType::U8;
  return type;
}

void OneDnnOperation::addOperand(int argument, OperandView view) {
  size_t index = arguments.size();
  arguments.push_back(argument);
  OperandType operand = libraryOperand(index);
  views.push_back(view);
  if (const std::optional<Layout> &layout = layouts[index]) {
    std::optional<dnnl_memory_desc_t> fixed = toMemoryDesc(operand, *layout, view);
    expressible = expressible && fixed.has_value();
    descs.push_back(fixed.value_or(dnnl_memory_desc_t{}));
  } else {
    descs.push_back(anyMemoryDesc(operand, view));
  }
}

void OneDnnOperation::addForwardOperands(OperandView source, OperandView weights,
                                         OperandView bias) {
  addOperand(DNNL_ARG_SRC, source);
  addOperand(DNNL_ARG_WEIGHTS, weights);
  if (request.bias)
    addOperand(DNNL_ARG_BIAS, bias);
  addOperand(DNNL_ARG_DST);
  if (!request.relu)
    return;
  dnnl::post_ops operations;
  operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  attributes.set_post_ops(operations);
}

static OperandView weightView(int64_t groups, bool swapped = false) {
  using Kind = OperandView::Kind;
  if (groups == 1)
    return {swapped ? Kind::Swapped : Kind::Same};
  return {swapped ? Kind::GroupedSwapped : Kind::Grouped, groups};
}

static dnnl_alg_kind_t libraryAlgorithm(Algorithm algorithm) {
  return algorithm == Algorithm::Winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

void OneDnnOperation::describeConv() {
  addForwardOperands({}, weightView(request.groups), {});
  if (!expressible)
    return;
  // Training always: for inference Winograd would ask for an opaque weight format.
  dnnl_convolution_desc_t conv;
  check(dnnl_dilated_convolution_forward_desc_init(
            &conv, dnnl_forward_training, libraryAlgorithm(algorithm), &desc(0), &desc(1),
            request.bias ? &desc(2) : nullptr, &descs.back(), request.strides.data(),
            dilates.data(), request.paddingLow.data(), request.paddingHigh.data()),
        "describe a convolution");
  descriptor = conv;
}

void OneDnnOperation::describeConvGradData() {
  addOperand(DNNL_ARG_DIFF_DST);
  addOperand(DNNL_ARG_WEIGHTS, weightView(request.groups));
  addOperand(DNNL_ARG_DIFF_SRC);
  if (!expressible)
    return;
  dnnl_convolution_desc_t conv;
  check(dnnl_dilated_convolution_backward_data_desc_init(
            &conv, libraryAlgorithm(algorithm), &desc(2), &desc(1), &desc(0),
            request.strides.data(), dilates.data(), request.paddingLow.data(),
            request.paddingHigh.data()),
        "describe a convolution's data gradient");
  descriptor = conv;
}

void OneDnnOperation::describeDeconvolution() {
  addForwardOperands({}, weightView(request.groups, true), {});
  if (!expressible)
    return;
  dnnl_deconvolution_desc_t deconv;
  check(dnnl_dilated_deconvolution_forward_desc_init(
            &deconv, dnnl_forward_training, dnnl_deconvolution_direct, &desc(0), &desc(1),
            request.bias ? &desc(2) : nullptr, &descs.back(), request.strides.data(),
            dilates.data(), request.paddingLow.data(), request.paddingHigh.data()),
        "describe a transposed convolution");
  descriptor = deconv;
}

void OneDnnOperation::describeConvGradFilter() {
  addOperand(DNNL_ARG_SRC);
  addOperand(DNNL_ARG_DIFF_DST);
  addOperand(DNNL_ARG_DIFF_WEIGHTS, weightView(request.groups));
  if (!expressible)
    return;
  dnnl_convolution_desc_t conv;
  check(dnnl_dilated_convolution_backward_weights_desc_init(
            &conv, libraryAlgorithm(algorithm), &desc(0), &desc(2), nullptr, &desc(1),
            request.strides.data(), dilates.data(), request.paddingLow.data(),
            request.paddingHigh.data()),
        "describe a convolution's filter gradient");
  descriptor = conv;
}

/// True if a window is one pixel, and each pixel of x has one.
static bool hasWindowOfOne(const KernelRequest &request) {
  auto isAll = [](const std::vector<int64_t> &values, size_t from, int64_t wanted) {
    return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(),
                       [&](int64_t value) { return value == wanted; });
  };
  return isAll(request.operands[2].shape, 2, 1) && isAll(request.strides, 0, 1) &&
         isAll(request.paddingLow, 0, 0) && isAll(request.paddingHigh, 0, 0);
}

void OneDnnOperation::describeFilterProduct() {
  using Kind = OperandView::Kind;
  expressible = request.groups == 1 && hasWindowOfOne(request);
  if (!expressible)
    return;
  size_t rank = request.operands[0].shape.size();
  addOperand(DNNL_ARG_WEIGHTS, {Kind::Pixels, 1, rank});
  addOperand(DNNL_ARG_SRC, {Kind::PixelsSwapped, 1, rank});
  addOperand(DNNL_ARG_DST, {Kind::OnePixel, 1, rank});
  if (!expressible)
    return;
  dnnl_matmul_desc_t matmul;
  check(dnnl_matmul_desc_init(&matmul, &desc(1), &desc(0), nullptr, &desc(2)),
        "describe a filter gradient as a matrix product");
  descriptor = matmul;
}

void OneDnnOperation::describeMatmul() {
  using Kind = OperandView::Kind;
  addForwardOperands({request.transposeA ? Kind::Swapped : Kind::Same},
                     {request.transposeB ? Kind::Swapped : Kind::Same}, {Kind::Row});
  if (!expressible)
    return;
  dnnl_matmul_desc_t matmul;
  check(dnnl_matmul_desc_init(&matmul, &desc(0), &desc(1), request.bias ? &desc(2) : nullptr,
                              &descs.back()),
        "describe a matrix product");
  descriptor = matmul;
}

void OneDnnOperation::describePool() {
  addOperand(DNNL_ARG_SRC);
  addOperand(DNNL_ARG_DST);
  // The index is the library's workspace, whose format follows y: examine() checks it.
  addOperand(DNNL_ARG_WORKSPACE);
  if (!expressible)
    return;
  dnnl_pooling_v2_desc_t pool;
  check(dnnl_pooling_v2_forward_desc_init(&pool, dnnl_forward_training, dnnl_pooling_max, &desc(0),
                                          &desc(1), request.strides.data(), request.kernel.data(),
                                          dilates.data(), request.paddingLow.data(),
                                          request.paddingHigh.data()),
        "describe a pooling");
  descriptor = pool;
}

void OneDnnOperation::describePoolGrad() {
  addOperand(DNNL_ARG_DIFF_DST);
  addOperand(DNNL_ARG_WORKSPACE);
  addOperand(DNNL_ARG_DIFF_SRC);
  if (!expressible)
    return;
  // The index has dy's layout and vice versa; with neither fixed the forward pooling decides.
  dnnl_memory_desc_t gradient = desc(0);
  if (const std::optional<Layout> &index = layouts[1]; index && !layouts[0])
    if (auto fixed = toMemoryDesc(request.operands[0], *index))
      gradient = *fixed;
  dnnl_memory_desc_t source = desc(2);
  if (!layouts[2] && gradient.format_kind == dnnl_blocked)
    if (auto layout = toLayout(gradient))
      if (auto fixed = toMemoryDesc(request.operands[2], *layout))
        source = *fixed;
  dnnl_pooling_v2_desc_t forward;
  check(dnnl_pooling_v2_forward_desc_init(&forward, dnnl_forward_training, dnnl_pooling_max,
                                          &source, &gradient, request.strides.data(),
                                          request.kernel.data(), dilates.data(),
                                          request.paddingLow.data(), request.paddingHigh.data()),
        "describe a pooling");
  dnnl_primitive_desc_t pd = nullptr;
  if (dnnl_primitive_desc_create(&pd, &forward, attributes.get(), engine.get(), nullptr) !=
      dnnl_success)
    return;
  hint = own(pd);
  dnnl_pooling_v2_desc_t pool;
  check(dnnl_pooling_v2_backward_desc_init(&pool, dnnl_pooling_max, &desc(2), &gradient,
                                           request.strides.data(), request.kernel.data(),
                                           dilates.data(), request.paddingLow.data(),
                                           request.paddingHigh.data()),
        "describe a pooling's gradient");
  descriptor = pool;
}

void OneDnnOperation::describeReorder() {
  addOperand(DNNL_ARG_FROM);
  addOperand(DNNL_ARG_TO);
}

std::optional<OneDnnImplementation>
OneDnnOperation::examine(std::shared_ptr<dnnl_primitive_desc> pd) const {
  OneDnnImplementation found;
  found.arguments = arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    OperandType operand = libraryOperand(i);
    const dnnl_memory_desc_t *desc =
        dnnl_primitive_desc_query_md(pd.get(), dnnl_query_exec_arg_md, arguments[i]);
    if (!desc || desc->ndims == 0 || desc->data_type != toDnnl(operand.dtype))
      return std::nullopt;
    std::optional<Layout> layout = toLayout(*desc, views[i]);
    if (!layout)
      return std::nullopt;
    // An equal descriptor may print as another layout where extents are 1; the fixed name stands.
    const std::optional<Layout> &wanted = layouts[i];
    if (wanted && *wanted != *layout) {
      std::optional<dnnl_memory_desc_t> fixed = toMemoryDesc(operand, *wanted, views[i]);
      if (!fixed || !dnnl_memory_desc_equal(&*fixed, desc))
        return std::nullopt;
    }
    found.layouts.push_back(wanted ? *wanted : *layout);
    found.operands.push_back(*desc);
  }
  const char *name = nullptr;
  check(
      dnnl_primitive_desc_query(pd.get(), dnnl_query_impl_info_str, 0, static_cast<void *>(&name)),
      "ask for an implementation's name");
  found.name = algorithm == Algorithm::Product ? std::string(productPrefix) + name : name;
  const dnnl_memory_desc_t *scratchpad =
      dnnl_primitive_desc_query_md(pd.get(), dnnl_query_scratchpad_md, 0);
  found.workspaceBytes = scratchpad ? dnnl_memory_desc_get_size(scratchpad) : 0;
  found.descriptor = std::move(pd);
  return found;
}

bool OneDnnOperation::visitOpDescriptor(
    const std::function<bool(const OneDnnImplementation &)> &visit) const {
  const_dnnl_op_desc_t operation = std::visit(
      [](const auto &held) -> const_dnnl_op_desc_t {
        return static_cast<const_dnnl_op_desc_t>(&held);
      },
      descriptor);
  dnnl_primitive_desc_iterator_t raw = nullptr;
  dnnl_status_t status = dnnl_primitive_desc_iterator_create(&raw, operation, attributes.get(),
                                                             engine.get(), hint.get());
  if (status == dnnl_unimplemented || status == dnnl_iterator_ends)
    return false;
  check(status, "list the implementations");
  std::unique_ptr<dnnl_primitive_desc_iterator, void (*)(dnnl_primitive_desc_iterator_t)> iterator(
      raw, [](dnnl_primitive_desc_iterator_t it) { dnnl_primitive_desc_iterator_destroy(it); });
  do {
    dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(raw);
    if (!pd)
      return false;
    if (auto found = examine(own(pd)); found && visit(*found))
      return true;
  } while (dnnl_primitive_desc_iterator_next(raw) == dnnl_success);
  return false;
}

bool OneDnnOperation::anyOf(const std::function<bool(const OneDnnImplementation &)> &visit) const {
  if (!expressible)
    return false;
  if (request.op != KernelOp::Reorder)
    return !std::holds_alternative<std::monostate>(descriptor) && visitOpDescriptor(visit);
  if (!layouts[0] || !layouts[1])
    return false;
  dnnl_primitive_desc_t pd = nullptr;
  if (dnnl_reorder_primitive_desc_create(&pd, &desc(0), engine.get(), &desc(1), engine.get(),
                                         attributes.get()) != dnnl_success)
    return false;
  std::optional<OneDnnImplementation> found = examine(own(pd));
  return found && visit(*found);
}

} // namespace dlc::rt
