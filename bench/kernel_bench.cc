// Every kernel at every shape that counts: checked against its reference, then timed, next to the
// rates of a copy and of a library product in the same run.
//
//   kernel_bench [--json FILE] [--only CASE] [--profile] [--seconds N] [--list] [--rehearse]
//
// A case's share is the time that its bytes or its operations would take at those rates, whichever
// is more, over the time it took. --only: a case by its name, as --list prints them. --profile:
// runs it three times and no more, for a profiler to look at. --seconds: cases that come after that
// are counted as left out. --rehearse: all of it on toys, which is what the emulation runs
// (kernel_bench_rehearsal).
//
// The three kernels that lose the most time in one of their cases against what those rates allow
// are named at the end and in the file. Exit codes: 1, a case has failed or was left out; 77, no
// device.
#include "bench/kernel_bench.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace pawl::PAWL_GPU {
namespace {

const BenchSizes kReal = {{{"0.5b", 896, 4864, 14, 2, 64, 151936},
                           {"1b", 2048, 8192, 32, 8, 64, 128256},
                           {"8b", 4096, 14336, 32, 8, 128, 128256}},
                          {1, 8, 16, 256},
                          {128, 2048, 16384},
                          2048,
                          int64_t{512} << 20,
                          int64_t{1} << 30,
                          8192,
                          4096,
                          64,
                          5};
const BenchSizes kToys = {
    {{"toy", 72, 96, 2, 1, 16, 200}}, {1, 9, 66}, {20, 258}, 140, 1 << 16, 1 << 16, 64, 70, 1, 1};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Measured {
  std::string kernel, what, problem;
  double microseconds = 0, bytes = 0, flops = 0, share = 0, error = 0, bound = 0;
  double Lost() const { return microseconds * (1 - std::min(share, 1.0)); }
};

class Runner final : public KernelBench {
 public:
  Runner(const BenchSizes& sizes, std::string only, bool profile, bool list, double seconds)
      : KernelBench(sizes),
        only_(std::move(only)),
        profile_(profile),
        list_(list),
        end_(Now() + seconds) {
    if (!list_) stream_ = Must(NewStream());
  }
  ~Runner() override { FreeStream(stream_); }

  void SetRates(double copy, double product) {
    copy_ = copy;
    product_ = product;
  }

  void Add(const std::string& kernel, const std::string& what,
           const std::function<Case()>& make) override {
    const std::string name = kernel + " " + what;
    if (!only_.empty() && name != only_) return;
    ++cases_;
    if (list_) {
      std::printf("%s\n", name.c_str());
      return;
    }
    if (Now() > end_) {
      ++left_out_;
      return;
    }
    Measured measured;
    measured.kernel = kernel;
    measured.what = what;
    try {
      Measure(make(), measured);
    } catch (const Failure& failure) {
      measured.problem = failure.error.ToString();
    }
    if (!profile_) Print(measured);
    if (!measured.problem.empty()) ++failed_;
    all_.push_back(std::move(measured));
  }

  // For each kernel the case that loses most; of those the first three.
  std::vector<const Measured*> Slowest() const {
    std::map<std::string, const Measured*> worst;
    for (const Measured& m : all_) {
      if (!m.problem.empty()) continue;
      const Measured*& its = worst[m.kernel];
      if (its == nullptr || m.Lost() > its->Lost()) its = &m;
    }
    std::vector<const Measured*> slowest;
    for (const auto& [kernel, m] : worst) slowest.push_back(m);
    std::sort(slowest.begin(), slowest.end(),
              [](const Measured* a, const Measured* b) { return a->Lost() > b->Lost(); });
    slowest.resize(std::min<size_t>(slowest.size(), 3));
    return slowest;
  }
  const std::vector<Measured>& all() const { return all_; }
  int cases() const { return cases_; }
  int failed() const { return failed_; }
  int left_out() const { return left_out_; }

 private:
  void Measure(const Case& c, Measured& measured) {
    if (profile_) {
      for (int turn = 0; turn < 3; ++turn) Check(c.run(turn % c.turns, stream_));
      Check(Synchronize(stream_));
      return;
    }
    measured.error = c.error();
    measured.bound = c.bound;
    measured.bytes = c.bytes;
    measured.flops = c.flops;
    if (!(measured.error <= c.bound)) measured.problem = "is not what the reference says";
    const double seconds = Time(c);
    measured.microseconds = seconds * 1e6;
    const double least =
        std::max(copy_ > 0 ? c.bytes / copy_ : 0, product_ > 0 ? c.flops / product_ : 0);
    measured.share = least / seconds;
  }

  // Calls follow each other in a graph, so that the host is not what is measured.
  double Time(const Case& c) {
    const Mark begin = Must(NewMark()), end = Must(NewMark());
    const auto milliseconds = [&](const std::function<Status()>& run) {
      Check(Record(begin, stream_));
      Check(run());
      Check(Record(end, stream_));
      Check(Synchronize(stream_));
      return double{Must(Milliseconds(begin, end))};
    };
    // Its code is loaded: it has been checked. Once to see how long it takes.
    int calls = 1;
    if (sizes().most_calls > 1) {
      const double once = milliseconds([&] { return c.run(1 % c.turns, stream_); });
      calls = std::clamp(static_cast<int>(2.0 / std::max(once, 1e-3)), 4, sizes().most_calls);
    }
    const auto all = [&]() -> Status {
      for (int i = 0; i < calls; ++i) {
        if (Status status = c.run(i % c.turns, stream_); !status.ok()) return status;
      }
      return {};
    };
    Graph graph;
    if (BeginCapture(stream_).ok()) {
      const Status captured = all();
      const Result<Graph> made = EndCapture(stream_);
      if (made.ok() && captured.ok()) {
        graph = *made;
      } else if (made.ok()) {
        FreeGraph(*made);
      }
    }
    std::vector<double> times;
    // The first one warms up, except on toys.
    for (int round = sizes().rounds > 1 ? 0 : 1; round <= sizes().rounds; ++round) {
      const double took =
          milliseconds([&] { return graph.handle != nullptr ? Replay(graph, stream_) : all(); });
      if (round > 0) times.push_back(took / 1e3 / calls);
    }
    FreeGraph(graph);
    FreeMark(begin);
    FreeMark(end);
    return std::max(Median(times), 1e-9);
  }

  static void Print(const Measured& m) {
    const double seconds = m.microseconds * 1e-6;
    std::printf("%-18s %-52s %10.2f us %9.1f GB/s %9.2f TFLOP/s %6.3f  error %.1e%s%s\n",
                m.kernel.c_str(), m.what.c_str(), m.microseconds,
                seconds > 0 ? m.bytes / seconds / 1e9 : 0.0,
                seconds > 0 ? m.flops / seconds / 1e12 : 0.0, m.share, m.error,
                m.problem.empty() ? "" : "  FAILED: ", m.problem.c_str());
    std::fflush(stdout);
  }

  std::string only_;
  bool profile_, list_;
  double end_;
  Stream stream_ = nullptr;
  double copy_ = 0, product_ = 0;
  std::vector<Measured> all_;
  int cases_ = 0, failed_ = 0, left_out_ = 0;
};

bool WriteJson(const char* path, const DeviceFacts& device, const Runner& runner, double copy,
               double product) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\n  \"device\": \"%s\",\n  \"copy_gb_per_s\": %.1f,\n  \"product_tflop_per_s\": "
               "%.1f,\n  \"cases\": %d,\n  \"failed\": %d,\n  \"left_out\": %d,\n  \"kernels\": [",
               device.name.c_str(), copy / 1e9, product / 1e12, runner.cases(), runner.failed(),
               runner.left_out());
  const char* comma = "";
  for (const Measured& m : runner.all()) {
    const double seconds = std::max(m.microseconds, 1e-9) * 1e-6;
    std::fprintf(file,
                 "%s\n    {\"kernel\": \"%s\", \"case\": \"%s\", \"us\": %.4g, \"gb_per_s\": %.4g, "
                 "\"tflop_per_s\": %.4g, \"share\": %.4g, \"error\": ",
                 comma, m.kernel.c_str(), m.what.c_str(), m.microseconds, m.bytes / seconds / 1e9,
                 m.flops / seconds / 1e12, m.share);
    if (std::isfinite(m.error)) {
      std::fprintf(file, "%.3g", m.error);
    } else {
      std::fprintf(file, "null");
    }
    std::fprintf(file, ", \"bound\": %.3g, \"ok\": %s}", m.bound,
                 m.problem.empty() ? "true" : "false");
    comma = ",";
  }
  std::fprintf(file, "\n  ],\n  \"slowest\": [");
  comma = "";
  for (const Measured* m : runner.Slowest()) {
    std::fprintf(file, "%s\n    \"%s %s\"", comma, m->kernel.c_str(), m->what.c_str());
    comma = ",";
  }
  std::fprintf(file, "\n  ]\n}\n");
  return std::fclose(file) == 0;
}

int Usage() {
  std::fprintf(stderr,
               "usage: kernel_bench [--json FILE] [--only CASE] [--profile] [--seconds N] [--list] "
               "[--rehearse]\n");
  return 2;
}

int Run(int argc, char** argv) {
  const char* json = nullptr;
  std::string only;
  bool profile = false, list = false, rehearse = false;
  double seconds = 1e9;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool more = i + 1 < argc;
    if (option == "--json" && more) {
      json = argv[++i];
    } else if (option == "--only" && more) {
      only = argv[++i];
    } else if (option == "--seconds" && more) {
      seconds = std::atof(argv[++i]);
    } else if (option == "--profile") {
      profile = true;
    } else if (option == "--list") {
      list = true;
    } else if (option == "--rehearse") {
      rehearse = true;
    } else {
      return Usage();
    }
  }
  const BenchSizes& sizes = rehearse ? kToys : kReal;
  const auto everything = [](Runner& runner) {
    BenchMatMul(runner);
    BenchExperts(runner);
    BenchHead(runner);
    BenchAttention(runner);
    BenchLayer(runner);
    BenchMasks(runner);
  };
  if (list) {
    Runner runner(sizes, only, profile, list, seconds);
    everything(runner);
    return 0;
  }
  const Result<DeviceFacts> device = CurrentDevice();
  if (!device.ok()) {
    std::fprintf(stderr, "kernel_bench: no usable device: %s\n", device.error().message.c_str());
    return 77;
  }
  try {
    double copy = 0, product = 0;
    if (!profile) {
      copy = CopyRate(sizes.copy_bytes, sizes.rounds);
      std::printf("%s: copy %.1f GB/s", device->name.c_str(), copy / 1e9);
      if (const Result<std::unique_ptr<Library>> library = OpenLibrary(); library.ok()) {
        product = ProductRate(**library, sizes.product, sizes.product_rows, sizes.rounds);
        std::printf(", library product of random bf16 %.1f TFLOP/s\n", product / 1e12);
      } else {
        std::printf(", no library product, so shares are of bytes alone: %s\n",
                    library.error().message.c_str());
      }
    }
    Runner runner(sizes, only, profile, list, seconds);
    runner.SetRates(copy, product);
    everything(runner);
    if (runner.cases() == 0) {
      std::fprintf(stderr, "kernel_bench: there is no case '%s' (--list names them)\n",
                   only.c_str());
      return 2;
    }
    if (profile) return runner.failed() > 0 ? 1 : 0;
    for (const Measured* m : runner.Slowest()) {
      std::printf("loses most: %s %s (%.1f of %.1f us)\n", m->kernel.c_str(), m->what.c_str(),
                  m->Lost(), m->microseconds);
    }
    std::printf("%d cases, %d failed, %d left out for want of time\n", runner.cases(),
                runner.failed(), runner.left_out());
    if (json != nullptr && !WriteJson(json, *device, runner, copy, product)) {
      std::fprintf(stderr, "kernel_bench: %s cannot be written\n", json);
      return 1;
    }
    return runner.failed() > 0 || runner.left_out() > 0 ? 1 : 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "kernel_bench: %s\n", failure.error.ToString().c_str());
    return 1;
  }
}

}  // namespace
}  // namespace pawl::PAWL_GPU

int main(int argc, char** argv) { return pawl::PAWL_GPU::Run(argc, argv); }
