#include "codband/server/http/gzip_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "codband/base/check.h"

namespace codband::server {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::size_t kDecodeStep = 16 * 1024;

}  // namespace

struct GzipDecoder::State {
  z_stream stream{};
  bool between_members = true;
  bool any_member = false;
};

GzipDecoder::GzipDecoder() : state_(std::make_unique<State>()) {
  const int result = inflateInit2(&state_->stream, kGzipOnly);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  CODBAND_CHECK(result == Z_OK);
}

GzipDecoder::~GzipDecoder() { inflateEnd(&state_->stream); }

Status GzipDecoder::Decode(std::string_view& input, std::string& out, std::size_t most) {
  z_stream& stream = state_->stream;
  const std::size_t end = out.size() + most;
  while (out.size() < end) {
    if (state_->between_members) {
      if (input.empty()) return {};
      if (state_->any_member) inflateReset(&stream);
      state_->between_members = false;
      state_->any_member = true;
    }
    const std::size_t before = out.size();
    const std::size_t room = std::min(end - before, kDecodeStep);
    const auto given =
        static_cast<uInt>(std::min<std::size_t>(input.size(), std::numeric_limits<uInt>::max()));
    out.resize(before + room);
    // zlib does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream, Z_NO_FLUSH);
    input.remove_prefix(given - stream.avail_in);
    out.resize(before + room - stream.avail_out);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      state_->between_members = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Status::InvalidArgument("body: is not valid gzip");
    } else if (stream.avail_out > 0 && input.empty()) {
      return {};  // it needs more input
    }
  }
  return {};
}

Status GzipDecoder::Finish() const {
  if (state_->between_members && state_->any_member) return {};
  return Status::InvalidArgument("body: ends before its gzip does");
}

}  // namespace codband::server
