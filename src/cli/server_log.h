// The log of `pawl serve`: lines of JSON on stderr, or in a file that is opened anew on request, as
// programs that rotate logs want it.
#ifndef PAWL_SRC_CLI_SERVER_LOG_H_
#define PAWL_SRC_CLI_SERVER_LOG_H_

#include <cstdio>
#include <mutex>
#include <string>

#include "pawl/result.h"

namespace pawl::cli {

// Thread-safe.
class ServerLog {
 public:
  ServerLog() = default;
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  // Lines go to the end of `path`. Errors: kIo; lines go where they went before.
  Status Open(const std::string& path);
  // The file of that name now. Nothing where there is none.
  Status Reopen();
  // `line`: an object; the time is put in front of its members.
  void Write(const std::string& line);
  // The line as it is.
  void WriteAsIs(const std::string& line);

 private:
  std::mutex mutex_;
  std::string path_;
  std::FILE* file_ = nullptr;  // nullptr: stderr
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_SERVER_LOG_H_
