// Progress: one line on stderr about work that takes longer than a second; nothing for work that
// does not.
#ifndef PAWL_SRC_CLI_PROGRESS_H_
#define PAWL_SRC_CLI_PROGRESS_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace pawl::cli {

// On a terminal the line is rewritten in place and wiped at the end. Elsewhere nothing is printed,
// unless `always`: then a line every second. Set may be called from any thread.
class Progress {
 public:
  Progress(std::string command, std::string text, bool always = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Set(std::string text);

 private:
  void Watch();

  std::string command_;
  bool terminal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string text_;   // guarded by mutex_
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_PROGRESS_H_
