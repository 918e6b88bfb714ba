#include "runtime/train/SavedEntry.h"

#include <cmath>

namespace dlc::rt {

SavedEntry::SavedEntry(Json file, ErrorOf errorOf)
    : value(std::move(file)), errorOf(std::move(errorOf)) {
  if (!value.is_object())
    throw this->errorOf("");
}

SavedEntry SavedEntry::at(const std::string &key) const {
  std::string full = name.empty() ? key : name + "." + key;
  if (!has(key))
    throw errorOf("it lacks " + full);
  return {value.at(key), full, errorOf};
}

std::vector<SavedEntry> SavedEntry::list() const {
  if (!value.is_array())
    throw wrong("a list");
  std::vector<SavedEntry> entries;
  for (const Json &entry : value)
    entries.push_back({entry, name + "[" + std::to_string(entries.size()) + "]", errorOf});
  return entries;
}

int64_t SavedEntry::count(const Range &range) const {
  double number = value.is_number() ? value.get<double>() : NAN;
  if (!range.contains(number) || number != std::floor(number))
    throw wrong("a whole number " + range.text());
  return static_cast<int64_t>(number);
}

double SavedEntry::number() const {
  if (!value.is_number())
    throw wrong("a number");
  return value;
}

bool SavedEntry::flag() const {
  if (!value.is_boolean())
    throw wrong("true or false");
  return value;
}

std::string SavedEntry::text(const std::string &wanted) const {
  if (!value.is_string())
    throw wrong(wanted);
  return value;
}

Error SavedEntry::wrong(const std::string &wanted) const {
  constexpr size_t shown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > shown)
    text = text.substr(0, shown) + "...";
  return errorOf(name + " is " + text + ", wanted " + wanted);
}

} // namespace dlc::rt
