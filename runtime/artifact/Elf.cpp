#include "runtime/artifact/Elf.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <vector>

namespace dlc::rt {

bool isWholeElf(std::span<const uint8_t> file) {
  auto holds = [&](uint64_t offset, uint64_t bytes) {
    return offset <= file.size() && bytes <= file.size() - offset;
  };
  Elf64_Ehdr header;
  if (!holds(0, sizeof header))
    return false;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  uint64_t sectionBytes = sections.size() * sizeof(Elf64_Shdr);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      !holds(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !holds(header.e_shoff, sectionBytes))
    return false;
  if (!sections.empty())
    std::memcpy(sections.data(), &file[header.e_shoff], sectionBytes);
  return std::ranges::all_of(sections, [&](const Elf64_Shdr &section) {
    return section.sh_type == SHT_NOBITS || holds(section.sh_offset, section.sh_size);
  });
}

} // namespace dlc::rt
