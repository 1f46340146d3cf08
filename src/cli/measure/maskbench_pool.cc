// Each worker owns every `workers`-th job and writes two records to its pipe for each: that it
// begins, and the outcome. The parent polls the pipes; the beginning that has no outcome yet tells
// which job to blame when a worker hangs or dies, and where its successor goes on.
#include "src/cli/measure/maskbench_pool.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/os/files.h"
#include "src/base/os/memory.h"
#include "src/base/os/processes.h"

namespace pawl::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kBegin = 0, kOutcome = 1;

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const int64_t n = os::Write(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void Put(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint64_t Take(const char*& at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

std::string Encode(const MaskbenchOutcome& outcome) {
  std::string out;
  Put(out, outcome.kind);
  Put(out, outcome.first_mask_ns);
  Put(out, static_cast<uint64_t>(os::MostResidentBytes()));
  Put(out, outcome.detail.size());
  out += outcome.detail;
  Put(out, outcome.layers.size());
  for (const uint64_t layer : outcome.layers) Put(out, layer);
  Put(out, outcome.token_ns.size());
  out.append(reinterpret_cast<const char*>(outcome.token_ns.data()),
             outcome.token_ns.size() * sizeof(uint64_t));
  return out;
}

MaskbenchOutcome Decode(const char* at) {
  MaskbenchOutcome outcome;
  outcome.kind = static_cast<MaskbenchOutcome::Kind>(Take(at));
  outcome.first_mask_ns = Take(at);
  outcome.rss_bytes = Take(at);
  const uint64_t detail = Take(at);
  outcome.detail.assign(at, detail);
  at += detail;
  outcome.layers.resize(Take(at));
  for (uint64_t& layer : outcome.layers) layer = Take(at);
  outcome.token_ns.resize(Take(at));
  std::memcpy(outcome.token_ns.data(), at, outcome.token_ns.size() * sizeof(uint64_t));
  return outcome;
}

// A job that neither ends nor computes gets so many times its time on the clock on the wall.
constexpr double kPatience = 30;

class WorkerPool {
 public:
  using Job = std::function<MaskbenchOutcome(size_t)>;
  using Done = std::function<void(size_t, MaskbenchOutcome)>;

  WorkerPool(size_t count, int workers, double timeout_seconds, const Job& job, const Done& done)
      : count_(count), timeout_seconds_(timeout_seconds), job_(job), done_(done) {
    workers_.resize(static_cast<size_t>(workers));
  }

  Status Run() {
    for (size_t i = 0; i < std::min(workers_.size(), count_); ++i) {
      workers_[i].next = i;
      if (Status status = Start(workers_[i]); !status.ok()) return status;
    }
    const auto runs = [](const Worker& worker) { return worker.fd >= 0; };
    while (std::ranges::any_of(workers_, runs)) {
      std::vector<os::Ready> polls;
      polls.reserve(workers_.size());
      for (const Worker& worker : workers_) polls.push_back({.file = worker.fd});
      os::WaitUntilReady(polls, 100);
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].fd < 0) continue;
        if (Status status = polls[i].ready ? Read(workers_[i]) : Watch(workers_[i]); !status.ok())
          return status;
      }
    }
    return {};
  }

 private:
  struct Worker {
    size_t next = 0;  // job after the last outcome
    bool begun = false;
    Clock::time_point began;
    double began_at = 0;  // processor time
    os::ProcessId pid = -1;
    int fd = -1;
    std::string buffer;  // of records: kind, job, bytes, body
  };

  Status Start(Worker& worker) {
    const std::optional<os::Pipe> ends = os::MakePipe();
    if (!ends)
      return Error{ErrorCode::kIo, "no pipe to a worker: " + std::string(std::strerror(errno)), ""};
    const os::ProcessId pid = os::Fork();
    if (pid < 0 && errno == ENOSYS) {
      return Error{
          ErrorCode::kUnsupported,
          "needs worker processes that are copies of this one, which this system does not make",
          ""};
    }
    if (pid < 0)
      return Error{ErrorCode::kIo, "no worker process: " + std::string(std::strerror(errno)), ""};
    if (pid == 0) {
      os::CloseFile(ends->read);
      RunJobs(worker.next, ends->write);
      os::ExitAtOnce(0);
    }
    os::CloseFile(ends->write);
    worker.pid = pid;
    worker.fd = ends->read;
    worker.begun = false;
    worker.buffer.clear();
    return {};
  }

  // In the process of a worker.
  void RunJobs(size_t first, int fd) const {
    const auto write_record = [&](uint64_t kind, size_t job, const std::string& body) {
      std::string record;
      Put(record, kind);
      Put(record, job);
      Put(record, body.size());
      record += body;
      return WriteAll(fd, record.data(), record.size());
    };
    for (size_t i = first; i < count_; i += workers_.size()) {
      if (!write_record(kBegin, i, "") || !write_record(kOutcome, i, Encode(job_(i)))) break;
    }
  }

  static void Stop(Worker& worker) {
    os::CloseFile(worker.fd);
    worker.fd = -1;
    os::End(worker.pid);
    os::WaitForEnd(worker.pid);
  }

  // The worker is gone, or is to go: its job gets the blame, its successor the rest.
  Status Replace(Worker& worker, MaskbenchOutcome::Kind kind, std::string detail) {
    Stop(worker);
    MaskbenchOutcome outcome;
    outcome.kind = kind;
    outcome.detail = std::move(detail);
    done_(worker.next, std::move(outcome));
    worker.next += workers_.size();
    return worker.next < count_ ? Start(worker) : Status();
  }

  Status Read(Worker& worker) {
    const int64_t n = os::Read(worker.fd, chunk_.data(), chunk_.size());
    if (n > 0) worker.buffer.append(chunk_.data(), static_cast<size_t>(n));
    constexpr size_t kHead = 3 * sizeof(uint64_t);
    size_t used = 0;
    while (worker.buffer.size() - used >= kHead) {
      const char* at = worker.buffer.data() + used;
      const uint64_t kind = Take(at), index = Take(at), size = Take(at);
      if (worker.buffer.size() - used - kHead < size) break;
      worker.begun = kind == kBegin;
      worker.began = Clock::now();
      worker.began_at = os::ProcessorSeconds(worker.pid);
      if (kind == kOutcome) {
        worker.next = index + workers_.size();
        done_(index, Decode(at));
      }
      used += kHead + size;
    }
    worker.buffer.erase(0, used);
    if (n > 0) return {};
    if (worker.next < count_) return Replace(worker, MaskbenchOutcome::kCrash, "the process ended");
    Stop(worker);
    return {};
  }

  Status Watch(Worker& worker) {
    if (!worker.begun) return {};
    const double seconds = std::chrono::duration<double>(Clock::now() - worker.began).count();
    if (os::ProcessorSeconds(worker.pid) - worker.began_at <= timeout_seconds_ &&
        seconds <= kPatience * timeout_seconds_)
      return {};
    return Replace(worker, MaskbenchOutcome::kTimeout, "took too long");
  }

  const size_t count_;
  const double timeout_seconds_;
  const Job& job_;
  const Done& done_;
  std::vector<Worker> workers_;
  std::vector<char> chunk_ = std::vector<char>(1 << 16);
};

}  // namespace

const char* MaskbenchKindName(MaskbenchOutcome::Kind kind) {
  static constexpr const char* kNames[] = {"pass",           "refused",     "unsatisfiable",
                                           "valid_rejected", "end_refused", "invalid_accepted",
                                           "timeout",        "crash",       "bad_file"};
  return kNames[kind];
}

Status RunMaskbench(size_t count, int workers, double timeout_seconds,
                    const std::function<MaskbenchOutcome(size_t)>& job,
                    const std::function<void(size_t, MaskbenchOutcome)>& done) {
  return WorkerPool(count, workers, timeout_seconds, job, done).Run();
}

}  // namespace pawl::cli
