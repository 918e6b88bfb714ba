// Every rank makes its own segment, so that its pages lie in its own memory node, and tells the
// others its name or why it has none. Once all have mapped what they need the names are removed:
// nothing is left behind however the run ends.
#include "runtime/comm/Window.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace dlc::rt {
namespace {

constexpr char created = '+';
constexpr char refused = '-';

std::vector<std::string> gatherText(SmallCollectives &collectives, const std::string &mine,
                                    double timeout) {
  auto all = collectives.allGather(std::as_bytes(std::span(mine)), "sharing of memory", timeout);
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const auto &bytes : all)
    texts.emplace_back(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return texts;
}

std::string firstRefusal(const Transport &transport, std::span<const std::string> answers) {
  for (size_t r = 0; r < answers.size(); ++r)
    if (answers[r].starts_with(refused))
      return transport.describe(static_cast<int>(r)) + ": " + answers[r].substr(1);
  return {};
}

bool hostRefused(const Transport &transport, std::span<const std::string> answers) {
  for (int r = 0; r < transport.size(); ++r)
    if (transport.sameHost(r) && answers[r].starts_with(refused))
      return true;
  return false;
}

} // namespace

Window::Window(Transport &transport, SmallCollectives &collectives, size_t bytes, double timeout,
               const std::function<void(std::span<std::byte>)> &prepare)
    : ownRank(transport.rank()), mappings(static_cast<size_t>(transport.size())) {
  const bool alone =
      std::ranges::count(transport.hostOfRank(), transport.hostOfRank()[ownRank]) == 1;
  std::shared_ptr<Mapping> shared;
  std::string name;
  std::string answer(1, created);
  if (!alone) {
    try {
      shared = transport.createSegment(bytes, name);
      answer += name;
    } catch (const Error &error) {
      answer = refused + std::string(error.what());
    }
  }
  mappings[ownRank] = shared ? shared : std::make_shared<Mapping>(Mapping::anonymous(bytes));
  if (prepare)
    prepare(own());

  auto names = gatherText(collectives, answer, timeout);
  why = firstRefusal(transport, names);
  answer.assign(1, created);
  if (!hostRefused(transport, names)) {
    try {
      for (int r = 0; r < transport.size(); ++r)
        if (r != ownRank && transport.sameHost(r))
          mappings[r] = transport.openSegment(names[r].substr(1), bytes);
    } catch (const Error &error) {
      answer = refused + std::string(error.what());
    }
  }
  auto outcomes = gatherText(collectives, answer, timeout);
  if (shared)
    transport.unlinkSegment(name);
  if (why.empty())
    why = firstRefusal(transport, outcomes);
  if (hostRefused(transport, outcomes))
    for (int r = 0; r < transport.size(); ++r)
      if (r != ownRank)
        mappings[r].reset();
}

bool Window::contains(DeviceSpan memory) const {
  if (!mappings[ownRank])
    return false;
  std::span<std::byte> block = own();
  return DeviceSpan{reinterpret_cast<uintptr_t>(block.data()), block.size()}.contains(memory);
}

void Window::release() noexcept {
  for (std::shared_ptr<Mapping> &mapping : mappings)
    mapping.reset();
}

} // namespace dlc::rt
