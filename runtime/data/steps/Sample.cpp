#include "runtime/data/steps/Sample.h"

namespace dlc::rt {

void Sample::settle() {
  if (!unread)
    return;
  values.resize(unread->elements());
  unread->read<float>(std::as_writable_bytes(std::span(values)));
  unread.reset();
}

View &Sample::view() {
  if (!unread)
    unread = View::of(std::exchange(values, {}), shape);
  return *unread;
}

} // namespace dlc::rt
