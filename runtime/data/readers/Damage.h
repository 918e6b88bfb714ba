// A file that ends early, or whose data contradict its header.
#pragma once

#include "runtime/artifact/Error.h"

#include <string>

namespace dlc::rt {

/// Error(BadInput) in one line, with what a user can do about it.
inline Error damagedFile(const std::string &path, const std::string &why) {
  return Error(ErrorCode::BadInput, "cannot read '" + path + "': it is truncated or damaged" +
                                        (why.empty() ? "" : " (" + why + ")") +
                                        "; copy it again, or leave it out");
}

} // namespace dlc::rt
