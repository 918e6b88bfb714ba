#include "runtime/record/RunLog.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/AtomicFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

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

/// True for what a run that has done so many steps and whole epochs will not tell again; false for
/// what it cannot have told.
static bool isKept(const Record &record, int64_t steps, int64_t wholeEpochs) {
  auto number = [&](const char *key) -> std::optional<int64_t> {
    auto value = record.find(key);
    if (value == record.end() || !value->is_number_integer())
      return std::nullopt;
    return value->get<int64_t>();
  };
  if (!record.is_object() || !number("step") || !record.contains("event") ||
      (record.contains("part") && record["part"] != false))
    return false;
  int64_t at = *number("step");
  const Record &event = record["event"];
  if (event == "epoch")
    return at <= steps && number("epoch") && *number("epoch") <= wholeEpochs;
  return at < steps || (at == steps && event != "override");
}

/// Drops what a run will tell again from a file, which is the old one or the new one at any time.
void RunLog::keep(const std::string &path, int64_t steps, int64_t wholeEpochs) {
  std::string text;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Record record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!isKept(record, steps, wholeEpochs))
      continue;
    text += record.dump() + '\n';
    if (files.empty() && record["event"] == "epoch")
      epochs.push_back(record);
  }
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
    File &file =
        files.emplace_back(path, std::ofstream(path, steps > 0 ? std::ios::app : std::ios::trunc));
    flushed(file.stream, path);
  }
}

void RunLog::write(const Record &record) {
  for (File &file : files) {
    file.stream << record.dump() << '\n';
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
  // What an epoch says of training its steps have said already.
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
    std::string text = record.value(name, Record()).dump();
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
