#include "runtime/data/readers/ImageCache.h"

#include "runtime/artifact/Error.h"

namespace dlc::rt {

std::shared_ptr<const Array> ImageCache::get(const ArrayHeader &header) {
  {
    std::scoped_lock lock(mutex);
    if (auto place = places.find(header.path); place != places.end()) {
      images.splice(images.begin(), images, place->second);
      return images.front();
    }
  }
  auto image = std::make_shared<const Array>(readArray(header.path)); // others go on meanwhile
  if (image->shape() != header.shape || image->type() != header.type)
    throw Error(ErrorCode::BadInput, "'" + header.path +
                                         "' has changed since it was opened: start again, and "
                                         "leave the data as they are meanwhile");
  return hold(std::move(image));
}

void ImageCache::announce(size_t bytes) {
  std::scoped_lock lock(mutex);
  announced += bytes;
}

bool ImageCache::holdsAll() const {
  std::scoped_lock lock(mutex);
  return announced <= limit;
}

std::shared_ptr<const Array> ImageCache::hold(std::shared_ptr<const Array> image) {
  std::scoped_lock lock(mutex);
  ++count;
  size_t size = image->bytes().size();
  if (auto place = places.find(image->path()); place != places.end())
    return *place->second;
  if (size > limit)
    return image;
  while (held + size > limit) {
    held -= images.back()->bytes().size();
    places.erase(images.back()->path());
    images.pop_back();
  }
  held += size;
  images.push_front(std::move(image));
  places[images.front()->path()] = images.begin();
  return images.front();
}

size_t ImageCache::bytes() const {
  std::scoped_lock lock(mutex);
  return held;
}

size_t ImageCache::decoded() const {
  std::scoped_lock lock(mutex);
  return count;
}

} // namespace dlc::rt
