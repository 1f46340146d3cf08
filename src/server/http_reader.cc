// The head, the sizes of chunks and the trailers are lines; a line is gathered up to its CR LF,
// then read as a whole by the grammar of its part. Bodies are taken as they come. No byte is looked
// at twice, and no line is longer than the limit for all of them.
//
// Where two readers could disagree on where a request ends, one of them in front of us, that is how
// a second request is smuggled in (RFC 9112, 11.2). So whatever the standard lets a recipient
// repair is refused instead, and after a refusal nothing of the connection is read as a request any
// more.
#include "src/server/http_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pawl::server {
namespace {

constexpr size_t kMostSizeDigits = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsTokenChar(char c) {
  return IsDigit(c) || IsAlpha(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos;
}
int HexOf(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Characters of RFC 3986, of which `also` are reserved; each % with two hexadecimal digits.
bool IsUriText(std::string_view text, std::string_view also) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3 || HexOf(text[i + 1]) < 0 || HexOf(text[i + 2]) < 0) return false;
      i += 2;
    } else if (!IsDigit(c) && !IsAlpha(c) &&
               std::string_view("-._~!$&'()*+,;=").find(c) == std::string::npos &&
               also.find(c) == std::string::npos) {
      return false;
    }
  }
  return true;
}

// A field's value, or the text in quotes: visible characters, white space, and bytes above ASCII.
bool IsFieldText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7F');
  });
}

void SkipBlanks(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}
std::string_view Trimmed(std::string_view text) {
  SkipBlanks(text);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view TakeToken(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && IsTokenChar(text[size])) ++size;
  const std::string_view token = text.substr(0, size);
  text.remove_prefix(size);
  return token;
}

bool TakeQuoted(std::string_view& text) {
  if (text.empty() || text[0] != '"') return false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
    if (text[i] == '\\') ++i;
  }
  return false;
}

// *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted ) ] ); RFC 9112, 7.1.1.
bool AreChunkExtensions(std::string_view text) {
  if (!IsFieldText(text)) return false;
  while (!text.empty()) {
    SkipBlanks(text);
    if (text.empty() || text[0] != ';') return false;
    text.remove_prefix(1);
    SkipBlanks(text);
    if (TakeToken(text).empty()) return false;
    std::string_view after = text;
    SkipBlanks(after);
    if (after.empty() || after[0] != '=') continue;
    text = after.substr(1);
    SkipBlanks(text);
    if (TakeToken(text).empty() && !TakeQuoted(text)) return false;
  }
  return true;
}

// Calls `each` with the elements of a list, trimmed, empty ones too.
template <typename Each>
void ForElements(std::string_view list, const Each& each) {
  for (;;) {
    const size_t comma = list.find(',');
    each(Trimmed(list.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string LowerAscii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool IsHttpToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsHttpAuthority(std::string_view text) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    host = text.substr(1, end - 1);
    const bool address = std::all_of(host.begin(), host.end(),
                                     [](char c) { return HexOf(c) >= 0 || c == ':' || c == '.'; });
    if (!address) return false;
    port = text.substr(end + 1);
    if (!port.empty() && port[0] != ':') return false;
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
    if (!IsUriText(host, "")) return false;
  }
  if (!port.empty()) port.remove_prefix(1);
  return port.size() <= 5 && std::all_of(port.begin(), port.end(), IsDigit);
}

bool HttpReader::Fail(int status, std::string message) {
  error_ = {.status = status, .message = std::move(message)};
  state_ = State::kFailed;
  return false;
}

void HttpReader::Reset() {
  state_ = State::kStart;
  part_ = Part::kRequestLine;
  request_ = {};
  error_ = {};
  line_ = {};
  authority_ = {};
  head_bytes_ = 0;
  left_ = length_ = 0;
  minor_ = 1;
  chunked_ = keep_alive_ = has_authority_ = blank_ = false;
  expects_ = Expects::kNothing;
}

size_t HttpReader::Feed(std::string_view bytes) {
  const size_t given = bytes.size();
  while (!bytes.empty() &&
         (state_ == State::kStart || state_ == State::kHead || state_ == State::kBody)) {
    if (state_ == State::kStart) state_ = State::kHead;
    bytes.remove_prefix(part_ == Part::kData ? Data(bytes) : Line(bytes));
  }
  return given - bytes.size();
}

void HttpReader::ReadBody() {
  state_ = has_body() ? State::kBody : State::kDone;
  part_ = chunked_ ? Part::kSize : Part::kData;
  left_ = length_;
}

// ---- Lines ----

// Part of a line, or the rest of it with its end.
size_t HttpReader::Line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t size = end == std::string_view::npos ? bytes.size() : end + 1;
  // The size of a chunk is part of the body, what else the line may have is not.
  const size_t free = part_ == Part::kSize ? kMostSizeDigits + 2 : 0;
  const size_t most = limits_.header_bytes - head_bytes_ + free;
  if (line_.size() + size > most) {
    if (part_ == Part::kRequestLine) {
      Fail(414, "the request line is too long");
    } else {
      Fail(431, "the headers are too large");
    }
    return size;
  }
  if (part_ == Part::kDataEnd && line_.size() + size > 2) {
    Fail(400, "not HTTP: a chunk is longer than it says");
    return size;
  }
  line_.append(bytes.data(), size);
  if (end != std::string_view::npos) EndOfLine();
  return size;
}

void HttpReader::EndOfLine() {
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') {
    Fail(400, "not HTTP: a line ends without a carriage return");
    return;
  }
  const std::string_view line(line_.data(), line_.size() - 2);
  if (part_ != Part::kSize && part_ != Part::kDataEnd) head_bytes_ += line_.size();
  switch (part_) {
    case Part::kRequestLine:
      if (line.empty() && !blank_) {  // one is let pass, RFC 9112, 2.2
        blank_ = true;
      } else if (RequestLine(line)) {
        part_ = Part::kField;
      }
      break;
    case Part::kField:
      if (line.empty()) {
        EndOfHead();
      } else {
        Field(line, true);
      }
      break;
    case Part::kSize:
      ChunkSize(line);
      break;
    case Part::kDataEnd:
      part_ = Part::kSize;
      if (!line.empty()) Fail(400, "not HTTP: a chunk is longer than it says");
      break;
    case Part::kTrailer:
      if (line.empty()) {
        state_ = State::kDone;
      } else {
        Field(line, false);
      }
      break;
    case Part::kData:
      break;
  }
  line_.clear();
}

bool HttpReader::RequestLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  const std::string_view method = line.substr(0, first);
  if (!IsHttpToken(method)) return Fail(400, "not HTTP: no method");
  request_.method = method;
  if (first == std::string_view::npos || first == last) {
    return Fail(400, "not HTTP: a request line has a method, a target and a version");
  }
  if (!Version(line.substr(last + 1))) return false;
  return Target(line.substr(first + 1, last - first - 1));
}

bool HttpReader::Version(std::string_view version) {
  if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) ||
      version[6] != '.' || !IsDigit(version[7])) {
    return Fail(400, "not HTTP: no version");
  }
  if (version[5] != '1') return Fail(505, "the version is not HTTP/1.1");
  minor_ = version[7] - '0';
  return true;
}

// origin-form, absolute-form, and * of OPTIONS; RFC 9112, 3.2.
bool HttpReader::Target(std::string_view target) {
  if (request_.method == "CONNECT") return Fail(405, "this is no proxy");
  if (target == "*" && request_.method == "OPTIONS") {
    request_.path = target;
    return true;
  }
  const std::string scheme = LowerAscii(target.substr(0, target.find("://")));
  if (scheme == "http" || scheme == "https") {
    target.remove_prefix(scheme.size() + 3);
    const std::string_view authority = target.substr(0, target.find_first_of("/?"));
    if (authority.empty() || !IsHttpAuthority(authority)) {
      return Fail(400, "not HTTP: no host in the target");
    }
    target.remove_prefix(authority.size());
    authority_ = authority;
    has_authority_ = true;
  } else if (!target.starts_with('/')) {
    return Fail(400, "not HTTP: the target is no path");
  }
  if (!IsUriText(target, ":@/?")) return Fail(400, "not HTTP: the target is no path");
  request_.path = target.substr(0, target.find('?'));
  if (request_.path.size() < target.size()) {
    request_.query = target.substr(request_.path.size() + 1);
  }
  if (request_.path.empty()) request_.path = "/";
  return true;
}

bool HttpReader::Field(std::string_view line, bool keep) {
  const size_t colon = line.find(':');
  // White space at the begin (obs-fold) and before the colon is none of a token's.
  if (colon == std::string_view::npos || !IsHttpToken(line.substr(0, colon))) {
    return Fail(400, "not HTTP: no name of a header field");
  }
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (!IsFieldText(value)) {
    return Fail(400, "not HTTP: control characters in a header field");
  }
  if (!keep) return true;  // nothing here wants a trailer
  if (request_.headers.size() >= limits_.fields) return Fail(431, "there are too many headers");
  request_.headers.emplace_back(LowerAscii(line.substr(0, colon)), value);
  return true;
}

// ---- The head as a whole ----

void HttpReader::EndOfHead() {
  if (!Hosts() || !Framing()) return;
  Connections();
  state_ = State::kHeadDone;
}

// RFC 9112, 3.2: one Host, which a target with a host overrides.
bool HttpReader::Hosts() {
  int count = 0;
  for (auto& [name, value] : request_.headers) {
    if (name != "host") continue;
    if (++count > 1) return Fail(400, "there is more than one Host");
    if (!IsHttpAuthority(value)) return Fail(400, "Host is no host");
    if (has_authority_) value = authority_;
  }
  if (count == 0 && http11()) return Fail(400, "there is no Host");
  if (count == 0 && has_authority_) request_.headers.emplace_back("host", authority_);
  return true;
}

// RFC 9112, 6.1 to 6.3.
bool HttpReader::Framing() {
  int lengths = 0, codings = 0;
  bool good = true, unknown = false, last_is_chunked = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "content-length") {
      ++lengths;
      if (value.empty() || !std::all_of(value.begin(), value.end(), IsDigit)) good = false;
      length_ = 0;
      for (const char c : value) {
        const auto digit = static_cast<uint64_t>(c - '0');
        constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
        length_ = length_ > (kMost - digit) / 10 ? kMost : 10 * length_ + digit;
      }
    } else if (name == "transfer-encoding") {
      ForElements(value, [&](std::string_view coding) {
        if (last_is_chunked || !IsHttpToken(coding)) good = false;
        last_is_chunked = LowerAscii(coding) == "chunked";
        unknown = unknown || !last_is_chunked;
        ++codings;
      });
    }
  }
  if (!good && codings == 0) return Fail(400, "Content-Length is no number");
  if (lengths > 1) return Fail(400, "there is more than one Content-Length");
  if (codings == 0) return true;
  if (lengths > 0) return Fail(400, "there are Content-Length and Transfer-Encoding");
  if (!http11()) return Fail(400, "HTTP/1.0 has no Transfer-Encoding");
  if (!good || !last_is_chunked) {
    return Fail(400, "the last of Transfer-Encoding has to be chunked, once");
  }
  if (unknown) return Fail(501, "of Transfer-Encoding only chunked is known");
  chunked_ = true;
  return true;
}

// Connection and Expect; RFC 9112, 9.3 and RFC 9110, 10.1.1.
void HttpReader::Connections() {
  bool close = false, keep = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "connection") {
      ForElements(value, [&](std::string_view option) {
        const std::string word = LowerAscii(option);
        close = close || word == "close";
        keep = keep || word == "keep-alive";
      });
    } else if (name == "expect" && http11()) {
      const bool known = LowerAscii(value) == "100-continue";
      if (!known) {
        expects_ = Expects::kOther;
      } else if (expects_ == Expects::kNothing) {
        expects_ = Expects::kContinue;
      }
    }
  }
  keep_alive_ = !close && (http11() || keep);
}

// ---- The body ----

size_t HttpReader::Data(std::string_view bytes) {
  const size_t size = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
  request_.body.Append(bytes.substr(0, size));
  left_ -= size;
  if (left_ > 0) return size;
  if (chunked_) {
    part_ = Part::kDataEnd;
  } else {
    state_ = State::kDone;
  }
  return size;
}

bool HttpReader::ChunkSize(std::string_view line) {
  size_t digits = 0;
  uint64_t size = 0;
  for (; digits < line.size() && HexOf(line[digits]) >= 0; ++digits) {
    if (digits == kMostSizeDigits) return Fail(400, "not HTTP: the size of a chunk");
    size = 16 * size + static_cast<uint64_t>(HexOf(line[digits]));
  }
  const std::string_view extensions = line.substr(digits);
  if (digits == 0 || !AreChunkExtensions(extensions)) {
    return Fail(400, "not HTTP: the size of a chunk");
  }
  if (extensions.size() > limits_.header_bytes - head_bytes_) {
    return Fail(431, "the headers are too large");
  }
  head_bytes_ += extensions.size();
  if (size > limits_.body_bytes - request_.body.size()) {
    return Fail(413, "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes");
  }
  left_ = size;
  part_ = size == 0 ? Part::kTrailer : Part::kData;
  return true;
}

}  // namespace pawl::server
