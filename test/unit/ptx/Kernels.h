// Texts of small kernels, as LLVM writes them.
#pragma once

#include "test/ptx/Emulator.h"

#include <gtest/gtest.h>

#include <string>

namespace dlc::ptx::test {

/// A kernel `k` with two pointers, %rd1 and %rd2, and what thread and block are in %r1 and %r2.
inline std::string kernel(const std::string &body, const std::string &declarations = "") {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
  .param .u64 .ptr .global .align 1 k_param_0,
  .param .u64 .ptr .global .align 1 k_param_1
)
{
  .reg .pred %p<8>;
  .reg .b16 %rs<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  )" + declarations +
         R"(
  ld.param.b64 %rd1, [k_param_0];
  ld.param.b64 %rd2, [k_param_1];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  )" + body +
         "\n  ret;\n}\n";
}

inline Module parsed(const std::string &text) {
  std::string reason;
  Module module = parse(text, reason);
  EXPECT_EQ(reason, "");
  return module;
}

/// Why a text is refused.
inline std::string refusal(const std::string &text) {
  std::string reason;
  parse(text, reason);
  return reason;
}

/// Runs a kernel on 4096 initialised bytes that count up, and on 4096 that nobody wrote.
class KernelRun {
public:
  explicit KernelRun(const std::string &text, uint32_t blocks = 1, uint32_t threads = 32,
                     std::vector<uint32_t> order = {}, uint32_t registers = 0)
      : module(parsed(text)) {
    input = memory.add("input", bytes, Use::Read,
                       [](uint64_t offset) { return static_cast<uint8_t>(offset); });
    output = memory.add("output", bytes, Use::ReadWrite);
    report =
        Emulator(module, memory).run({"k", blocks, threads, {input, output}, order, registers});
  }
  /// The fault, or "".
  std::string fault() const { return report.faults.empty() ? "" : report.faults.front(); }
  template <typename Element> Element result(uint64_t index) {
    Element element{};
    memory.read(output + index * sizeof(Element), &element, sizeof(Element));
    return element;
  }

  static constexpr uint64_t bytes = 4096;
  Module module;
  Memory memory;
  uint64_t input = 0, output = 0;
  Report report;
};

} // namespace dlc::ptx::test
