#include "runtime/train/Averages.h"

#include "runtime/artifact/Error.h"

namespace dlc::rt {

std::vector<Average> averagesOf(const Session &session) {
  std::vector<Average> averages;
  const auto *variables = session.artifact()->variables();
  if (!variables)
    return averages;
  for (const artifact::Variable *variable : *variables)
    if (variable->kind() == artifact::VariableKind::Slot && variable->parameter() >= 0 &&
        variable->slot() && variable->slot()->string_view() == "ema")
      averages.push_back(
          {variable->name()->str(),
           variables->Get(static_cast<uint32_t>(variable->parameter()))->name()->str()});
  return averages;
}

void startAverages(Session &session) {
  for (const Average &average : averagesOf(session))
    session.write(average.slot, session.read(average.parameter));
}

AveragesInPlace::~AveragesInPlace() noexcept(false) {
  try {
    swap();
  } catch (const Error &) {
    if (std::uncaught_exceptions() <= exceptionsAtStart) // else the other one passes on
      throw;
  }
}

void AveragesInPlace::swap() {
  for (const Average &average : averagesOf(session)) {
    std::vector<float> parameter = session.read(average.parameter);
    session.write(average.parameter, session.read(average.slot));
    session.write(average.slot, parameter);
  }
}

} // namespace dlc::rt
