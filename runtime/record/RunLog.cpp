#include "runtime/record/RunLog.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/AtomicFile.h"
#include "runtime/record/TableText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <tuple>

namespace dlc::rt {

/// What was written is on disk.
static void flushed(std::ofstream &stream, const std::string &path) {
  if (!stream.flush())
    throw Error(ErrorCode::Runtime, "cannot write '" + path + "': " + std::strerror(errno));
}

static void writeWhole(const std::string &path, const std::string &text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

//===- Records of earlier starts --------------------------------------------------------------===//

namespace {

/// What becomes of a line. Whole epochs and overrides that are told anew replace the old ones.
enum class Fate : uint8_t { Kept, Replaced, Repeated, Damaged };

/// The lines of one file, for a run that has done so many steps and whole epochs.
class EarlierRecords {
public:
  EarlierRecords(int64_t steps, int64_t wholeEpochs) : steps(steps), wholeEpochs(wholeEpochs) {}

  void read(const std::string &path);
  /// What is to be said of the file. A copy may have begun late.
  std::vector<std::string> notes(const std::string &path, bool isCopy) const;

  std::vector<Record> kept;

private:
  Fate fateOf(const Record &record) const;

  int64_t steps, wholeEpochs;
  int64_t repeated = 0;
  std::vector<int64_t> damagedLines;          // counted from 1
  std::vector<int64_t> toldSteps, toldEpochs; // in the order of the file
};

} // namespace

static std::optional<int64_t> numberOf(const Record &record, const char *key) {
  auto value = record.find(key);
  if (value == record.end() || !value->is_number_integer())
    return std::nullopt;
  return value->get<int64_t>();
}

Fate EarlierRecords::fateOf(const Record &record) const {
  if (!record.is_object() || !numberOf(record, "step") || !record.contains("event") ||
      (record.contains("part") && !record["part"].is_boolean()))
    return Fate::Damaged;
  bool isEpoch = record["event"] == "epoch", isOverride = record["event"] == "override";
  if (isEpoch && !numberOf(record, "epoch"))
    return Fate::Damaged;
  int64_t at = *numberOf(record, "step");
  bool isPart = record.value("part", false);
  if (at > steps || (isEpoch && !isPart && *numberOf(record, "epoch") > wholeEpochs))
    return Fate::Repeated;
  return isPart || (isOverride && at == steps) ? Fate::Replaced : Fate::Kept;
}

void EarlierRecords::read(const std::string &path) {
  std::ifstream file(path);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    Record record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
    Fate fate = fateOf(record);
    if (fate == Fate::Damaged)
      damagedLines.push_back(number);
    repeated += fate == Fate::Repeated ? 1 : 0;
    if (fate != Fate::Kept)
      continue;
    if (record["event"] == "step")
      toldSteps.push_back(*numberOf(record, "step"));
    else if (record["event"] == "epoch")
      toldEpochs.push_back(*numberOf(record, "epoch"));
    kept.push_back(std::move(record));
  }
  if (!file.eof())
    throw Error(ErrorCode::Runtime, "cannot read '" + path + "': " + std::strerror(errno));
}

/// The numbers from `first` to `last` that are not among `told`: "3 to 5, 9"; empty if none.
static std::string gapsOf(std::vector<int64_t> told, int64_t first, int64_t last) {
  std::sort(told.begin(), told.end());
  told.push_back(last + 1);
  std::vector<std::string> gaps;
  for (int64_t number : told) {
    if (number > first)
      gaps.push_back(std::to_string(first) +
                     (number > first + 1 ? " to " + std::to_string(number - 1) : ""));
    first = std::max(first, number + 1);
  }
  return listed(gaps);
}

std::vector<std::string> EarlierRecords::notes(const std::string &path, bool isCopy) const {
  std::vector<std::string> notes;
  if (damagedLines.size() == 1) {
    notes.push_back("'" + path + ":" + std::to_string(damagedLines[0]) +
                    "' is no record of a run and is left out");
  } else if (!damagedLines.empty()) {
    std::vector<std::string> numbers;
    for (int64_t line : damagedLines)
      numbers.push_back(std::to_string(line));
    notes.push_back(std::to_string(damagedLines.size()) + " lines of '" + path +
                    "' are no records of a run and are left out: " + listed(numbers));
  }
  auto firstOf = [&](const std::vector<int64_t> &told, int64_t last) {
    if (!isCopy)
      return int64_t{1};
    return told.empty() ? last + 1 : *std::min_element(told.begin(), told.end());
  };
  for (const auto &[what, told, last] :
       {std::tuple("step ", &toldSteps, steps), {"epoch ", &toldEpochs, wholeEpochs}})
    if (std::string gaps = gapsOf(*told, firstOf(*told, last), last); !gaps.empty())
      notes.push_back("'" + path + "' lacks the records of " + what + gaps);
  if (repeated > 0)
    notes.push_back(std::to_string(repeated) + (repeated == 1 ? " record" : " records") + " in '" +
                    path + "' of what follows step " + std::to_string(steps) +
                    (repeated == 1 ? " is" : " are") + " cut: the run goes on from there");
  return notes;
}

//===- RunLog ---------------------------------------------------------------------------------===//

/// Drops what a run will tell again from a file, which is the old one or the new one at any time.
void RunLog::keep(const std::string &path, int64_t steps, int64_t wholeEpochs) {
  bool isCopy = !files.empty();
  EarlierRecords records(steps, wholeEpochs);
  records.read(path);
  std::string text;
  for (const Record &record : records.kept) {
    text += jsonText(record) + '\n';
    if (!isCopy && record["event"] == "epoch")
      epochs.push_back(record);
  }
  std::vector<std::string> notes = records.notes(path, isCopy);
  found.insert(found.end(), notes.begin(), notes.end());
  writeWhole(path, text);
}

RunLog::RunLog(const std::string &directory, const std::string &copy, int64_t steps,
               int64_t wholeEpochs)
    : directory(directory), events(directory, steps), table{directory + "/log.csv", {}} {
  std::vector<std::string> paths = {directory + "/log.jsonl"};
  if (!copy.empty())
    paths.push_back(copy);
  for (const std::string &path : paths) {
    // Devices and pipes hold nothing that is to be kept.
    std::error_code ignored;
    if (steps > 0 && std::filesystem::is_regular_file(path, ignored))
      keep(path, steps, wholeEpochs);
    else if (steps > 0 && files.empty())
      found.push_back("there is no '" + path + "' of the steps up to " + std::to_string(steps));
    File &file =
        files.emplace_back(path, std::ofstream(path, steps > 0 ? std::ios::app : std::ios::trunc));
    flushed(file.stream, path);
  }
}

void RunLog::write(const Record &record) {
  for (File &file : files) {
    file.stream << jsonText(record) << '\n';
    flushed(file.stream, file.path);
  }
}

/// Figures of the record whose names begin with `prefix`.
static EventFile::Scalars scalarsOf(const Record &record, const std::string &prefix) {
  EventFile::Scalars scalars;
  for (const auto &[key, value] : record.items())
    if (value.is_number() && key != "step" && key != "epoch" && key.starts_with(prefix))
      scalars.emplace_back(key, value.get<double>());
  return scalars;
}

void RunLog::step(const Record &record) {
  events.write(record["step"], scalarsOf(record, ""));
  write(record);
}

void RunLog::overridden(const Record &record) { write(record); }

/// The last part of a path.
static std::string nameOf(const std::string &directory) {
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void RunLog::epoch(const Record &record) {
  // The events of the steps hold the training figures already.
  EventFile::Scalars validation = scalarsOf(record, "val_");
  if (!validation.empty() && !record.value("part", false))
    events.write(record["step"], validation);
  events.flush();
  epochs.push_back(record);
  write(record);
  writeTable();
  writeWhole(directory + "/loss.svg", lossPicture(nameOf(directory), epochs));
}

/// A line of the table: cell(name) of each column.
template <typename Cell> static std::string rowOf(const Record &columns, Cell cell) {
  std::string row;
  for (const auto &[name, value] : columns.items())
    if (name != "event")
      row += cell(name) + ',';
  row.back() = '\n'; // there is a step
  return row;
}

static std::string rowOf(const Record &columns, const Record &record) {
  return rowOf(columns, [&](const std::string &name) {
    std::string text = jsonText(record.value(name, Record()));
    return text == "null" ? std::string() : text; // NaN dumps as null
  });
}

/// Adds the last epoch; at the first one of a start all of them, since the table that is there may
/// hold what is told again.
void RunLog::writeTable() {
  const Record &columns = epochs.front();
  if (table.stream.is_open()) {
    table.stream << rowOf(columns, epochs.back());
    return flushed(table.stream, table.path);
  }
  std::string text = rowOf(columns, [](const std::string &name) { return name; });
  for (const Record &record : epochs)
    text += rowOf(columns, record);
  writeWhole(table.path, text);
  table.stream.open(table.path, std::ios::app);
}

} // namespace dlc::rt
