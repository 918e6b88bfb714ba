#include "runtime/artifact/Writer.h"

#include "runtime/artifact/Hash.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::rt {

artifact::Span ArtifactWriter::addData(std::span<const uint8_t> bytes) {
  uint64_t offset = dataSectionBegin(data.size());
  data.resize(offset);
  data.insert(data.end(), bytes.begin(), bytes.end());
  return {offset, bytes.size()};
}

std::vector<uint8_t> ArtifactWriter::finish(flatbuffers::Offset<artifact::Artifact> root) {
  artifact::FinishSizePrefixedArtifactBuffer(flatBuffer, root);
  const uint8_t *begin = flatBuffer.GetBufferPointer();
  std::vector<uint8_t> file(begin, begin + flatBuffer.GetSize());
  file.resize(dataSectionBegin(file.size()));
  file.insert(file.end(), data.begin(), data.end());
  file.resize(file.size() + sizeof(uint64_t));
  sealArtifact(file);
  return file;
}

bool isReplaceable(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

std::string ArtifactWriter::writeFile(const std::string &path, std::span<const uint8_t> file) {
  bool replaces = isReplaceable(path);
  std::string temporary = replaces ? path + ".partial" : path;
  std::FILE *stream = std::fopen(temporary.c_str(), "wb");
  if (!stream)
    return "cannot create " + temporary + ": " + std::strerror(errno);
  bool whole = std::fwrite(file.data(), 1, file.size(), stream) == file.size();
  whole = std::fflush(stream) == 0 && whole;
  whole = (!replaces || fsync(fileno(stream)) == 0) && whole;
  whole = std::fclose(stream) == 0 && whole;
  if (whole && (!replaces || std::rename(temporary.c_str(), path.c_str()) == 0))
    return "";
  std::string reason = "cannot write " + path + ": " + std::strerror(errno);
  if (replaces)
    std::remove(temporary.c_str());
  return reason;
}

void sealArtifact(std::span<uint8_t> file) {
  size_t content = file.size() - sizeof(uint64_t);
  uint64_t hash = hash64(file.first(content));
  std::memcpy(file.data() + content, &hash, sizeof hash);
}

} // namespace dlc::rt
