#include "runtime/data/Npy.h"

#include "runtime/data/AtomicFile.h"

namespace dlc::rt {

void writeNpy(const std::string &path, std::span<const int64_t> shape,
              std::span<const float> values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    header += std::to_string(extent) + ", ";
  header += "), }";
  while ((10 + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  const std::string start = std::string("\x93NUMPY\x01\x00", 8) +
                            static_cast<char>(header.size() & 255) +
                            static_cast<char>(header.size() >> 8) + header;
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(start)));
  file.write(std::as_bytes(values));
  file.commit();
}

} // namespace dlc::rt
