// The text of an artifact's description.

#include "tools/dlc/InspectArtifact.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace dlc;
using nlohmann::ordered_json;

namespace {
/// "generated 784 x 256" is a launch of so many blocks of so many threads.
std::string implementationText(const ordered_json &dispatch) {
  std::string implementation = dispatch["implementation"];
  const ordered_json &launch = dispatch["launch"];
  if (launch.is_null())
    return implementation;
  return implementation + " " + launch["blocks"].dump() + " x " + launch["threads"].dump();
}

std::string number(double value, const char *format = "%.2f") {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string padded(const std::string &value, int width) {
  std::string result = value.substr(0, static_cast<size_t>(width));
  result.resize(static_cast<size_t>(width), ' ');
  return result + " ";
}

double mega(const ordered_json &value) { return value.get<double>() / 1e6; }

/// GFLOP, MB, forecast ms and those of the roofline, of a dispatch or a sum.
std::string amounts(const ordered_json &value) {
  const ordered_json &roofline = value["roofline_ns"];
  return number(mega(value["flops"]) / 1e3, "%8.3f") + number(mega(value["bytes"]), "%9.2f") +
         number(mega(value["nanoseconds"]), "%9.3f") +
         (roofline.is_null() ? "         -" : number(mega(roofline), "%10.3f"));
}

/// The choice, then the runner-up and the rest.
void printLayouts(const ordered_json &layouts, std::ostream &out) {
  const char *before = "layouts: activations ";
  for (const ordered_json &layout : layouts) {
    out << before << layout["family"].get<std::string>() << ", kernels and reorders "
        << number(mega(layout["nanoseconds"])) << " ms";
    if (int64_t exceptions = layout["exceptions"])
      out << " with " << exceptions << (exceptions == 1 ? " exception" : " exceptions");
    before = "; else ";
  }
  if (!layouts.empty())
    out << "\n";
}

/// Of the first operand that has another one than row-major: "nhwc" of "8x3x9x9xf32 nhwc".
std::string layoutText(const ordered_json &operands) {
  for (const std::string type : operands)
    if (size_t space = type.find(' '); space != std::string::npos)
      return type.substr(space + 1);
  return "-";
}

/// Of a kernel on a GPU: a thread's registers, a block's shared memory, the share of a
/// multiprocessor's threads that are resident, MB of workspace, the layout.
std::string launchText(const ordered_json &dispatch) {
  const ordered_json &launch = dispatch["launch"];
  auto column = [&](const char *key, double unit) {
    bool isKnown = !launch.is_null() && !launch[key].is_null() && launch[key] > 0;
    std::string value = isKnown ? number(launch[key].get<double>() * unit, "%.0f") : "-";
    return std::string(std::max<size_t>(8, value.size() + 1) - value.size(), ' ') + value;
  };
  double workspace = dispatch["workspace"];
  return column("registers", 1) + column("shared_bytes", 1) + column("occupancy", 100) +
         (workspace > 0 ? number(workspace / 1e6, "%11.2f") : "          -") + "  " +
         layoutText(dispatch["operands"]);
}

void printKernels(const ordered_json &program, std::ostream &out) {
  const ordered_json &dispatches = program["dispatches"];
  bool isOfGpu = std::ranges::any_of(
      dispatches, [](const ordered_json &dispatch) { return !dispatch["launch"].is_null(); });
  out << "  " << padded("layer", 28) << padded("kernel", 22) << padded("kind", 16)
      << padded("implementation", 30) << "   GFLOP       MB       ms  roofline"
      << (isOfGpu ? "    regs  shared   occ %  workspace  layout" : "") << "\n";
  for (const ordered_json &dispatch : dispatches)
    out << "  " << padded(dispatch["layer"], 28) << padded(dispatch["kernel"], 22)
        << padded(dispatch["category"], 16) << padded(implementationText(dispatch), 30)
        << amounts(dispatch) << (isOfGpu ? launchText(dispatch) : "") << "\n";
}

/// What the loader and the way to the device have to bring.
void printInputs(const ordered_json &program, std::ostream &out) {
  double bytes = program["input_bytes"], step = program["forecast"]["step_ns"],
         batch = program["batch"];
  if (bytes > 0 && step > 0)
    out << "  inputs: " << number(bytes / 1e6) << " MB a step, at the forecast "
        << grouped(std::llround(batch / step * 1e9)) << " rows/s, " << number(bytes / step)
        << " GB/s\n";
}

void printProgram(const ordered_json &program, std::ostream &out) {
  const ordered_json &forecast = program["forecast"];
  out << "\nprogram " << program["name"].get<std::string>() << ": batch " << program["batch"]
      << ", " << program["instructions"] << " instructions, "
      << number(mega(program["flops"]) / 1e3) << " GFLOP, " << number(mega(program["bytes_moved"]))
      << " MB moved\n";
  if (const ordered_json &tiling = program["tiling"]; !tiling.is_null())
    out << "  larger images by tiles that are exact " << tiling["overlap"].dump()
        << " pixels off their edges and start at multiples of " << tiling["alignment"].dump()
        << "\n";
  if (std::string untiled = program["untiled"]; !untiled.empty())
    out << "  images of this size only, as no tiles can be cut: " << untiled << "\n";
  printKernels(program, out);
  out << "  " << padded("sum over a step", 50) << padded("kind", 16) << padded("dispatches", 30)
      << "   GFLOP       MB       ms  roofline\n";
  for (const ordered_json &kind : program["kinds"])
    out << "  " << padded("", 50) << padded(kind["kind"], 16)
        << padded(std::to_string(kind["dispatches"].get<uint64_t>()), 30) << amounts(kind) << "\n";
  for (const ordered_json &dispatch : program["dispatches"])
    if (dispatch["recomputed"] > 0)
      out << "  " << dispatch["category"].get<std::string>() << " of "
          << dispatch["layer"].get<std::string>() << " runs again in "
          << number(mega(dispatch["nanoseconds"]), "%.3f") << " ms instead of keeping its result, "
          << number(mega(dispatch["recomputed"])) << " MB less at the peak\n";
  int index = 0;
  for (const ordered_json &bucket : program["buckets"])
    out << "  bucket " << index++ << ": " << number(mega(bucket["bytes"])) << " MB "
        << bucket["wire"].get<std::string>() << ", " << bucket["members"].size()
        << " tensors, started at " << number(mega(bucket["started_ns"])) << " ms, arrived at "
        << number(mega(bucket["arrived_ns"])) << " ms, exposed "
        << number(mega(bucket["exposed_ns"])) << " ms\n";
  out << "  forecast: compute " << number(mega(forecast["compute_ns"])) << " ms, communication "
      << number(mega(forecast["communication_ns"])) << " ms, of which exposed "
      << number(mega(forecast["exposed_ns"])) << " ms; step " << number(mega(forecast["step_ns"]))
      << " ms\n";
  printInputs(program, out);
}
} // namespace

void dlc::printDescription(const ordered_json &description, std::ostream &out) {
  const ordered_json &target = description["target"];
  out << description["model"].get<std::string>() << " for " << target["name"].get<std::string>()
      << " (" << target["library"].get<std::string>() << "), 1.." << target["threads"]
      << " threads per rank, " << target["precision"].get<std::string>() << ", math "
      << target["math"].get<std::string>() << "\n\n";
  for (const ordered_json &parameter : description["parameters"])
    out << "  " << padded(parameter["name"], 40) << padded(parameter["type"], 32)
        << grouped(parameter["elements"].get<int64_t>()) << "\n";
  out << "parameters: " << grouped(description["parameter_count"].get<int64_t>()) << "\n";
  if (const ordered_json &copies = description["copies"]; copies["count"] > 0)
    out << "kept in 16 bits, written with the update: " << copies["count"].get<uint64_t>()
        << " parameters, " << number(mega(copies["bytes"])) << " MB\n";
  out << "\n";
  const ordered_json &memory = description["memory"];
  for (const ordered_json &arena : memory["arenas"])
    out << "  " << padded(arena["kind"], 12) << number(mega(arena["bytes"]), "%10.2f") << " MB x "
        << arena["instances"] << ", lower bound " << number(mega(arena["lower_bound"]), "%10.2f")
        << " MB\n";
  double bound = std::max(1.0, memory["lower_bound"].get<double>());
  out << "memory: " << number(mega(memory["bytes"])) << " MB planned, lower bound "
      << number(mega(memory["lower_bound"])) << " MB, ratio "
      << number(memory["bytes"].get<double>() / bound, "%.3f") << "\n";
  printLayouts(description["layouts"], out);
  for (const ordered_json &program : description["programs"])
    printProgram(program, out);
}
