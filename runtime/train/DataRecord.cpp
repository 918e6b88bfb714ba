#include "runtime/train/DataRecord.h"
#include "runtime/artifact/JsonText.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dlc::rt {

using nlohmann::json;

static constexpr const char *classesKey = "dlc.classes";

/// Folders may have names that are no UTF-8, which JSON cannot hold: such letters are replaced.
static std::string textOf(const Dataset::Classes &classes) { return jsonText(json(classes)); }

void DataRecord::addTo(TensorFile &file) const {
  for (const auto &[name, values] : statistics)
    file.tensors[name] = {{static_cast<int64_t>(values.size())}, values};
  if (!classes.empty())
    file.metadata[classesKey] = textOf(classes);
}

DataRecord DataRecord::of(const TensorFile &file, const std::string &path) {
  DataRecord record;
  for (const auto &[name, tensor] : file.tensors)
    if (name.starts_with("data."))
      record.statistics[name] = tensor.values;
  auto found = file.metadata.find(classesKey);
  if (found == file.metadata.end())
    return record;
  try {
    record.classes = json::parse(found->second).get<Dataset::Classes>();
  } catch (const json::exception &) {
    throw Error(ErrorCode::BadInput, "'" + path + "': its metadata " + classesKey +
                                         " are no lists of names: take another copy of the file");
  }
  return record;
}

void requireSameClasses(const Dataset::Classes &trained, const std::string &training,
                        const Dataset::Classes &given, const std::string &giver,
                        const std::string &advice) {
  auto wanted = json::parse(textOf(trained)).get<Dataset::Classes>();
  for (const auto &[source, classes] : json::parse(textOf(given)).get<Dataset::Classes>()) {
    auto found = wanted.find(source);
    if (found == wanted.end() || found->second == classes)
      continue;
    auto [one, other] =
        std::mismatch(classes.begin(), classes.end(), found->second.begin(), found->second.end());
    bool isMissing = other != found->second.end() && (one == classes.end() || *other < *one);
    throw Error(ErrorCode::BadInput,
                "the folders that number the classes of " + source + " differ: " +
                    (isMissing ? giver + " lacks " + *other : training + " lacks " + *one) + "; " +
                    advice);
  }
}

} // namespace dlc::rt
