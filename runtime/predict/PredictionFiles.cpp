#include "runtime/predict/PredictionFiles.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/Npy.h"
#include "runtime/data/Png.h"
#include "runtime/data/TiffWriter.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

namespace {

/// What pictures show as black and white.
struct Range {
  float black = 0, white = 1;
};

const char *nameOf(PredictionFormat format) {
  return format == PredictionFormat::Npy   ? ".npy"
         : format == PredictionFormat::Png ? "PNG"
                                           : "TIFF";
}

bool canHold(PredictionFormat format, const std::vector<int64_t> &shape) {
  if (format == PredictionFormat::Npy)
    return true;
  if (format == PredictionFormat::Png)
    return shape.size() == 3 && shape[0] == 1;
  return shape.size() == 3 || shape.size() == 4;
}

Range rangeOf(std::span<const float> values) {
  Range found = {INFINITY, -INFINITY};
  for (float value : values)
    if (std::isfinite(value)) {
      found.black = std::min(found.black, value);
      found.white = std::max(found.white, value);
    }
  bool isShare = found.black >= 0 && found.white <= 1;
  return isShare || found.black > found.white ? Range() : found;
}

/// An image of a class's folder is CLASS/STEM.
std::string asOneName(std::string stem) {
  std::replace(stem.begin(), stem.end(), '/', '-');
  return stem;
}

std::string stemOf(const Prediction &prediction, int64_t sample) {
  if (!prediction.stems.empty())
    return asOneName(prediction.stems[static_cast<size_t>(sample)]);
  std::string number = std::to_string(sample);
  return std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
}

std::string baseOf(const Prediction &prediction, const std::string &directory) {
  return directory + "/" + prediction.name +
         (prediction.image.empty() ? "" : "-" + asOneName(prediction.image));
}

class Writer {
public:
  Writer(const Prediction &prediction, int64_t samples, const std::string &directory)
      : prediction(prediction), samples(samples), base(baseOf(prediction, directory)),
        sampleSize(prediction.values.size() / static_cast<size_t>(std::max<int64_t>(samples, 1))),
        range(rangeOf(prediction.values)) {}

  void writePngs() const {
    std::vector<uint8_t> pixels(sampleSize);
    float scale = range.white > range.black ? 255 / (range.white - range.black) : 0;
    for (int64_t sample = 0; sample < samples; ++sample) {
      std::span<const float> values = valuesOf(sample);
      std::transform(values.begin(), values.end(), pixels.begin(), [&](float value) {
        float shade = (value - range.black) * scale + 0.5f;
        return static_cast<uint8_t>(std::max(std::min(255.0f, shade), 0.0f)); // NaN becomes white
      });
      std::string stem = prediction.image.empty() ? "-" + stemOf(prediction, sample) : "";
      writePng(base + stem + ".png", prediction.shape[1], prediction.shape[2], pixels);
    }
  }

  void writeTiffs(TiffPixels pixels) const {
    TiffStack stack;
    stack.channels = prediction.shape.front();
    stack.slices = prediction.shape.size() == 4 ? prediction.shape[1] : 1;
    stack.height = prediction.shape[prediction.shape.size() - 2];
    stack.width = prediction.shape.back();
    if (!prediction.stems.empty()) {
      for (int64_t sample = 0; sample < samples; ++sample)
        writeTiff(base + "-" + stemOf(prediction, sample) + ".tif", stack, valuesOf(sample), pixels,
                  range.black, range.white);
      return;
    }
    stack.frames = samples;
    writeTiff(base + ".tif", stack, prediction.values, pixels, range.black, range.white);
  }

  void write(PredictionFormat format) const {
    switch (format) {
    case PredictionFormat::Npy: {
      std::vector<int64_t> shape = {samples};
      shape.insert(shape.end(), prediction.shape.begin(), prediction.shape.end());
      return writeNpy(base + ".npy", shape, prediction.values);
    }
    case PredictionFormat::Png:
      return writePngs();
    case PredictionFormat::Tiff:
      return writeTiffs(TiffPixels::F32);
    case PredictionFormat::Tiff8:
      return writeTiffs(TiffPixels::U8);
    case PredictionFormat::Tiff16:
      return writeTiffs(TiffPixels::U16);
    }
  }

private:
  std::span<const float> valuesOf(int64_t sample) const {
    return std::span(prediction.values)
        .subspan(static_cast<size_t>(sample) * sampleSize, sampleSize);
  }

  const Prediction &prediction;
  int64_t samples;
  std::string base;
  size_t sampleSize;
  Range range;
};

} // namespace

std::vector<PredictionFormat> defaultFormats(FileFormat read, const Prediction &prediction) {
  std::vector<PredictionFormat> formats = {PredictionFormat::Npy};
  PredictionFormat picture =
      read == FileFormat::Tiff ? PredictionFormat::Tiff : PredictionFormat::Png;
  if (canHold(picture, prediction.shape))
    formats.push_back(picture);
  return formats;
}

std::string writePrediction(const Prediction &prediction, int64_t samples,
                            const std::vector<PredictionFormat> &formats,
                            const std::string &directory) {
  std::vector<int64_t> shape = {samples};
  shape.insert(shape.end(), prediction.shape.begin(), prediction.shape.end());
  std::string line = baseOf(prediction, directory) + ": " + shapeText(shape) + " as ";
  for (PredictionFormat format : formats)
    if (!canHold(format, prediction.shape))
      throw Error(ErrorCode::BadInput,
                  prediction.name + " of " + shapeText(shape) + " cannot be written as " +
                      nameOf(format) + ", which holds " +
                      (format == PredictionFormat::Png ? "planar images of one channel"
                                                       : "images and stacks") +
                      "; choose --format=npy");
  for (auto format = formats.begin(); format != formats.end(); ++format)
    if (std::find_if(format + 1, formats.end(), [&](PredictionFormat other) {
          return nameOf(other) == std::string_view(nameOf(*format));
        }) != formats.end())
      throw Error(ErrorCode::BadInput, std::string("two formats of --format would be written to "
                                                   "the same ") +
                                           nameOf(*format) + " files; give one of them");
  Writer writer(prediction, samples, directory);
  for (PredictionFormat format : formats) {
    writer.write(format);
    line += (format == formats.front() ? "" : ", ") + std::string(nameOf(format));
  }
  return line;
}

} // namespace dlc::rt
