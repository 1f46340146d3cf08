// Each worker owns every `workers`-th job and writes two records to its pipe for each: that it
// begins, and the outcome. The parent polls the pipes; the beginning that has no outcome yet tells
// which job to blame when a worker hangs or dies, and where its successor goes on.
#include "src/cli/measure/maskbench_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>

namespace pawl::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kBegin = 0, kOutcome = 1;

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
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
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Put(out, static_cast<uint64_t>(usage.ru_maxrss) * 1024);
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

// Seconds of processor time that the process has used; 0 when it is gone.
double ProcessorTime(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A job that neither ends nor computes gets so many times its time on the clock on the wall.
constexpr double kPatience = 30;

struct Worker {
  size_t next = 0;  // job after the last outcome
  bool begun = false;
  Clock::time_point began;
  double began_at = 0;  // processor time
  pid_t pid = -1;
  int fd = -1;
  std::string buffer;  // of records: kind, job, bytes, body
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
  const auto stride = static_cast<size_t>(workers);
  std::vector<Worker> pool(stride);
  const auto start = [&](Worker& worker) -> Status {
    int ends[2];
    if (pipe(ends) != 0)
      return Error{ErrorCode::kIo, "no pipe to a worker: " + std::string(std::strerror(errno)), ""};
    const pid_t pid = fork();
    if (pid < 0)
      return Error{ErrorCode::kIo, "no worker process: " + std::string(std::strerror(errno)), ""};
    if (pid == 0) {
      close(ends[0]);
      for (size_t i = worker.next; i < count; i += stride) {
        std::string record;
        Put(record, kBegin);
        Put(record, i);
        Put(record, 0);
        if (!WriteAll(ends[1], record.data(), record.size())) break;
        const std::string body = Encode(job(i));
        record.clear();
        Put(record, kOutcome);
        Put(record, i);
        Put(record, body.size());
        record += body;
        if (!WriteAll(ends[1], record.data(), record.size())) break;
      }
      _exit(0);
    }
    close(ends[1]);
    worker.pid = pid;
    worker.fd = ends[0];
    worker.begun = false;
    worker.buffer.clear();
    return {};
  };
  const auto stop = [](Worker& worker) {
    close(worker.fd);
    worker.fd = -1;
    kill(worker.pid, SIGKILL);
    int status = 0;
    waitpid(worker.pid, &status, 0);
    return status;
  };
  // The worker is gone, or is to go: its job gets the blame, its successor the rest.
  const auto replace = [&](Worker& worker, MaskbenchOutcome::Kind kind,
                           std::string detail) -> Status {
    stop(worker);
    MaskbenchOutcome outcome;
    outcome.kind = kind;
    outcome.detail = std::move(detail);
    done(worker.next, std::move(outcome));
    worker.next += stride;
    return worker.next < count ? start(worker) : Status();
  };

  size_t live = 0;
  for (size_t i = 0; i < stride; ++i) {
    pool[i].next = i;
    if (i >= count) continue;
    if (Status status = start(pool[i]); !status.ok()) return status;
    ++live;
  }
  std::vector<char> chunk(1 << 16);
  while (live > 0) {
    std::vector<pollfd> polls;
    polls.reserve(pool.size());
    for (const Worker& worker : pool) polls.push_back({worker.fd, POLLIN, 0});
    poll(polls.data(), polls.size(), 100);
    live = 0;
    for (size_t i = 0; i < stride; ++i) {
      Worker& worker = pool[i];
      if (worker.fd < 0) continue;
      Status status;
      if ((polls[i].revents & (POLLIN | POLLHUP)) != 0) {
        const ssize_t n = read(worker.fd, chunk.data(), chunk.size());
        if (n > 0) worker.buffer.append(chunk.data(), static_cast<size_t>(n));
        size_t used = 0;
        while (worker.buffer.size() - used >= 3 * sizeof(uint64_t)) {
          const char* at = worker.buffer.data() + used;
          const uint64_t kind = Take(at), index = Take(at), size = Take(at);
          if (worker.buffer.size() - used - 3 * sizeof(uint64_t) < size) break;
          worker.begun = kind == kBegin;
          worker.began = Clock::now();
          worker.began_at = ProcessorTime(worker.pid);
          if (kind == kOutcome) {
            worker.next = index + stride;
            done(index, Decode(at));
          }
          used += 3 * sizeof(uint64_t) + size;
        }
        worker.buffer.erase(0, used);
        if (n <= 0) {
          if (worker.next >= count) {
            stop(worker);
          } else {
            status = replace(worker, MaskbenchOutcome::kCrash, "the process ended");
          }
        }
      } else if (worker.begun &&
                 (ProcessorTime(worker.pid) - worker.began_at > timeout_seconds ||
                  std::chrono::duration<double>(Clock::now() - worker.began).count() >
                      kPatience * timeout_seconds)) {
        status = replace(worker, MaskbenchOutcome::kTimeout, "took too long");
      }
      if (!status.ok()) return status;
      live += worker.fd >= 0 ? 1 : 0;
    }
  }
  return {};
}

}  // namespace pawl::cli
