// What finds no room in the table is left to the destructors.
#include "runtime/core/Leftover.h"

#include "runtime/artifact/PathTable.h"

#include <atomic>
#include <unistd.h>
#include <variant>

namespace dlc::rt {

static PathTable<std::monostate, 16> table;
static std::atomic<void (*)() noexcept> moreToRemove{nullptr};

Leftover::Leftover(const std::string &path) : place(table.add(path, {})) {}

Leftover::~Leftover() { table.remove(place); }

void Leftover::removeAll() noexcept {
  table.forEach([](const char *path, std::monostate) { ::unlink(path); });
  if (auto *more = moreToRemove.load())
    more();
}

void Leftover::alsoRemove(void (*more)() noexcept) noexcept { moreToRemove = more; }

} // namespace dlc::rt
