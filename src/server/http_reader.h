// HttpReader: reads requests as RFC 9112 and RFC 9110 write them, and nothing else.
//
//   HttpReader reader({.header_bytes = 32 << 10, .body_bytes = 8 << 20});
//   size_t used = reader.Feed(bytes);
//   switch (reader.state()) {
//     case kHeadDone: ... reader.request(), reader.length() ...; reader.ReadBody(); Feed the rest
//     case kDone:     ... reader.TakeRequest(); reader.Reset(); Feed what follows
//     case kFailed:   ... reader.error(): the answer, and the connection has to be closed
//     default:        ... more bytes are wanted
//   }
//
// What has two readings is refused: a bare CR or LF, obs-fold, white space before a colon,
// Content-Length twice or next to Transfer-Encoding, a coding other than one `chunked`.
#ifndef PAWL_SRC_SERVER_HTTP_READER_H_
#define PAWL_SRC_SERVER_HTTP_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/server/api_error.h"
#include "src/server/http.h"

namespace pawl::server {

class HttpReader {
 public:
  struct Limits {
    size_t header_bytes = 32 << 10;  // request line, fields, extensions of chunks and trailers
    size_t fields = 256;
    size_t body_bytes = 8 << 20;  // of a chunked body; Content-Length is the caller's affair
  };
  enum class State { kStart, kHead, kHeadDone, kBody, kDone, kFailed };

  explicit HttpReader(Limits limits) : limits_(limits) {}

  // Takes bytes from the front and tells how many: all of them, unless the head or the request is
  // complete, or wrong, before.
  size_t Feed(std::string_view bytes);
  // From kHeadDone on: the body is wanted.
  void ReadBody();
  // From kDone on: the next request.
  void Reset();

  State state() const { return state_; }
  // A byte of a request is there, and not only an empty line before it.
  bool begun() const {
    return state_ != State::kStart && (part_ != Part::kRequestLine || !line_.empty());
  }
  const ApiError& error() const { return error_; }
  // From kHeadDone on whole but for the body; before, and where it is wrong, as far as it was read.
  const HttpRequest& request() const { return request_; }
  void SetId(std::string_view id) { request_.id = id; }
  void SetPeer(std::string_view peer) { request_.peer = peer; }
  HttpRequest TakeRequest() { return std::move(request_); }

  // Of the head.
  bool http11() const { return minor_ > 0; }
  bool keep_alive() const { return keep_alive_; }
  bool has_body() const { return chunked_ || length_ > 0; }
  uint64_t length() const { return length_; }  // of Content-Length; where it has no end, 2^64 - 1
  bool chunked() const { return chunked_; }
  // What Expect asks: nothing, 100-continue, or something that this server cannot do.
  enum class Expects { kNothing, kContinue, kOther };
  Expects expects() const { return expects_; }

 private:
  enum class Part { kRequestLine, kField, kData, kSize, kDataEnd, kTrailer };

  size_t Line(std::string_view bytes);
  size_t Data(std::string_view bytes);
  void EndOfLine();
  bool RequestLine(std::string_view line);
  bool Target(std::string_view target);
  bool Version(std::string_view version);
  bool Field(std::string_view line, bool keep);
  bool ChunkSize(std::string_view line);
  void EndOfHead();
  bool Framing();
  bool Hosts();
  void Connections();
  // false, for the caller to return.
  bool Fail(int status, std::string message);

  const Limits limits_;
  State state_ = State::kStart;
  Part part_ = Part::kRequestLine;
  HttpRequest request_;
  ApiError error_;
  std::string line_;
  std::string authority_;  // of a target that has one
  size_t head_bytes_ = 0;  // of what header_bytes bounds
  uint64_t left_ = 0;      // of the body, or of the chunk
  uint64_t length_ = 0;
  int minor_ = 1;
  bool chunked_ = false, keep_alive_ = false, has_authority_ = false, blank_ = false;
  Expects expects_ = Expects::kNothing;
};

// The characters of a token (RFC 9110, 5.6.2).
bool IsHttpToken(std::string_view text);
// uri-host [ ":" port ], without a user; may be empty.
bool IsHttpAuthority(std::string_view text);
std::string LowerAscii(std::string_view text);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_HTTP_READER_H_
