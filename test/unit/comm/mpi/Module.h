// Where the MPI module lies: programs find modules as ../lib relative to themselves.
#pragma once

#include <filesystem>
#include <string>

namespace dlc::rt::test {

inline std::string mpiModulePath() {
  auto program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "lib" / "dlc_comm_mpi.so").string();
}

} // namespace dlc::rt::test
