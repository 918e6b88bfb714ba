// libjpeg reports errors by longjmp, as libpng does: everything with a destructor lives outside of
// the functions that set the jump. Data that end early are a warning to it, after which it goes
// on with grey: here they are an error. Other warnings are of harmless oddities.
#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Damage.h"
#include "runtime/data/readers/InputFile.h"
#include "runtime/data/readers/Planes.h"
#include "runtime/data/readers/Readers.h"
#include "runtime/data/readers/Sizes.h"

#include <csetjmp>
#include <filesystem>
#include <jpeglib.h>

#include <jerror.h> // behind jpeglib.h, which it completes

namespace dlc::rt {

namespace {

/// Two bits for a block of 64 samples, less where a scan skips runs of blocks.
constexpr uint64_t jpegRatio = 4096;

class JpegReader {
public:
  explicit JpegReader(std::FILE *file) {
    state.err = jpeg_std_error(&errors);
    errors.error_exit = fail;
    errors.emit_message = warn;
    state.client_data = this;
    if (setjmp(jump))
      return;
    jpeg_create_decompress(&state);
    jpeg_stdio_src(&state, file);
  }
  ~JpegReader() { jpeg_destroy_decompress(&state); }
  JpegReader(const JpegReader &) = delete;
  JpegReader &operator=(const JpegReader &) = delete;

  /// What libjpeg complained about.
  const char *reason() const { return text; }
  uint32_t height() const { return state.output_height; }
  uint32_t width() const { return state.output_width; }
  size_t channels() const { return static_cast<size_t>(state.output_components); }
  bool isGreyOrRgb() const {
    return state.jpeg_color_space == JCS_GRAYSCALE || state.jpeg_color_space == JCS_YCbCr ||
           state.jpeg_color_space == JCS_RGB;
  }

  bool readHeader() {
    if (setjmp(jump))
      return false;
    jpeg_read_header(&state, TRUE);
    state.out_color_space = state.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    if (isGreyOrRgb())
      jpeg_calc_output_dimensions(&state);
    return true;
  }

  bool start() {
    if (setjmp(jump))
      return false;
    jpeg_start_decompress(&state);
    return true;
  }

  bool readLine(std::byte *line) {
    auto *row = reinterpret_cast<JSAMPROW>(line);
    if (setjmp(jump))
      return false;
    jpeg_read_scanlines(&state, &row, 1);
    return true;
  }

  /// What is left behind the pixels.
  bool finish() {
    if (setjmp(jump))
      return false;
    jpeg_finish_decompress(&state);
    return true;
  }

private:
  [[noreturn]] static void fail(j_common_ptr state) {
    auto *reader = static_cast<JpegReader *>(state->client_data);
    (*state->err->format_message)(state, reader->text);
    std::longjmp(reader->jump, 1);
  }
  static void warn(j_common_ptr state, int level) {
    int code = state->err->msg_code;
    if (level < 0 &&
        (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC))
      fail(state);
  }

  char text[JMSG_LENGTH_MAX] = "";
  std::jmp_buf jump;
  jpeg_error_mgr errors = {};
  jpeg_decompress_struct state = {};
};

/// A file, its header read.
class JpegFile {
public:
  explicit JpegFile(const std::string &path)
      : path(path), file(openInput(path)), reader(file.get()) {
    if (!reader.readHeader())
      throw damaged();
    if (!reader.isGreyOrRgb())
      throw Error(ErrorCode::BadInput, "cannot read '" + path +
                                           "': its colours are neither grey nor RGB; save it as "
                                           "one of these");
    requirePlausible(path,
                     checkedProduct(path, {reader.width(), reader.height(), reader.channels()}),
                     std::filesystem::file_size(path), jpegRatio);
  }

  ArrayHeader header() const {
    ArrayHeader header{path, ElementType::U8, {1}, FileFormat::Jpeg};
    if (reader.channels() > 1)
      header.shape.push_back(static_cast<int64_t>(reader.channels()));
    header.shape.insert(header.shape.end(), {reader.height(), reader.width()});
    return header;
  }

  Array read() {
    std::vector<std::byte> pixels, line(reader.width() * reader.channels());
    bool ok = reader.start();
    for (uint32_t y = 0; ok && y < reader.height(); ++y) {
      ok = reader.readLine(line.data());
      pixels.insert(pixels.end(), line.begin(), line.end());
    }
    if (!ok || !reader.finish())
      throw damaged();
    auto planes = std::make_shared<std::vector<std::byte>>();
    appendPlanes(pixels, reader.channels(), 1, *planes);
    return Array(header(), *planes, planes);
  }

private:
  Error damaged() const { return damagedFile(path, printable(reader.reason())); }

  const std::string &path;
  InputFile file;
  JpegReader reader;
};

} // namespace

Array readJpeg(const std::string &path) { return JpegFile(path).read(); }
ArrayHeader jpegHeader(const std::string &path) { return JpegFile(path).header(); }

} // namespace dlc::rt
