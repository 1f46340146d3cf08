// Arbitrary bytes as what a client says to a connection, cut anywhere, after which it sends no
// more. A strict reader of the whole text says what has to come of it: each request that it accepts
// is answered as a whole, what it does not accept is answered with one error, after which the
// connection is closed, and there is nothing else.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_util.h"
#include "tests/server/http_echo.h"
#include "tests/server/memory_stream.h"

namespace pawl::server {
namespace {

constexpr size_t kMostHeader = 300, kMostBody = 64, kMostInput = 8000;

constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdefABCDEF";
constexpr std::string_view kToken =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kName =
    "-._~!$&'()*+,;=%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Ends the request that is read.
struct Refused {};
void Want(bool good) {
  if (!good) throw Refused{};
}

bool Only(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}
std::string Small(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}
std::string_view Trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}
bool Escapes(std::string_view text) {
  for (size_t i = 0; (i = text.find('%', i)) != std::string_view::npos; ++i) {
    if (i + 3 > text.size() || !Only(text.substr(i + 1, 2), kHex)) return false;
  }
  return true;
}
void WantAuthority(std::string_view text) {
  const size_t end = text.starts_with('[') ? text.find(']') + 1 : text.find(':');
  const std::string_view host = text.substr(0, end), rest = text.substr(std::min(end, text.size()));
  if (text.starts_with('[')) {
    Want(host.size() >= 4 && Only(host.substr(1, host.size() - 2), std::string(kHex) + ":."));
  } else {
    Want(Only(host, kName) && Escapes(host));
  }
  Want(rest.empty() || (rest[0] == ':' && rest.size() <= 6 && Only(rest.substr(1), kDigits)));
}

// What a connection has to say to a request.
struct Wanted {
  int status = 200;
  std::string echo;
  bool head = false, closes = false;
};

// The strict reader: RFC 9112 as a program that has the whole text.
class StrictReader {
 public:
  explicit StrictReader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty() || text_ == "\r\n"; }

  Wanted Next() {
    spent_ = 0;
    std::string_view line = Line();
    if (line.empty()) line = Line();
    const size_t first = line.find(' '), last = line.rfind(' ');
    Want(first != std::string_view::npos && first < last);
    const std::string_view version = line.substr(last + 1);
    Want(version.size() == 8 && version.starts_with("HTTP/1.") && Only(version.substr(7), kDigits));
    const bool old = version[7] == '0';
    HttpRequest request;
    request.method = line.substr(0, first);
    Want(!request.method.empty() && Only(request.method, kToken) && request.method != "CONNECT");
    std::string_view target = line.substr(first + 1, last - first - 1), authority;
    if (const std::string small = Small(target.substr(0, 8));
        small.starts_with("http://") || small == "https://") {
      target.remove_prefix(target.find("//") + 2);
      authority = target.substr(0, target.find_first_of("/?"));
      target.remove_prefix(authority.size());
      Want(!authority.empty());
      WantAuthority(authority);
    } else {
      Want(target.starts_with('/') || (target == "*" && request.method == "OPTIONS"));
    }
    Want(Only(target, std::string(kName) + ":@/?") && Escapes(target));
    std::map<std::string, std::vector<std::string>> fields;
    while (!(line = Line()).empty()) {
      const auto [name, value] = Field(line);
      fields[name].push_back(value);
      request.headers.emplace_back(name, value);
    }
    Want(fields["host"].size() == 1 || (old && fields["host"].empty()));
    for (const std::string& host : fields["host"]) WantAuthority(host);
    const auto &lengths = fields["content-length"], &codings = fields["transfer-encoding"];
    Want(lengths.size() + codings.size() <= 1);
    const bool chunked = !codings.empty();
    Want(!chunked || (!old && Small(codings[0]) == "chunked"));
    std::string length = lengths.empty() ? "0" : lengths[0];
    Want(!length.empty() && Only(length, kDigits));
    length.erase(0, length.find_first_not_of('0'));
    bool close = false, keep = !old;
    for (const std::string& options : fields["connection"]) {
      std::string_view rest = options;
      for (size_t comma = 0; comma != std::string_view::npos;) {
        comma = rest.find(',');
        const std::string option = Small(Trim(rest.substr(0, comma)));
        close = close || option == "close";
        keep = keep || option == "keep-alive";
        if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
      }
    }
    Wanted out;
    out.head = request.method == "HEAD";
    out.closes = close || !keep;
    bool expects = false;
    for (const std::string& value : fields["expect"]) {
      expects = expects || (!old && Small(value) != "100-continue");
    }
    const bool too_long = length.size() > 2 || (!length.empty() && std::stoul(length) > kMostBody);
    if (const auto error = JudgeHeaders({}, request))
      out.status = error->status;
    else if (target.substr(0, target.find('?')) == "/none")
      out.status = 404;
    else if (too_long)
      out.status = 413;
    else if (expects)
      out.status = 417;
    if (out.status != 200) {
      out.closes = out.closes || chunked || !length.empty();
      return out;
    }
    const std::string body = chunked ? Chunks() : Take(length.empty() ? 0 : std::stoul(length));
    out.echo = request.method + " " + (target.starts_with('?') || target.empty() ? "/" : "");
    out.echo += target.ends_with('?') && target.find('?') == target.size() - 1
                    ? target.substr(0, target.size() - 1)
                    : target;
    out.echo += " " + std::to_string(body.size()) + ":" + body;
    return out;
  }

 private:
  // Up to CR LF, both of which are in no other place.
  std::string_view Line(bool counts = true) {
    const size_t end = text_.find("\r\n");
    Want(end != std::string_view::npos);
    const std::string_view line = text_.substr(0, end);
    Want(line.find_first_of("\r\n") == std::string_view::npos);
    text_.remove_prefix(end + 2);
    if (counts) spent_ += line.size() + 2;
    Want(spent_ <= kMostHeader);
    return line;
  }
  std::string Take(size_t size) {
    Want(text_.size() >= size);
    const std::string out(text_.substr(0, size));
    text_.remove_prefix(size);
    return out;
  }
  static void WantText(std::string_view text) {
    for (const char c : text) Want(c == '\t' || (static_cast<unsigned char>(c) >= 32 && c != 127));
  }
  static std::pair<std::string, std::string> Field(std::string_view line) {
    const size_t colon = line.find(':');
    Want(colon != std::string_view::npos && colon > 0 && Only(line.substr(0, colon), kToken));
    WantText(Trim(line.substr(colon + 1)));
    return {Small(line.substr(0, colon)), std::string(Trim(line.substr(colon + 1)))};
  }
  std::string Chunks() {
    std::string body;
    for (;;) {
      std::string_view line = Line(false);
      const size_t digits = std::min(line.find_first_not_of(kHex), line.size());
      Want(digits > 0 && digits <= 16);
      spent_ += line.size() - digits;
      Want(spent_ <= kMostHeader);
      Extensions(line.substr(digits));
      const size_t size = std::strtoull(std::string(line.substr(0, digits)).c_str(), nullptr, 16);
      if (size == 0) break;
      Want(size <= kMostBody - body.size());
      body += Take(size);
      Want(Take(2) == "\r\n");
    }
    for (std::string_view line; !(line = Line()).empty();) Field(line);
    return body;
  }
  static void Extensions(std::string_view rest) {
    WantText(rest);
    const auto skip = [&](std::string_view set) {
      const size_t size = std::min(rest.find_first_not_of(set), rest.size());
      rest.remove_prefix(size);
      return size;
    };
    while (!rest.empty()) {
      skip(" \t");
      Want(rest.starts_with(';'));
      rest.remove_prefix(1);
      skip(" \t");
      Want(skip(kToken) > 0);
      if (!Trim(rest).starts_with('=')) continue;
      rest.remove_prefix(rest.find('=') + 1);
      skip(" \t");
      if (skip(kToken) > 0) continue;
      Want(rest.starts_with('"'));
      size_t end = 1;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      Want(end < rest.size());
      rest.remove_prefix(end + 1);
    }
  }

  std::string_view text_;
  size_t spent_ = 0;
};

void Check(bool holds, const char* what, std::string_view input, std::string_view said) {
  if (holds) return;
  std::fprintf(stderr, "%s\n--- input\n%.*s\n--- said\n%.*s\n", what,
               static_cast<int>(input.size()), input.data(), static_cast<int>(said.size()),
               said.data());
  std::abort();
}

// What is said to the text in pieces.
std::string Talk(std::string_view input, uint64_t seed, bool& closed) {
  static const std::shared_ptr<HttpShared> shared = [] {
    HttpOptions options;
    options.max_header_bytes = kMostHeader;
    options.max_body_bytes = kMostBody;
    return std::make_shared<HttpShared>(options, EchoHandler());
  }();
  MemoryClient client(shared, size_t{1} << 16);
  if ((seed & 1) != 0) client.wire().room = 1 + (seed >> 8) % 100;
  while (!input.empty()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const size_t size = (seed & 0x300) == 0 ? input.size() : 1 + (seed >> 33) % 40;
    client.Say(input.substr(0, size));
    input.remove_prefix(std::min(size, input.size()));
  }
  client.EndSaying();
  closed = client.wire().out_ended || client.wire().closed;
  const std::string said = client.wire().out;
  client.wire().broken = true;
  client.Run(IoTask::kGone);
  Check(shared->exchanges == 0 && shared->connections == 0, "the counts are wrong", input, said);
  return said;
}

void TryHttp(std::string_view input) {
  std::vector<Wanted> wanted;
  StrictReader reader(input);
  bool refused = false;
  try {
    while (!reader.at_end() && (wanted.empty() || !wanted.back().closes)) {
      wanted.push_back(reader.Next());
    }
  } catch (const Refused&) {
    refused = true;
  }
  uint64_t seed = 14695981039346656037u;
  for (const char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  bool closed = false, whole = false;
  const std::string said = Talk(input, seed, closed);
  std::vector<bool> heads;
  for (const Wanted& one : wanted) heads.push_back(one.head);
  std::vector<EchoAnswer> answers = ReadAnswers(said, whole, heads);
  if (!whole && refused) {  // a HEAD that is refused has no body either
    heads.push_back(true);
    answers = ReadAnswers(said, whole, heads);
  }
  Check(whole, "no answers", input, said);
  Check(closed, "not closed", input, said);
  Check(answers.size() == wanted.size() + (refused ? 1 : 0), "another number of answers", input,
        said);
  for (size_t i = 0; i < wanted.size(); ++i) {
    Check(answers[i].status == wanted[i].status, "another status", input, said);
    const bool echoes = wanted[i].status == 200 && !wanted[i].head;
    Check(!echoes || answers[i].body == wanted[i].echo, "another request", input, said);
  }
  if (!refused) return;
  const int status = answers.back().status;
  Check((status >= 400 && status < 500) || status == 501 || status == 505, "not refused", input,
        said);
  Check(answers.back().head.find("\r\nconnection: close\r\n") != std::string::npos,
        "refused, and not closed", input, said);
}

}  // namespace
}  // namespace pawl::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > pawl::server::kMostInput) return 0;
  pawl::server::TryHttp({reinterpret_cast<const char*>(data), size});
  return 0;
}
