#include "runtime/train/Checkpoint.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/NearNames.h"
#include "runtime/record/TableText.h"
#include "runtime/train/Averages.h"

#include <algorithm>
#include <fnmatch.h>
#include <set>

namespace dlc::rt {

using artifact::VariableKind;

static std::string describe(const std::string &name, const std::vector<int64_t> &shape) {
  return name + " (" + shapeText(shape) + ")";
}

static bool mayBeExtra(const std::string &tensor) {
  return tensor.starts_with("optimizer.") || tensor.starts_with("data.") ||
         tensor.ends_with("num_batches_tracked");
}

void checkTensors(const std::vector<VariableInfo> &wanted, const TensorFile &file,
                  const std::string &path, const std::string &model, bool mayExcept) {
  std::vector<std::string> missing, slots, misshapen, unknown;
  std::string unfit; // names as --init-except takes them
  auto note = [&](const std::string &name) { unfit += (unfit.empty() ? "" : ",") + name; };
  for (const VariableInfo &variable : wanted) {
    auto found = file.tensors.find(variable.tensor);
    if (found == file.tensors.end() || found->second.shape != variable.shape)
      note(variable.tensor);
    if (found == file.tensors.end())
      (variable.kind == VariableKind::Slot ? slots : missing)
          .push_back(describe(variable.tensor, variable.shape));
    else if (found->second.shape != variable.shape)
      misshapen.push_back(variable.tensor + " is " + shapeText(found->second.shape) + ", wanted " +
                          shapeText(variable.shape));
  }
  for (const auto &[name, tensor] : file.tensors)
    if (!mayBeExtra(name) && std::none_of(wanted.begin(), wanted.end(), [&](const auto &variable) {
          return variable.tensor == name;
        })) {
      note(name);
      unknown.push_back(describe(name, tensor.shape));
    }
  std::string problems;
  auto report = [&](const std::string &what, const std::vector<std::string> &items) {
    if (!items.empty())
      problems += (problems.empty() ? "" : "; ") + what + listed(items);
  };
  report("it lacks ", missing);
  report("", misshapen);
  report("the model has no ", unknown);
  if (!problems.empty())
    throw Error(ErrorCode::BadInput,
                "'" + path + "' does not fit model " + model + ": " + problems +
                    "; give the model that it was trained with, and its parameters (--set of "
                    "dlc compile)" +
                    (mayExcept ? ", or train from the rest with --init-except " + unfit : ""));
  if (!slots.empty())
    throw Error(ErrorCode::BadInput,
                "'" + path +
                    "' was trained with another optimizer, or in another precision, than model " +
                    model + " has: it lacks " + listed(slots) +
                    "; compile the model as it was then, or start a new run from the weights with "
                    "--init");
}

void leaveOut(const std::vector<std::string> &patterns, std::vector<VariableInfo> &wanted,
              TensorFile &file, const std::string &path) {
  std::set<std::string> names;
  for (const VariableInfo &variable : wanted)
    names.insert(variable.tensor);
  for (const auto &[name, tensor] : file.tensors)
    if (!mayBeExtra(name))
      names.insert(name);
  for (const std::string &pattern : patterns) {
    auto matches = [&](const std::string &name) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    if (std::ranges::none_of(names, matches))
      throw Error(ErrorCode::BadInput,
                  "--init-except " + pattern + " matches nothing of the model and of '" + path +
                      "'; near it are " + nearNames(pattern, {names.begin(), names.end()}));
    std::erase_if(wanted, [&](const VariableInfo &variable) { return matches(variable.tensor); });
    std::erase_if(file.tensors, [&](const auto &tensor) { return matches(tensor.first); });
  }
}

static std::vector<VariableInfo> variablesToRestore(const Session &session, bool slots) {
  std::vector<VariableInfo> variables = variablesOf(session.artifact());
  std::erase_if(variables, [&](const VariableInfo &variable) {
    return variable.kind == VariableKind::Copy || (variable.kind == VariableKind::Slot && !slots);
  });
  return variables;
}

std::vector<VariableInfo> checkpointVariables(const Session &session) {
  return variablesToRestore(session, /*slots=*/true);
}

static DataRecord restore(Session &session, const TensorFile &file, const std::string &path,
                          bool slots) {
  std::vector<VariableInfo> variables = variablesToRestore(session, slots);
  checkTensors(variables, file, path, session.artifact()->model()->str());
  for (const VariableInfo &variable : variables)
    session.write(variable.name, file.tensors.at(variable.tensor).values);
  return DataRecord::of(file, path);
}

void startFrom(Session &session, const std::string &path, const std::vector<std::string> &except) {
  TensorFile file = readSafetensors(path);
  std::vector<VariableInfo> variables = variablesToRestore(session, /*slots=*/false);
  leaveOut(except, variables, file, path);
  checkTensors(variables, file, path, session.artifact()->model()->str(), /*mayExcept=*/true);
  for (const VariableInfo &variable : variables)
    session.write(variable.name, file.tensors.at(variable.tensor).values);
}

static TensorFile collect(const Session &session, const DataRecord &data, bool slots,
                          bool averaged) {
  TensorFile file;
  std::vector<Average> averages = averaged ? averagesOf(session) : std::vector<Average>();
  for (const VariableInfo &variable : variablesToRestore(session, slots))
    file.tensors[variable.tensor] = {variable.shape, session.read(variable.name)};
  for (const Average &average : averages)
    file.tensors[average.parameter].values = session.read(average.slot);
  data.addTo(file);
  return file;
}

DataRecord loadWeights(Session &session, const std::string &path) {
  TensorFile file = readSafetensors(path);
  for (auto &[name, tensor] : file.tensors)
    if (auto average = file.tensors.find("optimizer.ema." + name); average != file.tensors.end())
      tensor = average->second;
  DataRecord data = restore(session, file, path, /*slots=*/false);
  for (const VariableInfo &variable : variablesToRestore(session, /*slots=*/false))
    if (!session.isFinite(variable.name))
      throw Error(ErrorCode::BadInput, "'" + path + "': " + variable.tensor +
                                           " holds numbers that are not finite, so that nothing "
                                           "made of it is sound; take a checkpoint from before");
  return data;
}

void saveWeights(const Session &session, const DataRecord &data, const std::string &path) {
  writeSafetensors(path, collect(session, data, /*slots=*/false, /*averaged=*/true));
}

void saveCheckpoint(const Session &session, const DataRecord &data, const RunState &state,
                    bool averaged, const std::string &path) {
  TensorFile file = collect(session, data, /*slots=*/true, averaged);
  file.metadata[runStateKey] = state.toJson();
  writeSafetensors(path, file);
}

LoadedCheckpoint loadCheckpoint(Session &session, const std::string &path) {
  TensorFile file = readSafetensors(path);
  auto metadata = file.metadata.find(runStateKey);
  if (metadata == file.metadata.end())
    throw Error(ErrorCode::BadInput,
                "'" + path + "' holds weights alone and cannot be resumed from; use --init");
  RunState state = RunState::fromJson(metadata->second, path);
  return {state, restore(session, file, path, /*slots=*/true)};
}

} // namespace dlc::rt
