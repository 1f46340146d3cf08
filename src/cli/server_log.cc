// Lines are written whole, under a lock, with the time as RFC 3339 has it in UTC.
#include "src/cli/server_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

#include "src/base/os/calendar.h"
#include "src/base/os/files.h"

namespace pawl::cli {

ServerLog::~ServerLog() {
  if (file_ != nullptr) std::fclose(file_);
}

Status ServerLog::Open(const std::string& path) {
  std::FILE* const file = os::OpenToAppend(path);
  if (file == nullptr) {
    return Error{ErrorCode::kIo, "cannot be written: " + std::generic_category().message(errno),
                 path};
  }
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr) std::fclose(file_);
  file_ = file;
  path_ = path;
  return {};
}

Status ServerLog::Reopen() { return path_.empty() ? Status() : Open(std::string(path_)); }

void ServerLog::Write(const std::string& line) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = millis / 1000;
  const std::tm utc = os::UniversalTime(seconds);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  WriteAsIs(fmt::format("{{\"time\":\"{}.{:03}Z\",{}", date, millis % 1000, line.substr(1)));
}

void ServerLog::WriteAsIs(const std::string& line) {
  const std::string text = line + "\n";
  const std::lock_guard lock(mutex_);
  std::FILE* const file = file_ == nullptr ? stderr : file_;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);  // not all systems have buffers of lines
}

}  // namespace pawl::cli
