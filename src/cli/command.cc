// Messages, input and output of the command line. All printing of Pawl happens in this folder.
#include "src/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::cli {

int Fail(std::string_view command, const Error& error) {
  Note(command, error.ToString());
  return error.code == ErrorCode::kInternal ? kExitBug : kExitBadInput;
}

void Note(std::string_view command, std::string_view text) {
  const std::string line = fmt::format("pawl {}: {}\n", command, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Error AtOption(Error error, const std::string& prompt_source) {
  if (error.place == "max_tokens") error.place = "--max-tokens";
  if (error.place == "prompt") error.place = prompt_source;
  return error;
}

Error InFile(const std::string& file, Error error) {
  error.place = error.place.empty() ? file : file + ": " + error.place;
  return error;
}

Result<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path);
  std::string content;
  std::array<char, 1 << 16> buffer;
  size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), stdin)) > 0) {
    content.append(buffer.data(), got);
  }
  if (std::ferror(stdin) != 0) {
    return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno),
                 "standard input"};
  }
  return content;
}

Status CheckUtf8(std::string_view text) {
  const size_t bad = FindInvalidUtf8(text);
  if (bad == std::string_view::npos) return {};
  return Error{ErrorCode::kInvalid, "the text is not valid UTF-8", fmt::format("byte {}", bad)};
}

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
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
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (length <= 0 || static_cast<size_t>(length) >= buffer.size()) return {};
  const std::string path(buffer.data(), static_cast<size_t>(length));
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace pawl::cli
