#include "runtime/data/TiffWriter.h"

#include "runtime/data/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <tiffio.h>
#include <vector>

namespace dlc::rt {

/// https://imagej.net/ij: "ImageJ=VERSION", then key=value lines.
static std::string description(const TiffStack &stack, float black, float white) {
  std::ostringstream text;
  text << "ImageJ=1.54f\nimages=" << stack.frames * stack.channels * stack.slices << '\n';
  int above = 0;
  for (auto [name, extent] :
       {std::pair("channels", stack.channels), {"slices", stack.slices}, {"frames", stack.frames}})
    if (extent > 1) {
      text << name << '=' << extent << '\n';
      ++above;
    }
  if (above > 1)
    text << "hyperstack=true\nmode=grayscale\n";
  text << "loop=false\nmin=" << black << "\nmax=" << white << '\n';
  return text.str();
}

namespace {

/// Leaves the descriptor open.
struct Closer {
  void operator()(TIFF *file) const { TIFFCleanup(file); }
};

class Pages {
public:
  Pages(const AtomicFile &to, const std::string &path, const TiffStack &stack, TiffPixels pixels,
        float black, float white)
      : stack(stack), pixels(pixels), black(black), white(white),
        bytes(pixels == TiffPixels::F32   ? 4
              : pixels == TiffPixels::U16 ? 2
                                          : 1) {
    TIFFSetErrorHandler(nullptr);           // what fails is told by the exception
    constexpr int64_t most = 4'000'000'000; // of what the classic format's offsets reach
    int64_t total = stack.frames * stack.channels * stack.slices * stack.height * stack.width;
    file.reset(TIFFFdOpen(to.handle(), path.c_str(), total * bytes > most ? "w8" : "w"));
  }

  bool isOpen() const { return file != nullptr; }

  /// False if it cannot be written.
  bool add(std::span<const float> values, const std::string *text) {
    TIFF *to = file.get();
    auto height = static_cast<uint32_t>(stack.height);
    TIFFSetField(to, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(stack.width));
    TIFFSetField(to, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(to, TIFFTAG_ROWSPERSTRIP, height);
    TIFFSetField(to, TIFFTAG_BITSPERSAMPLE, 8 * bytes);
    TIFFSetField(to, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(to, TIFFTAG_SAMPLEFORMAT,
                 pixels == TiffPixels::F32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    TIFFSetField(to, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(to, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    if (text)
      TIFFSetField(to, TIFFTAG_IMAGEDESCRIPTION, text->c_str());
    encode(values);
    return TIFFWriteEncodedStrip(to, 0, strip.data(), static_cast<tmsize_t>(strip.size())) >= 0 &&
           TIFFWriteDirectory(to) == 1;
  }

private:
  template <typename T> void store(std::span<const float> values, float scale) {
    for (size_t i = 0; i < values.size(); ++i) {
      auto most = static_cast<float>(std::numeric_limits<T>::max());
      float shade = (values[i] - black) * scale * most + 0.5f;
      auto pixel = static_cast<T>(std::max(std::min(most, shade), 0.0f)); // NaN becomes white
      std::memcpy(strip.data() + i * sizeof(T), &pixel, sizeof(T));
    }
  }

  void encode(std::span<const float> values) {
    strip.resize(values.size() * static_cast<size_t>(bytes));
    float scale = white > black ? 1 / (white - black) : 0;
    if (pixels == TiffPixels::F32)
      std::memcpy(strip.data(), values.data(), strip.size());
    else if (pixels == TiffPixels::U16)
      store<uint16_t>(values, scale);
    else
      store<uint8_t>(values, scale);
  }

  const TiffStack &stack;
  TiffPixels pixels;
  float black, white;
  int bytes;
  std::unique_ptr<TIFF, Closer> file;
  std::vector<std::byte> strip;
};

} // namespace

static bool writePages(Pages &&pages, const TiffStack &stack, std::span<const float> values,
                       const std::string &text) {
  auto plane = static_cast<size_t>(stack.height * stack.width);
  bool first = true, good = pages.isOpen();
  for (int64_t frame = 0; frame < stack.frames; ++frame)
    for (int64_t slice = 0; slice < stack.slices; ++slice)
      for (int64_t channel = 0; channel < stack.channels; ++channel) {
        auto page = static_cast<size_t>((frame * stack.channels + channel) * stack.slices + slice);
        good = good && pages.add(values.subspan(page * plane, plane), first ? &text : nullptr);
        first = false;
      }
  return good;
}

void writeTiff(const std::string &path, const TiffStack &stack, std::span<const float> values,
               TiffPixels pixels, float black, float white) {
  AtomicFile file(path);
  errno = 0;
  if (!writePages(Pages(file, path, stack, pixels, black, white), stack, values,
                  description(stack, black, white)))
    file.fail(errno ? errno : EIO);
  file.commit();
}

} // namespace dlc::rt
