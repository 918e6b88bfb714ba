// The files that a prediction is kept in.
//
// Samples of one size:
// - .npy: one file DIR/OUTPUT.npy, [samples, ...].
// - TIFF: from a directory of images, or a file of one sample, an image or stack per sample,
//   DIR/OUTPUT-STEM.tif; from one file of several samples, one stack DIR/OUTPUT.tif.
// - PNG: one file per sample, DIR/OUTPUT-STEM.png, numbered where there are no stems.
// Samples of several sizes: one file per sample, DIR/OUTPUT-STEM and the extension. Integer pixels
// show [0, 1], or else the output's own range, as black to white.
#pragma once

#include "runtime/data/readers/Array.h"

#include <string>
#include <vector>

namespace dlc::rt {

enum class PredictionFormat : uint8_t { Npy, Png, Tiff, Tiff8, Tiff16 };

/// All samples of one output.
struct Prediction {
  std::string name;
  std::vector<int64_t> shape; // of one sample: channels, spatial...
  std::vector<float> values;
  std::vector<std::string> stems; // of the samples; empty: one file of several
  std::string image;              // stem of the one image that this is of, if sizes differ
};

/// What is written unless the user says otherwise: .npy, and what people look at, TIFF for those
/// who brought TIFF, else PNG; only what can hold the output.
std::vector<PredictionFormat> defaultFormats(FileFormat read, const Prediction &prediction);

/// Writes DIR/OUTPUT... and says what, in one line. Throws Error(BadInput) for a format that cannot
/// hold the output, Error(Runtime) for files that cannot be written.
std::string writePrediction(const Prediction &prediction, int64_t samples,
                            const std::vector<PredictionFormat> &formats,
                            const std::string &directory);

} // namespace dlc::rt
