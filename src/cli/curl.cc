// One curl for each request. Its output is the head of the answer and then the body, through a
// pipe: a server that is faster than the disk waits. Redirects are not curl's affair, and neither
// are the user's options for curl (-q), which might send the output elsewhere.
#include "src/cli/curl.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/base/utf8.h"

namespace pawl::cli {
namespace {

constexpr size_t kMostHead = size_t{256} << 10;
constexpr size_t kMostComplaint = 4096;

// A pipe whose ends close themselves.
struct CurlPipe {
  int read = -1, write = -1;
  CurlPipe() {
    if (const std::optional<os::Pipe> ends = os::MakePipe(); ends) {
      read = ends->read;
      write = ends->write;
    }
  }
  CurlPipe(const CurlPipe&) = delete;
  CurlPipe& operator=(const CurlPipe&) = delete;
  ~CurlPipe() {
    Close(read);
    Close(write);
  }
  static void Close(int& fd) {
    if (fd >= 0) os::CloseFile(fd);
    fd = -1;
  }
};

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"\n";
}

// curl's options, a line each. No text in it has line feeds: ParseUrl and the token's check see to
// that.
std::string Options(const HubRequest& request) {
  std::string text =
      "silent\nshow-error\ninclude\nno-buffer\ngloboff\nproto = \"=http,https\"\n"
      "suppress-connect-headers\n"
      "connect-timeout = 30\nspeed-limit = 1\nspeed-time = 60\nuser-agent = \"pawl/" PAWL_VERSION
      "\"\n";
  text += "url = " + Quoted(request.url);
  for (const auto& [name, value] : request.headers) {
    text += "header = " + Quoted(name + ": " + value);
  }
  return text;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

// "HTTP/1.1 200 OK" and the lines after it.
HubAnswer ReadHead(std::string_view head) {
  HubAnswer answer;
  bool first = true;
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = Trimmed(head.substr(0, end));
    head.remove_prefix(std::min(end + 1, head.size()));
    if (first) {
      const size_t space = std::min(line.find(' '), line.size());
      for (const char c : line.substr(space).substr(0, 4)) {
        if (IsDigit(c)) answer.status = answer.status * 10 + (c - '0');
      }
      first = false;
    } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
      answer.headers.emplace_back(line.substr(0, colon), Trimmed(line.substr(colon + 1)));
    }
  }
  return answer;
}

// Splits what curl writes into head and body.
class Output {
 public:
  explicit Output(const HubReceiver& receiver) : receiver_(receiver) {}
  // false: no more is wanted.
  bool Take(std::string_view bytes) {
    if (in_body_) return receiver_.body(bytes);
    head_ += bytes;
    while (true) {
      size_t end = head_.find("\r\n\r\n");
      if (end == std::string::npos) return head_.size() <= kMostHead;
      end += 4;
      const HubAnswer answer = ReadHead(std::string_view(head_).substr(0, end));
      const std::string rest = head_.substr(end);
      head_ = rest;
      // Of the kind "continue": the answer is still to come.
      if (answer.status >= 100 && answer.status < 200) continue;
      in_body_ = true;
      if (!receiver_.head(answer)) return false;
      return rest.empty() || receiver_.body(rest);
    }
  }

 private:
  const HubReceiver& receiver_;
  std::string head_;
  bool in_body_ = false;
};

// Reads both pipes until curl has closed them. false: the receiver wants no more.
bool ReadAll(int out, int complaints, Output& output, std::string& complaint) {
  std::array<os::Ready, 2> waits{{{.file = out}, {.file = complaints}}};
  std::string buffer(size_t{1} << 16, '\0');
  while (waits[0].file >= 0 || waits[1].file >= 0) {
    if (os::WaitUntilReady(waits, -1) < 0) return true;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (!waits[i].ready) continue;
      const int64_t got = os::Read(waits[i].file, buffer.data(), buffer.size());
      if (got <= 0) {
        waits[i].file = -1;
        continue;
      }
      const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
      if (i == 1) {
        complaint += bytes.substr(0, kMostComplaint - std::min(kMostComplaint, complaint.size()));
      } else if (!output.Take(bytes)) {
        return false;
      }
    }
  }
  return true;
}

Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const int64_t done = os::Write(fd, text.data(), text.size());
    // curl has ended; its exit code says why.
    if (done <= 0) return {};
    text.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

// Of curl's exit codes: no host, no connection, a partial file, an operation that took too long, an
// empty answer, trouble when sending or receiving, HTTP/2 and HTTP/3.
bool MayPass(int code) {
  static constexpr std::array<int, 13> kCodes = {5, 6, 7, 16, 18, 28, 52, 55, 56, 92, 95, 96, 35};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

Result<os::ProcessId> Start(const CurlPipe& in, const CurlPipe& out, const CurlPipe& complaints) {
  os::ProcessId pid = -1;
  const int failed = os::StartProgram({.arguments = {"curl", "-q", "-K", "-"},
                                       .in = in.read,
                                       .out = out.write,
                                       .err = complaints.write},
                                      pid);
  if (failed == 0) return pid;
  return Error{ErrorCode::kUnsupported,
               std::string("curl cannot be run: ") + std::strerror(failed) +
                   "; install curl, or fetch the model with Python: pawl.pull(NAME)",
               ""};
}

}  // namespace

Status CurlGet(const HubRequest& request, const HubReceiver& receiver) {
  CurlPipe in, out, complaints;
  if (in.read < 0 || out.read < 0 || complaints.read < 0) {
    return Error{ErrorCode::kIo, std::string("cannot make a pipe: ") + std::strerror(errno), ""};
  }
  const Result<os::ProcessId> pid = Start(in, out, complaints);
  if (!pid.ok()) return pid.error();
  CurlPipe::Close(in.read);
  CurlPipe::Close(out.write);
  CurlPipe::Close(complaints.write);
  (void)WriteAll(in.write, Options(request));
  CurlPipe::Close(in.write);
  Output output(receiver);
  std::string complaint;
  const bool all = ReadAll(out.read, complaints.read, output, complaint);
  if (!all) os::AskToEnd(*pid);
  const int code = os::WaitForEnd(*pid);
  if (!all || code == 0) return {};
  while (!complaint.empty() && (complaint.back() == '\n' || complaint.back() == '\r')) {
    complaint.pop_back();
  }
  if (code == 127) {
    complaint = "curl cannot be run; install curl, or fetch the model with Python: pawl.pull(NAME)";
  }
  return Error{MayPass(code) ? ErrorCode::kIo : ErrorCode::kInvalid,
               complaint.empty() ? "curl ended with code " + std::to_string(code) : complaint, ""};
}

}  // namespace pawl::cli
