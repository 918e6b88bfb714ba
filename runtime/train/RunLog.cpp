#include "runtime/train/RunLog.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace dlc::rt {

static Error writeError(const std::string &path) {
  return Error(ErrorCode::Runtime, "cannot write '" + path + "': " + std::strerror(errno));
}

/// True for what a run that resumes after `step` will not tell again.
static bool isKept(const Record &record, int64_t step) {
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
      record.value("part", false))
    return false;
  int64_t at = record["step"];
  return at < step || (at == step && record.value("event", "") != "override");
}

RunLog::RunLog(const std::string &directory, const std::string &copy, int64_t firstStep)
    : directory(directory), events(directory, firstStep) {
  std::vector<std::string> paths = {directory + "/log.jsonl"};
  if (!copy.empty())
    paths.push_back(copy);
  for (const std::string &path : paths) {
    std::vector<Record> kept;
    if (firstStep > 0) {
      std::ifstream old(path);
      for (std::string line; std::getline(old, line);) {
        Record record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
        if (isKept(record, firstStep))
          kept.push_back(std::move(record));
      }
    }
    std::ofstream &file = files.emplace_back(path);
    if (!file)
      throw writeError(path);
    for (const Record &record : kept) {
      file << record.dump() << '\n';
      if (files.size() == 1 && record.value("event", "") == "epoch")
        epochs.push_back(record);
    }
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
  for (std::ofstream &file : files)
    file << record.dump() << '\n';
}

void RunLog::overridden(const Record &record) {
  for (std::ofstream &file : files)
    file << record.dump() << '\n';
}

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
  for (std::ofstream &file : files) {
    file << record.dump() << '\n' << std::flush;
    if (!file)
      throw writeError(directory + "/log.jsonl");
  }
  writeTable();
  std::ofstream(directory + "/loss.svg") << lossPicture(nameOf(directory), epochs);
}

void RunLog::writeTable() const {
  std::ofstream table(directory + "/log.csv");
  auto row = [&](auto cell) {
    bool first = true;
    for (const auto &[key, value] : epochs.front().items())
      if (key != "event") {
        table << (first ? "" : ",") << cell(key);
        first = false;
      }
    table << '\n';
  };
  row([](const std::string &key) { return key; });
  for (const Record &record : epochs)
    row([&](const std::string &key) {
      std::string text = record.contains(key) ? record[key].dump() : "null";
      return text == "null" ? std::string() : text; // NaN dumps as null
    });
}

} // namespace dlc::rt
