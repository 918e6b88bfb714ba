#include "runtime/cuda/libraries/Descriptor.h"

#include "runtime/artifact/Error.h"

#include <utility>

namespace dlc::rt::cudnn {
namespace {

[[noreturn]] void fail(const Functions &library, Status status, const std::string &what) {
  throw Error(ErrorCode::Runtime, nameOf(library) + " cannot " + what + ": " +
                                      library.getErrorString(status) + " (" +
                                      std::to_string(status) + ")");
}

std::string numberOf(DescriptorType type) {
  return "descriptor of type " + std::to_string(static_cast<int>(type));
}

} // namespace

Descriptor::Descriptor(const Functions &library, DescriptorType type)
    : library(&library), kind(type) {
  if (Status status = library.backendCreateDescriptor(type, &handle); status != success)
    fail(library, status, "create a " + numberOf(type));
}

Descriptor::~Descriptor() {
  if (handle)
    library->backendDestroyDescriptor(handle);
}

Descriptor::Descriptor(Descriptor &&other) noexcept
    : library(other.library), handle(std::exchange(other.handle, nullptr)), kind(other.kind) {}

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(library, other.library);
  std::swap(handle, other.handle);
  std::swap(kind, other.kind);
  return *this;
}

void Descriptor::require(Status status, const char *what, Attribute name) const {
  if (status != success)
    fail(*library, status,
         std::string(what) + " attribute " + std::to_string(static_cast<int>(name)) + " of a " +
             numberOf(kind));
}

Descriptor &Descriptor::finalize() {
  if (Status status = success; !tryFinalize(status))
    fail(*library, status, "finalize a " + numberOf(kind));
  return *this;
}

bool Descriptor::tryFinalize(Status &reason) {
  reason = library->backendFinalize(handle);
  return reason == success;
}

void Descriptor::setRaw(Attribute name, AttributeType type, int64_t count, const void *elements) {
  require(library->backendSetAttribute(handle, name, type, count, elements), "set", name);
}

int64_t Descriptor::getRaw(Attribute name, AttributeType type, int64_t room, void *elements) const {
  int64_t count = 0;
  require(library->backendGetAttribute(handle, name, type, room, &count, elements), "get", name);
  return count;
}

int64_t Descriptor::countOf(Attribute name, AttributeType type) const {
  return getRaw(name, type, 0, nullptr);
}

Descriptor Descriptor::getDescriptor(Attribute name, DescriptorType type) const {
  Descriptor held(*library, type);
  Handle into = held.get();
  getRaw(name, AttributeType::Descriptor, 1, static_cast<void *>(&into));
  return held;
}

std::vector<Descriptor> Descriptor::getDescriptors(Attribute name, DescriptorType type) const {
  std::vector<Descriptor> held;
  std::vector<Handle> handles;
  for (int64_t i = countOf(name, AttributeType::Descriptor); i > 0; --i) {
    held.emplace_back(*library, type);
    handles.push_back(held.back().get());
  }
  if (held.empty())
    return held;
  int64_t count = getRaw(name, AttributeType::Descriptor, static_cast<int64_t>(handles.size()),
                         static_cast<void *>(handles.data()));
  held.erase(held.begin() + count, held.end());
  return held;
}

} // namespace dlc::rt::cudnn
