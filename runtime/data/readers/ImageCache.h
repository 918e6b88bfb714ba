// Decoded images within a limit of memory: those that were used last.
//
// A directory may hold more than memory does; an image is decoded when it is needed and not held.
// May be used from any thread.
#pragma once

#include "runtime/data/readers/Array.h"

#include <list>
#include <mutex>
#include <unordered_map>

namespace dlc::rt {

class ImageCache {
public:
  static constexpr size_t standardLimit = size_t{1} << 30;

  explicit ImageCache(size_t limit = standardLimit) : limit(limit) {}

  /// Images of so many bytes in all may be asked for, beside those of earlier calls.
  void announce(size_t bytes);
  /// True if all announced images are held once they are decoded.
  bool holdsAll() const;

  /// The image of a header that its file gave. Throws Error(BadInput) as readArray does, and for a
  /// file that has changed since.
  std::shared_ptr<const Array> get(const ArrayHeader &header);

  /// Of the images that are held now.
  size_t bytes() const;
  /// How many images were decoded so far.
  size_t decoded() const;

private:
  using Images = std::list<std::shared_ptr<const Array>>; // the one used last is the first

  /// The one that is held, if another thread has decoded it, too.
  std::shared_ptr<const Array> hold(std::shared_ptr<const Array> image);

  const size_t limit;
  mutable std::mutex mutex;
  Images images;
  std::unordered_map<std::string, Images::iterator> places; // by path
  size_t held = 0, count = 0, announced = 0;
};

} // namespace dlc::rt
