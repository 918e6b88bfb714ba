#include "test/ptx/Emulator.h"

#include "test/ptx/Block.h"

#include <numeric>

namespace dlc::ptx {
namespace {

// Of every device from sm_80 on. Shared memory that a kernel declares itself is at most 48 KiB.
constexpr uint32_t mostThreads = 1024, mostDeclaredBytes = 48 * 1024;
constexpr uint32_t mostBlocks = (uint32_t{1} << 31) - 1; // a grid has one dimension here
constexpr uint32_t mostRegisters = 255, blockRegisters = 65536;

/// Registers are known if an assembler has counted them or the text limits them. They are given to
/// whole warps, eight to a lane.
std::string findExcessRegisters(const Entry &entry, const Launch &launch) {
  uint32_t registers = launch.registers != 0 ? launch.registers : entry.mostRegisters;
  if (entry.mostRegisters != 0 && registers > entry.mostRegisters)
    return std::to_string(registers) + " registers per thread where the text allows " +
           std::to_string(entry.mostRegisters);
  if (registers > mostRegisters)
    return std::to_string(registers) + " registers per thread";
  uint32_t all = (registers + 7) / 8 * 8 * ((launch.threads + 31) / 32 * 32);
  return all > blockRegisters ? std::to_string(all) + " registers per block" : "";
}

std::string findExcess(const Entry &entry, const Launch &launch) {
  if (launch.threads < 1 || launch.threads > mostThreads)
    return "a block of " + std::to_string(launch.threads) + " threads";
  if (entry.threads != 0 && launch.threads != entry.threads)
    return std::to_string(launch.threads) + " threads where the text demands " +
           std::to_string(entry.threads);
  if (launch.blocks < 1 || launch.blocks > mostBlocks)
    return std::to_string(launch.blocks) + " blocks";
  if (entry.sharedBytes > mostDeclaredBytes)
    return std::to_string(entry.sharedBytes) + " bytes of shared memory";
  if (launch.arguments.size() != entry.parameters.size())
    return std::to_string(launch.arguments.size()) + " arguments for " +
           std::to_string(entry.parameters.size()) + " parameters";
  return findExcessRegisters(entry, launch);
}

} // namespace

Emulator::Emulator(const Module &module, Memory &memory) : module(module), memory(memory) {}

Report Emulator::run(const Launch &launch) {
  Report report;
  auto found = module.entries.find(launch.entry);
  if (found == module.entries.end()) {
    report.faults.push_back(launch.entry + ": no such entry");
    return report;
  }
  const Entry &entry = found->second;
  if (std::string excess = findExcess(entry, launch); !excess.empty()) {
    report.faults.push_back(launch.entry + ": cannot be launched with " + excess);
    return report;
  }
  Tables tables;
  for (const Table &table : module.tables)
    tables[table.address] = &table;
  std::vector<uint32_t> order = launch.order;
  if (order.empty()) {
    order.resize(launch.blocks);
    std::iota(order.begin(), order.end(), 0);
  }
  memory.beginLaunch();
  for (uint32_t block : order)
    if (auto fault = Block(entry, launch, block, tables, memory, report.counts).run()) {
      report.faults.push_back(*fault);
      break;
    }
  return report;
}

} // namespace dlc::ptx
