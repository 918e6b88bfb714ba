// Files that the data tests read: a directory of its own per test, removed afterwards.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace dlc::rt::test {

class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "dlc-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  std::string operator/(const std::string &name) const { return (path / name).string(); }

  std::filesystem::path path;
};

/// While it lives, a file that outgrows `bytes` fails like one on a full disk.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old);
    rlimit small = {bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
  }
  FullDisk(const FullDisk &) = delete;
  FullDisk &operator=(const FullDisk &) = delete;

private:
  rlimit old = {};
  void (*handler)(int);
};

inline std::string writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// Empty for a file that there is none of.
inline std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T> std::string bytesOfVector(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

/// A version 1.0 `.npy` file; `descr` as numpy writes it, `shape` with its commas.
inline std::string npyBytes(const std::string &descr, const std::string &shape,
                            const std::string &data, const std::string &fortran = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': (" + shape + "), }";
  header.resize((10 + header.size()) / 64 * 64 + 64 - 11, ' ');
  header += '\n';
  std::string length = {static_cast<char>(header.size() & 255),
                        static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\x01\0", 8) + length + header + data;
}

} // namespace dlc::rt::test
