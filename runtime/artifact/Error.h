// The runtime's one exception type.
//
// Messages say what was being done, where, what was found and what was wanted, in one line that
// tells the user what to do. Only the mains catch it; peers are aborted there, never left hanging.
#pragma once

#include <stdexcept>
#include <string>

namespace dlc::rt {

enum class ErrorCode {
  BadInput,   // a file, an option's value, data
  Artifact,   // corrupt, foreign or for another machine
  Runtime,    // a library or the operating system refused
  Peer,       // another rank died, is late or differs
  Interrupted // by a signal; the run can be resumed
};

class Error : public std::runtime_error {
public:
  Error(ErrorCode code, const std::string &message) : std::runtime_error(message), code(code) {}
  const ErrorCode code;
};

} // namespace dlc::rt
