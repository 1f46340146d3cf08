// A program as a check: lines of JSON to and from a process that stays.
//
// The process reads a socket, so that writing to one that has ended is an error and no signal, and
// leads a process group, so that what it started ends with it, also where a signal ends this
// process (os::ForgetGroup). A question is written, an answer is
// waited for until the time limit; whatever else happens costs the process its life and the
// question its answer. The next question starts another one.
//
// And a command as tests: it is started for each complete output, reads the output, and its exit
// code is the verdict. The shell says by its exit code that a command is not there. That is an
// error, and so is a command that never ends in time.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "pawl/sampling.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/os/files.h"
#include "src/base/os/processes.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/decode/sampling/check_spec.h"
#include "src/decode/sampling/names.h"
#include "src/decode/sampling/step_law.h"

namespace pawl {
namespace {

using Clock = std::chrono::steady_clock;

// How long a wait for a program lasts until it looks whether the request was cancelled.
constexpr int64_t kWaitMilliseconds = 20;

std::string SystemMessage(int error) { return std::strerror(error); }

// One running program. One thread at a time.
class Process {
 public:
  static Result<std::unique_ptr<Process>> Start(const std::vector<std::string>& command) {
    const std::optional<os::Pipe> in = os::MakeSendPipe();
    if (!in) return NotStarted(command);
    const std::optional<os::Pipe> out = os::MakePipe();
    if (!out) {
      const Error error = NotStarted(command);
      os::CloseFile(in->read);
      os::CloseFile(in->write);
      return error;
    }
    os::ProcessId pid = -1;
    const int error = os::StartProgram({.arguments = command,
                                        .in = in->read,
                                        .out = out->write,
                                        .leads_group = true,
                                        .ends_with_us = true},
                                       pid);
    os::CloseFile(in->read);
    os::CloseFile(out->write);
    if (error != 0) {
      os::CloseFile(in->write);
      os::CloseFile(out->read);
      return Error{ErrorCode::kIo, "cannot be started: " + SystemMessage(error), command[0]};
    }
    os::DoNotWait(in->write);
    os::DoNotWait(out->read);
    return std::unique_ptr<Process>(new Process(pid, in->write, out->read));
  }

  ~Process() {
    os::EndGroup(pid_);
    if (!ended_) os::End(pid_);
    os::ForgetGroup(pid_);
    os::CloseFile(in_);
    os::CloseFile(out_);
    if (!ended_) os::WaitForEnd(pid_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Writes the line and reads one. Errors: kLimit when the time is over, kIo when the program ended
  // or its line is too long.
  Result<std::string> Ask(std::string_view line, Clock::time_point until, size_t most) {
    std::string answer;
    size_t written = 0;
    for (;;) {
      os::Ready files[] = {{.file = out_}, {.file = in_, .to_write = true}};
      const bool writing = written < line.size();
      StopScope::Check();  // the process is killed then
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return Error{ErrorCode::kLimit, "did not answer in time", ""};
      const int ready =
          os::WaitUntilReady({files, writing ? size_t{2} : size_t{1}},
                             static_cast<int>(std::min<int64_t>(left, kWaitMilliseconds)));
      if (ready < 0) return Ended();
      if (ready <= 0) continue;
      if (writing && files[1].ready) {
        const int64_t n = os::SendTo(in_, line.data() + written, line.size() - written);
        if (n < 0 && errno != EAGAIN) return Ended();
        if (n > 0) written += static_cast<size_t>(n);
      }
      if (!files[0].ready) continue;
      char buffer[4096];
      const int64_t n = os::Read(out_, buffer, sizeof buffer);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return Ended();
      if (n > 0) answer.append(buffer, static_cast<size_t>(n));
      const size_t end = answer.find('\n');
      if (end != std::string::npos) {
        if (end + 1 != answer.size()) {
          return Error{ErrorCode::kIo, "wrote more than one line for a question", ""};
        }
        answer.resize(end);
        return answer;
      }
      if (answer.size() > most) return Error{ErrorCode::kIo, "wrote a line that is too long", ""};
    }
  }

  struct Finished {
    std::string written;  // the last bytes
    int code = 0;         // -1: it did not exit by itself
  };
  // Writes the text, and reads to the end of the program. Errors: kLimit when the time is over.
  Result<Finished> Finish(std::string_view text, Clock::time_point until, size_t most) {
    Finished finished;
    size_t done = 0;
    bool open = true;
    for (bool reading = true; reading;) {
      if (open && done == text.size()) {
        os::EndSending(in_);
        open = false;
      }
      os::Ready files[] = {{.file = out_}, {.file = in_, .to_write = true}};
      StopScope::Check();  // the process is killed then
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return Error{ErrorCode::kLimit, "did not end in time", ""};
      const int ready =
          os::WaitUntilReady({files, open ? size_t{2} : size_t{1}},
                             static_cast<int>(std::min<int64_t>(left, kWaitMilliseconds)));
      if (ready < 0) return Ended();
      if (ready <= 0) continue;
      if (open && files[1].ready) {
        const int64_t n = os::SendTo(in_, text.data() + done, text.size() - done);
        // A program need not read all of it.
        if (n < 0 && errno != EAGAIN) open = false;
        if (n > 0) done += static_cast<size_t>(n);
      }
      if (!files[0].ready) continue;
      char buffer[4096];
      const int64_t n = os::Read(out_, buffer, sizeof buffer);
      if (n > 0) finished.written.append(buffer, static_cast<size_t>(n));
      if (finished.written.size() > 2 * most) {
        finished.written.erase(0, finished.written.size() - most);
      }
      reading = n > 0 || (n < 0 && errno == EAGAIN);
    }
    // It has closed its output, so it ends soon; or it is ended.
    std::optional<int> code;
    while (!(code = os::EndedWith(pid_))) {
      StopScope::Check();
      if (Clock::now() >= until) return Error{ErrorCode::kLimit, "did not end in time", ""};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended_ = true;
    finished.code = *code;
    return finished;
  }

 private:
  Process(os::ProcessId pid, int in, int out) : pid_(pid), in_(in), out_(out) {}
  static Error NotStarted(const std::vector<std::string>& command) {
    return Error{ErrorCode::kIo, "cannot be started: " + SystemMessage(errno), command[0]};
  }
  static Error Ended() { return Error{ErrorCode::kIo, "ended without an answer", ""}; }

  os::ProcessId pid_;
  int in_, out_;
  bool ended_ = false;  // and waited for
};

// The text as a JSON string: a character that is cut at the end is left out.
std::string QuoteText(std::string_view text) {
  text = text.substr(0, CompleteUtf8Prefix(text));
  if (FindInvalidUtf8(text) == std::string_view::npos) return json::Quote(text);
  return json::Quote(EncodeCodepoints(DecodeCodepoints(text)));
}

std::string QuestionLine(int64_t id, const CheckQuestion& question) {
  std::string line =
      "{\"id\":" + std::to_string(id) + ",\"text\":" + QuoteText(question.text) + ",\"tokens\":[";
  for (size_t i = 0; i < question.tokens.size(); ++i) {
    line += (i > 0 ? "," : "") + std::to_string(question.tokens[i]);
  }
  line += "],\"ended\":";
  line += question.ended ? "true}\n" : "false}\n";
  return line;
}

const std::string& NameOf(const ProgramCheckOptions& options) {
  return options.name.empty() ? options.command[0] : options.name;
}

// The processes of one program: made when they are needed, kept while they answer.
class Pool {
 public:
  explicit Pool(const ProgramCheckOptions& options) : options_(options) {}

  // The answer, which has the member `key`. Errors: kLimit, kIo and kInvalid as `why` there was
  // none, which end one process; `fatal` when the program cannot be started or has failed too
  // often.
  Result<json::Value> Ask(const CheckQuestion& question, const char* key, bool& fatal) const {
    fatal = false;
    std::unique_ptr<Process> process = Take();
    if (process == nullptr) {
      Result<std::unique_ptr<Process>> started = Process::Start(options_.command);
      if (!started.ok()) {
        Return(nullptr);
        fatal = true;
        Error error = started.error();
        error.place = NameOf(options_);
        return error;
      }
      process = *std::move(started);
    }
    const int64_t id = next_id_.fetch_add(1);
    Result<json::Value> answer = ReadOrReturn(process, id, question, key);
    if (answer.ok()) {
      failures_ = 0;
      Return(std::move(process));
      return answer;
    }
    process.reset();
    Return(nullptr);
    Error error = answer.error();
    error.place = NameOf(options_);
    const int failures = failures_.fetch_add(1) + 1;
    if (failures >= options_.max_failures) {
      fatal = true;
      error.message += " (" + std::to_string(failures) + " times in a row)";
    }
    return error;
  }

 private:
  Result<json::Value> Read(Process& process, int64_t id, const CheckQuestion& question,
                           const char* key) const {
    const Result<std::string> line = process.Ask(
        QuestionLine(id, question), Clock::now() + options_.time_limit, options_.max_answer_bytes);
    if (!line.ok()) return line.error();
    const Result<json::Value> answer = json::Parse(*line);
    if (!answer.ok()) return Error{ErrorCode::kInvalid, "wrote a line that is no JSON", ""};
    const json::Value* number = answer->Find("id");
    if (number == nullptr || number->text != std::to_string(id)) {
      return Error{ErrorCode::kInvalid, "wrote a line without the \"id\" of the question", ""};
    }
    if (answer->Find(key) == nullptr) {
      return Error{ErrorCode::kInvalid, std::string("wrote an answer without \"") + key + "\"", ""};
    }
    return answer;
  }

  // A process that a cancelled request waits for ends.
  Result<json::Value> ReadOrReturn(std::unique_ptr<Process>& process, int64_t id,
                                   const CheckQuestion& question, const char* key) const {
    try {
      return Read(*process, id, question, key);
    } catch (...) {
      process.reset();
      Return(nullptr);
      throw;
    }
  }

  // One that is idle, or nullptr where the caller may start another one.
  std::unique_ptr<Process> Take() const {
    std::unique_lock lock(mutex_);
    while (idle_.empty() && busy_ >= options_.processes) {
      StopScope::Check();
      changed_.wait_for(lock, std::chrono::milliseconds(kWaitMilliseconds));
    }
    ++busy_;
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Process> process = std::move(idle_.back());
    idle_.pop_back();
    return process;
  }
  void Return(std::unique_ptr<Process> process) const {
    {
      const std::lock_guard lock(mutex_);
      --busy_;
      if (process != nullptr) idle_.push_back(std::move(process));
    }
    changed_.notify_one();
  }

  ProgramCheckOptions options_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<std::unique_ptr<Process>> idle_;
  mutable int busy_ = 0;
  mutable std::atomic<int64_t> next_id_{1};
  mutable std::atomic<int> failures_{0};  // one after another
};

class ProgramCheck : public Check {
 public:
  explicit ProgramCheck(const ProgramCheckOptions& options)
      : granularity_(options.granularity), pool_(options), name_(NameOf(options)) {}
  CheckGranularity granularity() const override { return granularity_; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    bool fatal = false;
    const Result<json::Value> answer = pool_.Ask(question, "verdict", fatal);
    if (!answer.ok() && fatal) return answer.error();
    if (!answer.ok()) return Verdict::kUnknown;
    const json::Value* why = answer->Find("error");
    if (question.why != nullptr && why != nullptr) *question.why = why->text;
    const json::Value& given = *answer->Find("verdict");
    if (given.type == json::Type::kString) {
      const auto verdict = OptionOf<Verdict>(given.text);
      if (verdict.has_value()) return *verdict;
    }
    return Error{
        ErrorCode::kInvalid,
        "a \"verdict\" is \"dead\", \"live\", \"accept\" or \"unknown\", not " + json::Dump(given),
        name_};
  }

 private:
  CheckGranularity granularity_;
  Pool pool_;
  std::string name_;
};

class ProgramCritic : public Critic {
 public:
  explicit ProgramCritic(const ProgramCheckOptions& options)
      : pool_(options), name_(NameOf(options)) {}
  Result<double> Score(const CheckQuestion& question) const override {
    bool fatal = false;
    const Result<json::Value> answer = pool_.Ask(question, "score", fatal);
    if (!answer.ok()) return answer.error();
    const json::Value& given = *answer->Find("score");
    if (given.type == json::Type::kNull) return kNoMass;
    double score = 0;
    const std::string& digits = given.text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), score);
    if (given.type != json::Type::kNumber || error != std::errc()) {
      return Error{ErrorCode::kInvalid, "a \"score\" is a number or null, not " + json::Dump(given),
                   name_};
    }
    return score;
  }

 private:
  Pool pool_;
  std::string name_;
};

// One of the processes that run tests. All requests together have as many as the machine has
// threads; the others wait.
class TestsPlace {
 public:
  TestsPlace() {
    std::unique_lock lock(mutex);
    while (running >= most) {
      StopScope::Check();
      changed.wait_for(lock, std::chrono::milliseconds(kWaitMilliseconds));
    }
    ++running;
  }
  ~TestsPlace() {
    {
      const std::lock_guard lock(mutex);
      --running;
    }
    changed.notify_one();
  }
  TestsPlace(const TestsPlace&) = delete;
  TestsPlace& operator=(const TestsPlace&) = delete;

 private:
  static inline const int most = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline int running = 0;
};

// What a command says of a complete output.
class Tests {
 public:
  explicit Tests(const ProgramCheckOptions& options) : options_(options) {}

  // nullopt: the time is over. Errors: the command has not run yet, and could not be started, or
  // was too late max_failures times.
  Result<std::optional<Process::Finished>> Run(std::string_view text) const {
    const TestsPlace place;
    const Result<std::unique_ptr<Process>> started = Process::Start(options_.command);
    if (!started.ok()) return InFile(NameOf(options_), started.error());
    constexpr size_t kMostWritten = 4096;
    Result<Process::Finished> finished =
        (*started)->Finish(text, Clock::now() + options_.time_limit, kMostWritten);
    if (finished.ok()) {
      constexpr int kNotExecutable = 126, kNotFound = 127;  // of the shell
      const bool found = finished->code != kNotExecutable && finished->code != kNotFound;
      if (!found && !has_run_) {
        return Error{ErrorCode::kIo,
                     finished->code == kNotFound ? "the command was not found (exit code 127)"
                                                 : "the command cannot be run (exit code 126)",
                     NameOf(options_)};
      }
      has_run_ = has_run_ || found;
      return std::optional(*std::move(finished));
    }
    if (finished.error().code == ErrorCode::kLimit) {
      const int late = late_.fetch_add(1) + 1;
      if (has_run_ || late < options_.max_failures) return std::optional<Process::Finished>();
      return Error{ErrorCode::kLimit,
                   "the command " + TooLate() + ", " + std::to_string(late) + " times",
                   NameOf(options_)};
    }
    return InFile(NameOf(options_), finished.error());
  }

  std::string TooLate() const {
    return "did not end within " + std::to_string(options_.time_limit.count()) + " ms";
  }

 private:
  const ProgramCheckOptions options_;
  mutable std::atomic<bool> has_run_{false};  // to its end, once
  mutable std::atomic<int> late_{0};
};

class TestsCheck : public Check {
 public:
  explicit TestsCheck(const ProgramCheckOptions& options) : tests_(options) {}
  CheckGranularity granularity() const override { return CheckGranularity::kComplete; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    const Result<std::optional<Process::Finished>> ran = tests_.Run(question.text);
    if (!ran.ok()) return ran.error();
    if (ran->has_value() && (*ran)->code == 0) return Verdict::kAccept;
    if (question.why != nullptr)
      *question.why = ran->has_value() ? (*ran)->written : tests_.TooLate();
    return Verdict::kDead;
  }

 private:
  const Tests tests_;
};

// Of the last line that is not empty; nullopt: it is no share.
std::optional<double> ShareIn(std::string_view written) {
  while (!written.empty() && std::isspace(static_cast<unsigned char>(written.back())) != 0) {
    written.remove_suffix(1);
  }
  const size_t line = written.rfind('\n');
  if (line != std::string_view::npos) written.remove_prefix(line + 1);
  const char* const end = written.data() + written.size();
  double passed = 0, all = 1;
  const auto first = std::from_chars(written.data(), end, passed);
  if (first.ec != std::errc()) return std::nullopt;
  if (first.ptr != end) {
    const auto second = std::from_chars(first.ptr + 1, end, all);
    if (*first.ptr != '/' || second.ec != std::errc() || second.ptr != end) return std::nullopt;
  }
  if (!(passed >= 0 && all > 0 && passed <= all)) return std::nullopt;
  return passed / all;
}

// Scores of texts that were run are kept.
class TestsCritic : public Critic {
 public:
  explicit TestsCritic(const ProgramCheckOptions& options)
      : tests_(options), most_bytes_(options.cache.max_bytes) {}
  Result<double> Score(const CheckQuestion& question) const override {
    if (!question.ended) return 0;
    const std::string text(question.text);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(text); known != known_.end()) return known->second;
    }
    const Result<std::optional<Process::Finished>> ran = tests_.Run(text);
    if (!ran.ok()) return ran.error();
    double score = kNoMass;
    if (ran->has_value()) {
      const double share = ShareIn((*ran)->written).value_or((*ran)->code == 0 ? 1 : 0);
      if (share > 0) score = std::log(share);
    }
    const std::lock_guard lock(mutex_);
    constexpr size_t kBytesOfEntry = 96;
    bytes_ += text.size() + kBytesOfEntry;
    if (bytes_ > most_bytes_) {
      known_.clear();
      bytes_ = text.size() + kBytesOfEntry;
    }
    known_.emplace(text, score);
    return score;
  }

 private:
  const Tests tests_;
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, double> known_;
  mutable size_t bytes_ = 0;
};

Status CheckOptions(const ProgramCheckOptions& options) {
  const auto bad = [](const char* place, const char* message) {
    return Error{ErrorCode::kInvalid, message, place};
  };
  if (options.command.empty() || options.command[0].empty()) {
    return bad("command", "names no program");
  }
  if (options.time_limit.count() <= 0) return bad("time_limit", "must be above 0");
  if (options.max_failures < 1) return bad("max_failures", "must be at least 1");
  if (options.processes < 1) return bad("processes", "must be at least 1");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Check>> MakeProgramCheck(const ProgramCheckOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  return MakeCachedCheck(std::make_shared<ProgramCheck>(options), options.cache);
}

Result<std::shared_ptr<const Critic>> MakeProgramCritic(const ProgramCheckOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  return std::shared_ptr<const Critic>(std::make_shared<ProgramCritic>(options));
}

Result<std::shared_ptr<const Check>> MakeTestsCheck(const ProgramCheckOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  return MakeCachedCheck(std::make_shared<TestsCheck>(options), options.cache);
}

Result<std::shared_ptr<const Critic>> MakeTestsCritic(const ProgramCheckOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  return std::shared_ptr<const Critic>(std::make_shared<TestsCritic>(options));
}

}  // namespace pawl
