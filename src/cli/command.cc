// Messages, input and output of the command line. All printing of Pawl happens in this folder.
#include "src/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/base/utf8.h"

namespace pawl::cli {
namespace {

constexpr const char* kStandardInput = "standard input";
constexpr size_t kChunk = 1 << 16;  // bytes that a LineReader asks for

// The first reason why standard output could not be written; 0: none so far.
int write_error = 0;
void RememberWriteError() {
  if (write_error == 0) write_error = errno;
}

}  // namespace

int Fail(std::string_view command, const Error& error) {
  Note(command, error.ToString());
  return error.code == ErrorCode::kInternal ? kExitBug : kExitBadInput;
}

void Note(std::string_view command, std::string_view text) {
  // What the user's files say must not end the line, nor speak to the terminal.
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02X}", byte);
    } else {
      shown += c;
    }
  }
  const std::string line =
      fmt::format("pawl{}{}: {}\n", command.empty() ? "" : " ", command, shown);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string UsageMessage(const CLI::ParseError& error) {
  // CLI11 knows the option in the text of its exceptions alone, so that is taken apart. What is not
  // recognised stays as it is.
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string kind = error.get_name();
  const auto before = [&text](std::string_view mark) { return text.substr(0, text.find(mark)); };
  const auto after = [&text](std::string_view mark) {
    return text.substr(text.find(mark) + mark.size());
  };
  const auto has = [&text](std::string_view mark) { return text.find(mark) != std::string::npos; };
  if (kind == "FileError" && has(" was not readable")) {
    const Result<std::string> file = ReadFile(before(" was not readable"));
    return "--config: " + (file.ok() ? text : file.error().ToString());
  }
  if (kind == "RequiredError" && text.ends_with(" is required")) {
    return before(" is required") + ": must be given";
  }
  if (kind == "ExcludesError" && has(" excludes ")) {
    return fmt::format("{}: cannot be given together with {}", before(" excludes "),
                       after(" excludes "));
  }
  if (has(" not expected: ")) {
    // Of several the first is last, and the others are often its values.
    std::string extra = after(" not expected: ");
    if (has("arguments were")) extra.erase(0, extra.rfind(' ') + 1);
    return extra + (extra.starts_with('-') ? ": there is no such option" : ": was not expected");
  }
  if (kind == "ArgumentMismatch" && has(": At Most 1 required")) {
    return before(": ") + ": can be given only once";
  }
  for (const std::string_view bound : {": At least ", ": At Most "}) {
    constexpr std::string_view kGot = " required but received ";
    if (kind != "ArgumentMismatch" || !has(bound) || !has(kGot)) continue;
    const std::string given = after(kGot);
    text = before(kGot);
    return fmt::format("{}: needs {} values, not {}", before(bound), after(bound), given);
  }
  if (kind == "ArgumentMismatch" && text.ends_with(" missing")) {
    return before(": ") + ": needs a value";
  }
  if (kind == "ConversionError" && has("Could not convert: ") && has(" = ")) {
    text = after("Could not convert: ");
    return fmt::format("{}: cannot be {}", before(" = "), json::Quote(after(" = ")));
  }
  if (constexpr std::string_view kSet = " not in {";
      kind == "ValidationError" && has(kSet) && text.ends_with('}')) {
    std::string allowed;
    for (const char c : after(kSet)) {
      if (c != '}') allowed += c == ',' ? ", " : std::string(1, c);
    }
    text = before(kSet);
    const std::string given = after(": ");
    return fmt::format("{}: must be one of {}, not {}", before(": "), allowed,
                       given.empty() ? "an empty text" : given);
  }
  return text;
}

Error AtOption(Error error, const std::string& prompt_source, const std::string& grammar_source) {
  if (error.place == "max_tokens") error.place = "--max-tokens";
  if (error.place == "free_first") error.place = "--free-first";
  if (error.place == "prompt") error.place = prompt_source;
  if (error.place == "details") error.place = "--details";
  if (error.place == "diffusion.gaps") error.place = "--gap";
  if (error.place == "diffusion.on_canvas") error.place = "--diffusion-svg";
  if (error.place.starts_with("diffusion.")) {
    error.place = "--" + error.place.substr(error.place.find('.') + 1);
    std::ranges::replace(error.place, '_', '-');
  }
  if (error.place == "grammar") error.place = grammar_source;
  return error;
}

Result<std::string> ReadInput(const std::string& path, size_t max_bytes) {
  if (path != "-") return ReadFile(path, max_bytes);
  return ReadDescriptor(os::kStandardInput, kStandardInput, max_bytes);
}

Result<LineReader> LineReader::Open(const std::string& path) {
  if (path == "-") return LineReader(os::kStandardInput, kStandardInput);
  const int fd = os::OpenFile(path, os::Access::kRead);
  if (fd < 0) {
    return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno), path};
  }
  return LineReader(fd, path);
}

LineReader::LineReader(LineReader&& other) noexcept
    : fd_(std::exchange(other.fd_, os::kStandardInput)), name_(std::move(other.name_)) {}

LineReader::~LineReader() {
  if (fd_ != os::kStandardInput) os::CloseFile(fd_);
}

Status LineReader::Read() {
  // Not fread, which waits for a full buffer: a line is answered as soon as it is there.
  std::array<char, kChunk> chunk;
  const int64_t got = os::Read(fd_, chunk.data(), chunk.size());
  if (got < 0) {
    return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno), name_};
  }
  at_end_ = got == 0;
  buffer_.append(chunk.data(), static_cast<size_t>(got));
  return {};
}

Result<bool> LineReader::Ready() {
  while (!at_end_ && buffer_.find('\n') == std::string::npos && buffer_.size() <= kMaxFileBytes) {
    os::Ready wanted = {.file = fd_};
    if (os::WaitUntilReady({&wanted, 1}, 0) <= 0) return false;
    if (Status status = Read(); !status.ok()) return status.error();
  }
  return true;
}

Result<std::optional<std::string>> LineReader::Next() {
  size_t searched = 0;
  size_t end = 0;
  while ((end = buffer_.find('\n', searched)) == std::string::npos && !at_end_) {
    searched = buffer_.size();
    if (Status status = Read(); !status.ok()) return status.error();
    if (buffer_.size() > kMaxFileBytes + kChunk) {
      return Error{ErrorCode::kLimit,
                   fmt::format("a line is longer than the limit of {} MiB", kMaxFileBytes >> 20),
                   name_};
    }
  }
  if (buffer_.empty()) return std::optional<std::string>();
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  while (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

void Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) RememberWriteError();
}

Status FlushOutput() {
  if (std::fflush(stdout) != 0) RememberWriteError();
  if (write_error == 0) return {};
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(write_error),
               "standard output"};
}

std::string Readable(std::string_view bytes) {
  std::string text;
  bool valid = true;
  for (size_t i = 0; i < bytes.size();) {
    const DecodedCodepoint c = DecodeUtf8(bytes.substr(i));
    if (c.valid) {
      text += bytes.substr(i, static_cast<size_t>(c.length));
    } else {
      text += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[i]));
      valid = false;
    }
    i += static_cast<size_t>(c.length);
  }
  return valid ? json::Quote(text) : "\"" + text + "\"";
}

std::string ExecutableFolder() {
  const std::string path = os::ThisProgram();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace pawl::cli
