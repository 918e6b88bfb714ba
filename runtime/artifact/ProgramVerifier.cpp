// One walk over the instructions in artifact order. That whatever touches the same memory is
// ordered, on devices whose streams run side by side, too, is OrderProof's to say.

#include "runtime/artifact/Faults.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/OrderProof.h"
#include "runtime/artifact/WrittenRanges.h"

#include <map>
#include <optional>
#include <set>

namespace dlc::rt {
namespace {

class ProgramVerifier {
public:
  ProgramVerifier(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                  uint32_t index, Faults &faults)
      : root(root), program(*root.programs()->Get(index)), buffers(buffers),
        index(static_cast<int32_t>(index)), faults(faults) {}

  void run();

private:
  enum class State : uint8_t { Idle, Started, Done };

  void verifyCollectives();
  void verifyInstruction(uint32_t at, const artifact::Instruction &instruction);
  void verifyDispatch(const artifact::Dispatch &dispatch);
  void verifyApart(const artifact::Kernel &kernel, uint32_t written, uint32_t other);
  void verifyAligned(const artifact::Kernel &kernel, const artifact::Dispatch &dispatch);
  void verifyStart(uint32_t collective);
  void verifyWait(uint32_t collective);
  void verifyAccumulate(const artifact::Accumulate &accumulate);
  void verifyRecall(const artifact::Recall &recall);
  void verifyUpload(const artifact::Upload &upload);
  void verifyDownload(uint32_t result);
  void findHostValues();
  void findPadding();
  void verifyMembers();

  /// Says no if the program has no such buffer; reports that, and one that is not live.
  bool verifyLive(uint32_t buffer);
  /// The same, and reports what the buffer does not hold yet, or holds no longer.
  bool verifyContents(uint32_t buffer, artifact::Access access,
                      std::optional<WrittenRanges::Part> part = std::nullopt);
  /// The same, and reports what nothing orders before the access.
  bool verifyUse(uint32_t buffer, artifact::Access access,
                 std::optional<WrittenRanges::Part> part = std::nullopt);
  /// Reports an earlier instruction that nothing orders before this one.
  void verifyOrder(uint32_t buffer, std::optional<uint32_t> earlier);
  ArenaRange rangeOf(uint32_t buffer) const {
    return {buffers[buffer].arena, buffers[buffer].begin, buffers[buffer].end};
  }
  /// What it is a view of, or itself.
  uint32_t rootOf(uint32_t buffer) const;
  bool isSum(uint32_t buffer) const;
  /// A buffer in the arena of gradients that is no view.
  bool isBucket(uint32_t buffer) const;
  bool isVisible(uint32_t buffer) const { return isVisibleIn(index, buffers, buffer); }
  bool isLiveHere(uint32_t buffer) const {
    return buffers[buffer].liveBegin <= position && position <= buffers[buffer].liveEnd;
  }
  void fault(const std::string &what) {
    faults.add("program '" + program.name()->str() + "' instruction " + std::to_string(position),
               what);
  }
  void faultInSignature(const std::string &what) {
    faults.add("program '" + program.name()->str() + "'", what);
  }

  const artifact::Artifact &root;
  const artifact::Program &program;
  const std::vector<CheckedBuffer> &buffers;
  int32_t index;
  Faults &faults;
  uint32_t position = 0;
  /// Whether the present instruction is of phase Count.
  bool counts() const {
    return program.instructions()->Get(position)->phase() == artifact::Phase::Count;
  }

  struct Flight {
    State state = State::Idle;
    bool counts = false;
  };
  std::vector<Flight> collectives;
  std::set<uint32_t> recorded; // events
  /// By buffer: what the host gives, and whether it has gone up.
  struct HostValue {
    bool isInput = false, isThere = false;
  };
  std::map<uint32_t, HostValue> hostValues;
  std::set<uint32_t> states;                 // buffers of variables that any phase may change
  std::vector<bool> downloaded;              // by result
  std::map<uint32_t, WrittenRanges> written; // by buffers that are no views, bytes of the arena
  std::map<uint32_t, uint64_t> padding;      // bytes, by bucket
  uint64_t carried = 0;                      // bytes in collectives, padding apart
  std::set<uint32_t> taken;                  // buffers that are no views, whose value the host has
  std::set<uint32_t> sums;                   // that an instruction has
  std::map<uint32_t, uint32_t> sumOf;        // by bucket
  std::map<uint32_t, bool> summed;       // buckets whose collective has not started: if it counts
  std::set<uint32_t> awaiting;           // buckets that have not been recalled
  std::set<uint32_t> ofPass;             // what is no view and what does not count has written
  std::set<uint32_t> adding, dispatched; // kernels
  StepOrderProof order;
};

void ProgramVerifier::verifyCollectives() {
  collectives.resize(countOf(program.collectives()));
  for (uint32_t i = 0; i < collectives.size(); ++i) {
    const artifact::Collective *collective = program.collectives()->Get(i);
    std::string name = "collective " + std::to_string(i);
    if (collective->kind() > artifact::CollectiveKind::MAX)
      faultInSignature(name + " has an unknown kind");
    if (collective->wire() != artifact::DType::F32 && collective->wire() != artifact::DType::BF16)
      faultInSignature(name + " has a wire type other than f32 and bf16");
    if (!isVisible(collective->buffer()))
      faultInSignature(name + " has no buffer");
    else if (buffers[collective->buffer()].elements != collective->elements() ||
             root.buffers()->Get(collective->buffer())->type()->dtype() != artifact::DType::F32)
      faultInSignature(name + " is not as large as its buffer or not f32");
    else if (!isBucket(collective->buffer()))
      faultInSignature(name + " is not of a whole buffer in the arena of gradients");
  }
}

void ProgramVerifier::verifyOrder(uint32_t buffer, std::optional<uint32_t> earlier) {
  if (!earlier)
    return;
  std::string name = "buffer " + std::to_string(buffer);
  if (program.instructions()->Get(*earlier)->operation_type() ==
      artifact::Operation::CollectiveStart)
    fault(name + " is in flight in a collective");
  else
    fault(name + " meets memory of instruction " + std::to_string(*earlier) +
          ", and nothing orders the two");
}

bool ProgramVerifier::verifyLive(uint32_t buffer) {
  if (!isVisible(buffer)) {
    fault("no buffer " + std::to_string(buffer));
    return false;
  }
  if (!isLiveHere(buffer))
    fault("buffer " + std::to_string(buffer) + " is not live here");
  return true;
}

uint32_t ProgramVerifier::rootOf(uint32_t buffer) const {
  int32_t source = root.buffers()->Get(buffer)->alias_of();
  return source < 0 ? buffer : static_cast<uint32_t>(source);
}

bool ProgramVerifier::isSum(uint32_t buffer) const {
  return root.arenas()->Get(buffers[buffer].arena)->kind() == artifact::ArenaKind::Sums;
}

bool ProgramVerifier::isBucket(uint32_t buffer) const {
  return rootOf(buffer) == buffer &&
         root.arenas()->Get(buffers[buffer].arena)->kind() == artifact::ArenaKind::Gradients;
}

/// Between the slices of a bucket and behind them, nothing is ever written.
void ProgramVerifier::findPadding() {
  std::map<uint32_t, std::vector<WrittenRanges::Range>> views; // by bucket
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (isVisible(i) && rootOf(i) != i && isBucket(rootOf(i)))
      views[rootOf(i)].emplace_back(buffers[i].begin, buffers[i].end);
  for (auto &[bucket, ranges] : views)
    written[bucket] =
        WrittenRanges::paddingOf({buffers[bucket].begin, buffers[bucket].end}, std::move(ranges));
  for (const auto &[bucket, ranges] : written)
    padding[bucket] = ranges.total();
}

bool ProgramVerifier::verifyContents(uint32_t buffer, artifact::Access access,
                                     std::optional<WrittenRanges::Part> part) {
  if (!verifyLive(buffer))
    return false;
  if (isSum(buffer))
    fault("buffer " + std::to_string(buffer) + " is a sum's, of which not every run has one");
  if (summed.contains(rootOf(buffer)))
    fault("buffer " + std::to_string(buffer) + " is used after it was added to its sum");
  if (awaiting.contains(rootOf(buffer)))
    fault("buffer " + std::to_string(buffer) + " is used before it is recalled from its sum");
  auto isMissing = [&](uint32_t value) {
    auto given = hostValues.find(value);
    return given != hostValues.end() && !given->second.isThere;
  };
  if (isMissing(buffer) || isMissing(rootOf(buffer)))
    fault("buffer " + std::to_string(buffer) + " is used before the host's value is there");
  ArenaRange range = rangeOf(buffer);
  WrittenRanges &before = written[rootOf(buffer)];
  bool isKept = buffers[rootOf(buffer)].program < 0;
  if (access != artifact::Access::Write && !isKept && !before.covers({range.begin, range.end}))
    fault("reads buffer " + std::to_string(buffer) + ", which nothing has written");
  if (access != artifact::Access::Write && counts() &&
      (isKept ? !hostValues.contains(buffer) : ofPass.contains(rootOf(buffer))))
    fault("counts what buffer " + std::to_string(buffer) +
          " holds, which does not depend on inputs alone");
  if (access != artifact::Access::Read) {
    if (!counts() &&
        program.instructions()->Get(position)->operation_type() != artifact::Operation::Upload)
      ofPass.insert(rootOf(buffer));
    if (isKept && !isOncePerStep(*program.instructions()->Get(position)) &&
        !hostValues.contains(buffer) && !states.contains(buffer))
      fault("writes buffer " + std::to_string(buffer) +
            ", a variable's that the optimizer alone may change");
    if (isKept && before.meets({range.begin, range.end}))
      fault("writes buffer " + std::to_string(buffer) + ", a variable's, a second time in a step");
    if (part)
      before.addPart({range.begin, range.end}, *part);
    else
      before.add({range.begin, range.end});
    if (taken.contains(rootOf(buffer)))
      fault("writes buffer " + std::to_string(buffer) + ", which the host has taken");
  }
  return true;
}

bool ProgramVerifier::verifyUse(uint32_t buffer, artifact::Access access,
                                std::optional<WrittenRanges::Part> part) {
  if (!verifyContents(buffer, access, part))
    return false;
  verifyOrder(buffer, access == artifact::Access::Read ? order.read(rangeOf(buffer))
                                                       : order.write(rangeOf(buffer)));
  return true;
}

/// A kernel writes over nothing else that it uses. A generated one may work in place, on the same
/// bytes.
void ProgramVerifier::verifyApart(const artifact::Kernel &kernel, uint32_t written,
                                  uint32_t other) {
  if (!isVisible(written) || !isVisible(other))
    return; // which has been reported
  ArenaRange a = rangeOf(written), b = rangeOf(other);
  bool meet = a.arena == b.arena && a.begin < b.end && b.begin < a.end;
  bool isInPlace =
      kernel.kind() == artifact::KernelKind::Generated && a.begin == b.begin && a.end == b.end;
  if (meet && !isInPlace)
    fault("kernel '" + kernel.name()->str() + "' writes buffer " + std::to_string(written) +
          " over buffer " + std::to_string(other) + ", which it uses otherwise");
}

/// Generated kernels of a GPU access whole vectors, library kernels their workspace as they like.
void ProgramVerifier::verifyAligned(const artifact::Kernel &kernel,
                                    const artifact::Dispatch &dispatch) {
  constexpr uint64_t vectorBytes = 16, lineBytes = 64;
  uint32_t count = countOf(dispatch.buffers());
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t buffer = dispatch.buffers()->Get(i);
    if (!isVisible(buffer))
      continue;
    bool isWorkspace = kernel.kind() == artifact::KernelKind::Library && i + 1 == count &&
                       root.buffers()->Get(buffer)->type()->dtype() == artifact::DType::U8;
    uint64_t alignment = isWorkspace ? lineBytes : kernel.launch() ? vectorBytes : 1;
    if (buffers[buffer].begin % alignment != 0)
      fault("buffer " + std::to_string(buffer) + " of kernel '" + kernel.name()->str() +
            "' is at no multiple of " + std::to_string(alignment) + " bytes");
  }
}

void ProgramVerifier::verifyDispatch(const artifact::Dispatch &dispatch) {
  if (dispatch.kernel() >= countOf(root.kernels()))
    return fault("no kernel " + std::to_string(dispatch.kernel()));
  dispatched.insert(dispatch.kernel());
  const artifact::Kernel *kernel = root.kernels()->Get(dispatch.kernel());
  if (countOf(dispatch.buffers()) != countOf(kernel->operands()))
    return fault("kernel '" + kernel->name()->str() + "' takes " +
                 std::to_string(countOf(kernel->operands())) + " buffers, got " +
                 std::to_string(countOf(dispatch.buffers())));
  // A kernel whose accesses are fewer has been reported.
  auto accessOf = [&](uint32_t operand) {
    return operand < countOf(kernel->access()) ? kernel->access()->Get(operand)
                                               : artifact::Access::ReadWrite;
  };
  auto partOf = [&](uint32_t buffer) -> std::optional<WrittenRanges::Part> {
    if (kernel->part() == 0 || !isVisible(buffer) || kernel->part() > buffers[buffer].elements)
      return std::nullopt; // which the types refuse
    uint64_t element = sizeOf(root.buffers()->Get(buffer)->type()->dtype());
    return WrittenRanges::Part{dispatch.kernel(), kernel->part() * element};
  };
  for (bool writes : {false, true}) // what it reads was there before
    for (uint32_t i = 0; i < countOf(dispatch.buffers()); ++i) {
      uint32_t buffer = dispatch.buffers()->Get(i);
      if ((accessOf(i) == artifact::Access::Write) == writes &&
          verifyUse(buffer, accessOf(i), partOf(buffer)) &&
          !sameType(*root.buffers()->Get(buffer)->type(), *kernel->operands()->Get(i)))
        fault("buffer " + std::to_string(buffer) + " is not of the type of operand " +
              std::to_string(i) + " of kernel '" + kernel->name()->str() + "'");
    }
  for (uint32_t i = 0; i < countOf(dispatch.buffers()); ++i)
    for (uint32_t k = 0; k < countOf(dispatch.buffers()); ++k)
      if (i != k && accessOf(i) != artifact::Access::Read)
        verifyApart(*kernel, dispatch.buffers()->Get(i), dispatch.buffers()->Get(k));
  verifyAligned(*kernel, dispatch);
  for (uint32_t i = 0; i < countOf(dispatch.variables()); ++i)
    if (uint32_t variable = dispatch.variables()->Get(i); variable >= countOf(root.variables()))
      fault("computes for variable " + std::to_string(variable) + ", which there is not");
}

void ProgramVerifier::verifyStart(uint32_t collective) {
  if (collective >= collectives.size() || collectives[collective].state != State::Idle)
    return fault("starts collective " + std::to_string(collective) + ", unknown or started before");
  collectives[collective] = {State::Started, counts()};
  uint32_t buffer = program.collectives()->Get(collective)->buffer();
  auto sum = summed.find(buffer);
  if (sum == summed.end() ? counts() : sum->second != counts())
    fault("starts collective " + std::to_string(collective) +
          (counts() ? ", which counts, without a sum of that phase"
                    : ", whose sum is of phase Count"));
  summed.erase(buffer);
  if (!verifyContents(buffer, artifact::Access::ReadWrite))
    return;
  carried += buffers[buffer].end - buffers[buffer].begin - padding[buffer];
  ofPass.insert(buffer); // what all micro-batches and ranks sum up is not one's to count
  verifyOrder(buffer, order.start(collective, rangeOf(buffer)));
}

void ProgramVerifier::verifyWait(uint32_t collective) {
  if (collective >= collectives.size() || collectives[collective].state != State::Started)
    return fault("waits for collective " + std::to_string(collective) + ", which is not under way");
  collectives[collective].state = State::Done;
  if (counts() != collectives[collective].counts)
    fault("waits for collective " + std::to_string(collective) + ", which is of another phase");
  uint32_t buffer = program.collectives()->Get(collective)->buffer();
  if (counts())
    awaiting.insert(buffer);
  if (!isVisible(buffer)) // which its start has reported
    return;
  order.finish(collective);
  verifyLive(buffer);
}

/// For devices both are written: the sum when the collective has run, the bucket after that.
void ProgramVerifier::verifyRecall(const artifact::Recall &recall) {
  if (!counts())
    fault("recalls a sum in another phase than Count");
  auto sum = sumOf.find(recall.bucket());
  if (!awaiting.contains(recall.bucket()) || sum == sumOf.end() || sum->second != recall.sum())
    return fault("recalls buffer " + std::to_string(recall.bucket()) + " from buffer " +
                 std::to_string(recall.sum()) + ", which is not its sum over all ranks");
  awaiting.erase(recall.bucket());
  if (verifyUse(recall.bucket(), artifact::Access::Write) && verifyLive(recall.sum()))
    verifyOrder(recall.sum(), order.write(rangeOf(recall.sum())));
}

/// What is taken for padding may be a slice that nothing writes, so the buckets are as full as
/// their members are large, whose gradients may lack the lanes that a variable's layout pads.
void ProgramVerifier::verifyMembers() {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < countOf(program.collectives()); ++i)
    for (uint32_t k = 0; k < countOf(program.collectives()->Get(i)->members()); ++k)
      names.insert(program.collectives()->Get(i)->members()->Get(k)->string_view());
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < countOf(root.variables()); ++i)
    if (const artifact::Variable *variable = root.variables()->Get(i);
        names.contains(variable->name()->string_view()) && variable->buffer() < buffers.size() &&
        buffers[variable->buffer()].valid) {
      uint64_t elements = 1;
      for (int64_t extent : readShape(*root.buffers()->Get(variable->buffer())->type()))
        elements *= static_cast<uint64_t>(extent);
      bytes += elements * sizeof(float);
    }
  if (carried < bytes)
    faultInSignature("sums " + std::to_string(carried) + " bytes over ranks for members of " +
                     std::to_string(bytes));
}

void ProgramVerifier::findHostValues() {
  for (uint32_t i = 0; i < countOf(program.inputs()); ++i)
    hostValues[program.inputs()->Get(i)->buffer()] = {true};
  for (uint32_t i = 0; i < countOf(root.variables()); ++i)
    if (const artifact::Variable *variable = root.variables()->Get(i);
        variable->kind() == artifact::VariableKind::Scalar)
      hostValues[variable->buffer()] = {false};
    else if (variable->kind() == artifact::VariableKind::State)
      states.insert(variable->buffer());
}

void ProgramVerifier::verifyAccumulate(const artifact::Accumulate &accumulate) {
  uint32_t bucket = accumulate.bucket(), sum = accumulate.sum();
  if (accumulate.kernel() >= countOf(root.kernels()))
    return fault("no kernel " + std::to_string(accumulate.kernel()));
  if (!verifyUse(bucket, artifact::Access::ReadWrite) || !verifyLive(sum))
    return;
  if (!isBucket(bucket))
    return fault("adds up buffer " + std::to_string(bucket) + ", which is no bucket");
  if (!isSum(sum) || rootOf(sum) != sum || !sums.insert(sum).second)
    return fault("adds up in buffer " + std::to_string(sum) + ", which is no sum of its own");
  if (buffers[sum].liveBegin > 0 ||
      uint64_t{buffers[sum].liveEnd} + 1 < countOf(program.instructions()))
    fault("adds up in buffer " + std::to_string(sum) + ", which does not live throughout");
  verifyOrder(sum, order.write(rangeOf(sum)));
  summed[bucket] = counts();
  sumOf[bucket] = sum;
  adding.insert(accumulate.kernel());
  const artifact::Kernel &kernel = *root.kernels()->Get(accumulate.kernel());
  auto takes = [&](uint32_t operand, uint32_t buffer) {
    bool isRead = kernel.access()->Get(operand) == artifact::Access::Read;
    return isRead == (operand < 2) &&
           sameType(*kernel.operands()->Get(operand), *root.buffers()->Get(buffer)->type());
  };
  bool fits = countOf(kernel.operands()) == 3 && countOf(kernel.access()) == 3;
  for (uint32_t operand = 0; fits && operand < 3; ++operand)
    fits = takes(operand, bucket) && takes(operand, sum);
  if (!fits)
    fault("adds up by kernel '" + kernel.name()->str() + "', which does not take buffer " +
          std::to_string(bucket) + " and its sum");
}

void ProgramVerifier::verifyUpload(const artifact::Upload &upload) {
  size_t inputs = 0;
  for (uint32_t i = 0; i < countOf(upload.buffers()); ++i) {
    uint32_t buffer = upload.buffers()->Get(i);
    auto given = hostValues.find(buffer);
    if (given == hostValues.end() || given->second.isThere) {
      fault("uploads buffer " + std::to_string(buffer) +
            ", which holds nothing of the host's or was uploaded before");
      continue;
    }
    given->second.isThere = true;
    inputs += given->second.isInput;
    verifyUse(buffer, artifact::Access::Write);
  }
  if (inputs != 0 && inputs != countOf(upload.buffers()))
    fault("uploads inputs and scalars in one");
}

void ProgramVerifier::verifyDownload(uint32_t result) {
  if (result >= downloaded.size())
    return fault("no such result");
  if (downloaded[result])
    fault("downloads result " + std::to_string(result) + " a second time");
  downloaded[result] = true;
  const auto *places = program.results()->Get(result)->buffers();
  for (uint32_t i = 0; i < countOf(places); ++i)
    if (verifyUse(places->Get(i), artifact::Access::Read))
      taken.insert(rootOf(places->Get(i)));
}

void ProgramVerifier::verifyInstruction(uint32_t at, const artifact::Instruction &instruction) {
  position = at;
  if (instruction.stream() > artifact::Stream::MAX || instruction.phase() > artifact::Phase::MAX)
    return fault("unknown stream or phase");
  order.begin(at, instruction.stream(), instruction.operation_type(), instruction.phase());
  switch (instruction.operation_type()) {
  case artifact::Operation::Dispatch:
    return verifyDispatch(*instruction.operation_as_Dispatch());
  case artifact::Operation::CollectiveStart:
    return verifyStart(instruction.operation_as_CollectiveStart()->collective());
  case artifact::Operation::CollectiveWait:
    return verifyWait(instruction.operation_as_CollectiveWait()->collective());
  case artifact::Operation::RecordEvent: {
    uint32_t event = instruction.operation_as_RecordEvent()->event();
    if (event >= program.events() || !recorded.insert(event).second)
      return fault("records event " + std::to_string(event) + ", unknown or recorded before");
    return order.record(event);
  }
  case artifact::Operation::WaitEvent: {
    uint32_t event = instruction.operation_as_WaitEvent()->event();
    if (!recorded.contains(event))
      return fault("waits for event " + std::to_string(event) + " before it is recorded");
    return order.wait(event);
  }
  case artifact::Operation::Copy: {
    const artifact::Copy *copy = instruction.operation_as_Copy();
    if (verifyUse(copy->source(), artifact::Access::Read) &&
        verifyUse(copy->destination(), artifact::Access::Write) &&
        !sameType(*root.buffers()->Get(copy->source())->type(),
                  *root.buffers()->Get(copy->destination())->type()))
      fault("copies between different types");
    return;
  }
  case artifact::Operation::Accumulate:
    return verifyAccumulate(*instruction.operation_as_Accumulate());
  case artifact::Operation::Recall:
    return verifyRecall(*instruction.operation_as_Recall());
  case artifact::Operation::Upload:
    return verifyUpload(*instruction.operation_as_Upload());
  case artifact::Operation::Download:
    return verifyDownload(instruction.operation_as_Download()->result());
  default:
    fault("unknown operation");
  }
}

void ProgramVerifier::run() {
  verifySignature(root, buffers, static_cast<uint32_t>(index), faults);
  verifyCollectives();
  findHostValues();
  findPadding();
  downloaded.resize(countOf(program.results()));
  for (uint32_t i = 0; i < countOf(program.instructions()) && !faults.full(); ++i)
    verifyInstruction(i, *program.instructions()->Get(i));
  for (uint32_t i = 0; i < collectives.size(); ++i)
    if (collectives[i].state != State::Done)
      faultInSignature("collective " + std::to_string(i) + " is never completed");
  // Each is recorded, so that there are no more than instructions.
  if (program.events() != recorded.size() && !faults.full())
    faultInSignature("has " + std::to_string(program.events()) + " events and records " +
                     std::to_string(recorded.size()));
  verifyMembers();
  for (const auto &[bucket, counts] : summed)
    faultInSignature("buffer " + std::to_string(bucket) +
                     " is added up, but no collective of it starts afterwards");
  for (uint32_t kernel : adding)
    if (dispatched.contains(kernel))
      faultInSignature("adds up by kernel " + std::to_string(kernel) + ", which it runs otherwise");
  for (uint32_t bucket : awaiting)
    faultInSignature("buffer " + std::to_string(bucket) + " is counted ahead and never recalled");
  for (uint32_t i = 0; i < downloaded.size(); ++i)
    if (!downloaded[i])
      faultInSignature("result " + std::to_string(i) + " is never downloaded");
}

} // namespace

void verifyProgram(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                   uint32_t index, Faults &faults) {
  ProgramVerifier(root, buffers, index, faults).run();
}

} // namespace dlc::rt
