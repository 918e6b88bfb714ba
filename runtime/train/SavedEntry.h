// An entry of a JSON file of a run. Somebody may have edited the file by hand, so an entry may be
// anything: what it is not is an error that names the file and the entry.
//
// Plain data; any thread.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Ranges.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlc::rt {

class SavedEntry {
public:
  using Json = nlohmann::ordered_json;
  /// The error of a file, given what is wrong with it; empty if it is no JSON object.
  using ErrorOf = std::function<Error(const std::string &why)>;

  /// The whole of a file. All functions throw an error made by `errorOf`.
  SavedEntry(Json file, ErrorOf errorOf);

  bool has(const std::string &key) const { return value.contains(key); }
  SavedEntry at(const std::string &key) const;
  std::vector<SavedEntry> list() const;

  int64_t count(const Range &range) const;
  double number() const;
  bool flag() const;
  std::string text(const std::string &wanted = "a text") const;
  const Json &json() const { return value; }

  /// "lr is "x", wanted a number"
  Error wrong(const std::string &wanted) const;

private:
  SavedEntry(Json value, std::string name, ErrorOf errorOf)
      : value(std::move(value)), name(std::move(name)), errorOf(std::move(errorOf)) {}

  Json value;
  std::string name;
  ErrorOf errorOf;
};

} // namespace dlc::rt
