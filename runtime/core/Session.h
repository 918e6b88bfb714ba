// An artifact loaded on a device: arenas, kernels and programs, ready to replay.
//
// Phases: the constructor verifies, compares schedule hashes over ranks, allocates and prefaults
// every arena but that of sums, rebuilds every kernel and initialises the variables; `run` only
// launches. Not thread-safe: one compute thread makes all calls, except that another thread may
// fill `input(..., slot)` while a program runs on the other slot. A run has the inputs of its slot
// until its results or outputs were read.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Formula.h"
#include "runtime/core/Arenas.h"
#include "runtime/core/ControlPlane.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlc::rt {

struct SessionOptions {
  unsigned threads = 0; // 0: min(planned threads, cores / local ranks)
  uint64_t seed = 0;    // for initialisers
  /// Makes the device; by default the back end of the artifact's target does.
  std::function<std::unique_ptr<Device>(const artifact::Target &, unsigned threads, ControlPlane &)>
      makeDevice = nullptr;
  unsigned loaderThreads = 1; // that prepare inputs while programs run
  bool oneByOne = false;      // to find the instruction that fails, see RunArguments
};

class Session {
public:
  Session(const Artifact &artifact, ControlPlane &control, const SessionOptions &options);
  ~Session();

  const Artifact &artifact() const;
  ControlPlane &control() const;
  unsigned threads() const;
  unsigned loaderThreads() const;
  /// What loading was spent on: names and seconds.
  const std::vector<std::pair<std::string, double>> &startPhases() const;
  /// Device and libraries, as far as the bits of results depend on them; the same on all ranks.
  std::string platform() const;
  /// What had to be loaded otherwise than planned, one line each.
  std::vector<std::string> notices() const;

  /// Draws all variables' start values anew. Called by the constructor; slots are set to their
  /// constants.
  void initialize(uint64_t seed);

  /// Logical row-major f32 copy of a variable, whatever its layout; throws if there is none of this
  /// name or the count differs. A parameter is written with its copies.
  std::vector<float> read(const std::string &variable) const;
  /// The same, into vectors that keep their memory from one call to the next; `scratch` is any.
  void read(const std::string &variable, std::vector<float> &values,
            std::vector<std::byte> &scratch) const;
  void write(const std::string &variable, std::span<const float> values);
  /// Hash of a variable's memory, padding included: equal on all ranks after every step.
  uint64_t fingerprint(const std::string &variable) const;
  /// False if an element of a float variable is infinite or not a number.
  bool isFinite(const std::string &variable) const;
  /// Host-written scalar (lr, step, seed, inverse_world, first_row, valid_rows); a scalar that the
  /// model lacks is ignored.
  void setScalar(const std::string &name, double value);
  void setScalar(const std::string &name, int64_t value);

  /// Where the host writes an input of a program for one of the two input arenas, in the input's
  /// physical type and layout.
  std::span<std::byte> input(const std::string &program, const std::string &name, unsigned slot);

  /// Has the device keep copies of arrays of the host's of these sizes, if it has use and room for
  /// them, so that inputs need not be staged. Once, before rows(); returns the bytes set aside.
  uint64_t keepArrays(std::span<const uint64_t> sizes);
  /// Executable::rows of the input of a slot.
  std::span<ArrayRow> rows(const std::string &program, const std::string &name, unsigned slot);

  /// Lets steps of a program have several micro-batches: allocates the arena of sums, once, and
  /// returns its bytes. Throws Error(BadInput) if the program cannot.
  uint64_t accumulate(const std::string &program);
  /// Replays the program once on the inputs of `slot`, or, after accumulate(), its part for one
  /// micro-batch: the last one updates variables. results() are then valid until the next run on
  /// the slot, and output() until the next run.
  void run(const std::string &program, unsigned slot, uint64_t step, MicroBatch part = {});
  /// Losses and metrics of this rank in the last run of the program on the slot, in the artifact's
  /// order of its non-output results.
  std::vector<Pair> results(const std::string &program, unsigned slot) const;
  /// False if all runs of the program have ended.
  bool isRunning(const std::string &program) const;
  /// Logical row-major f32 copy of an output of the program.
  std::vector<float> output(const std::string &program, const std::string &name) const;

  /// True if run() returns before the program has run, so that the next run can be started
  /// meanwhile; but traced runs are waited for.
  bool runsAhead() const;
  /// When set, every instruction of the following runs is appended.
  void trace(std::vector<TraceEvent> *events);

  /// Bytes allocated for arenas, which equals the sum planned in the artifact, without sums as long
  /// as nothing accumulates, and for what all-reduces of several ranks work in beside them.
  uint64_t arenaBytes() const;
  /// Which arenas the kernel put on huge pages.
  std::vector<ArenaPages> arenaPages() const;
  /// Resident bytes of this process before any arena was allocated.
  uint64_t residentBefore() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace dlc::rt
