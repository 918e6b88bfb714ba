// One reader per file format; readArray chooses among them by content. Of images, headers can be
// had alone.
//
// All throw Error(BadInput) in one line that names the file. May be called from any thread.
#pragma once

#include "runtime/data/readers/Array.h"

namespace dlc::rt {

/// numpy's `.npy`, versions 1 to 3, C order, little-endian; memory-mapped.
Array readNpy(const std::string &path);

/// MNIST's IDX, plain or gzipped (big-endian header and elements).
Array readIdx(const std::string &path);

/// A TIFF file as a stack of pages of one size, [pages, height, width], or [pages, channels,
/// height, width] if a pixel has several samples. Reduced copies of pages are passed over.
Array readTiff(const std::string &path);
ArrayHeader tiffHeader(const std::string &path);

/// A PNG file as [1, height, width] or [1, channels, height, width], without its alpha channel.
Array readPng(const std::string &path);
ArrayHeader pngHeader(const std::string &path);

/// A JPEG file as [1, height, width] or, RGB, [1, 3, height, width].
Array readJpeg(const std::string &path);
ArrayHeader jpegHeader(const std::string &path);

/// The header of a PNG, TIFF or JPEG file, told apart by content.
ArrayHeader imageHeader(const std::string &path);
/// The header of any file that readArray reads, images undecoded.
ArrayHeader fileHeader(const std::string &path);

} // namespace dlc::rt
