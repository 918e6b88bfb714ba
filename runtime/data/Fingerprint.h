// Whether files hold what they held before, without reading all of it.
#pragma once

#include <string>

namespace dlc::rt {

/// "75392 bytes, hash 0123456789abcdef", and for a directory "24 images, ...". The hash is of all
/// bytes up to 64 KiB, of larger files of 16 pieces from begin to end; names of images count, names
/// of files and directories do not. Throws Error(BadInput) for what cannot be read.
std::string fingerprint(const std::string &path);

} // namespace dlc::rt
