#include "runtime/data/FileLock.h"

#include "runtime/artifact/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace dlc::rt {

FileLock::~FileLock() {
  if (descriptor >= 0)
    ::close(descriptor);
}

bool FileLock::take(const std::string &path) {
  // Opened for writing: NFS makes it a lock of bytes, which wants that.
  descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EISDIR)
    descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    throw Error(ErrorCode::BadInput, "cannot lock '" + path + "': " + std::strerror(errno));
  int status;
  do
    status = ::flock(descriptor, LOCK_EX | LOCK_NB);
  while (status != 0 && errno == EINTR);
  // ENOLCK, EOPNOTSUPP and their like: there are no locks here, which is no reason not to train.
  return status == 0 || errno != EWOULDBLOCK;
}

} // namespace dlc::rt
