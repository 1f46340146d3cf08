// `pawl maskbench`: the MaskBench protocol (guidance-ai/jsonschemabench) over a folder of its
// files.
//
// A file holds a schema and instances with labels. Per instance: its text as Python's json.dumps
// writes it, its tokens, and for every token the time of computing the mask plus taking the token
// (TBM); per schema the time until the first mask could be computed (TTFM), which for Pawl is all
// of compiling. Two points are stricter than the original: the mask's bit decides, not only the
// state, and after a valid instance the end of the output has to be allowed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "grammar/masks/machine_masks.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/random.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/measure/maskbench_pool.h"
#include "src/cli/measure/python_json.h"
#include "src/cli/measure/times.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"

namespace pawl::cli {
namespace {

constexpr const char* kMaskbench = "maskbench";
using Kind = MaskbenchOutcome::Kind;
using Clock = std::chrono::steady_clock;

struct MaskbenchFlags {
  std::string tokenizer, data, json;
  int jobs = 1;
  int limit = 0;
  double timeout = 10;
  bool warm = false;
  bool profile = false;
  bool thread_time = false;
  int best_of = 1;
  MemoryFlags memory;
  bool cold = false;  // says the default aloud
  bool list_failures = false;
  LayoutFlags layout = LayoutFlags::ForReading();
};

constexpr size_t kCachedGrammars = 64;

// A clock on the wall, or of the processor time of this thread, in which no other process shows.
uint64_t Nanoseconds(bool of_thread) {
  if (of_thread) {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

class Bench {
 public:
  Bench(const MaskbenchFlags& flags, ModelText text)
      : options_(flags.layout.ToOptions()),
        compiler_options_(flags.memory.ToOptions()),
        thread_time_(flags.thread_time),
        best_of_(flags.best_of),
        text_(std::move(text)) {
    if (flags.warm) {
      CompilerOptions warm = compiler_options_;
      warm.cached_grammars = kCachedGrammars;
      shared_ = std::make_unique<Compiler>(text_.vocabulary, warm);
    }
    // What belongs to the tokenizer is made once, on the first mask of its kind.
    const Compiler first(text_.vocabulary);
    if (const Result<Grammar> any = first.CompileJsonSchema("{}", options_); any.ok()) {
      for (const char* prefix : {"", "\"", "{\"a", "[1", "[\"a\","}) {
        if (const std::optional<State> state = any->Start().Advance(prefix)) state->mask();
      }
    }
  }

  // With --warm: everything once before it counts.
  MaskbenchOutcome Run(const std::string& path) const {
    if (shared_ != nullptr) RunOnce(path);
    MaskbenchOutcome best = RunOnce(path);
    for (int i = 1; i < best_of_; ++i) {
      MaskbenchOutcome again = RunOnce(path);
      if (again.kind != best.kind || again.token_ns.size() != best.token_ns.size()) return again;
      best.first_mask_ns = std::min(best.first_mask_ns, again.first_mask_ns);
      for (size_t k = 0; k < again.token_ns.size(); ++k)
        best.token_ns[k] = std::min(best.token_ns[k], again.token_ns[k]);
    }
    return best;
  }

 private:
  MaskbenchOutcome RunOnce(const std::string& path) const {
    MaskbenchOutcome outcome;
    const auto bad = [&](std::string why) {
      outcome.kind = Kind::kBadFile;
      outcome.detail = std::move(why);
      return outcome;
    };
    Result<std::string> content = ReadFile(path);
    if (!content.ok()) return bad(content.error().ToString());
    Result<json::Value> file =
        json::Parse(*content, {.max_depth = 2000, .allow_duplicate_keys = true});
    if (!file.ok()) return bad(file.error().ToString());
    const json::Value* schema = file->Find("schema");
    const json::Value* tests = file->Find("tests");
    if (schema == nullptr) return bad("has no \"schema\"");
    const std::string schema_text = json::Dump(*schema);

    std::unique_ptr<Compiler> fresh;
    if (shared_ == nullptr) fresh = std::make_unique<Compiler>(text_.vocabulary, compiler_options_);
    const uint64_t start = Nanoseconds(thread_time_);
    Result<Grammar> grammar =
        (shared_ != nullptr ? *shared_ : *fresh).CompileJsonSchema(schema_text, options_);
    if (!grammar.ok()) {
      outcome.kind =
          grammar.error().code == ErrorCode::kUnsatisfiable ? Kind::kUnsatisfiable : Kind::kRefused;
      outcome.detail = grammar.error().ToString();
      return outcome;
    }
    const State first = grammar->Start();
    outcome.first_mask_ns = Nanoseconds(thread_time_) - start;
    if (tests == nullptr) return outcome;
    for (size_t i = 0; i < tests->items.size(); ++i) {
      const json::Value* valid = tests->items[i].Find("valid");
      const json::Value* data = tests->items[i].Find("data");
      if (data == nullptr) return bad(fmt::format("test {} has no \"data\"", i));
      if (valid == nullptr || !valid->is_bool())
        return bad(fmt::format("test {}: \"valid\" must be true or false", i));
      const std::string instance = PythonJson(*data);
      const Kind kind = Feed(first, instance, valid->type == json::Type::kTrue, outcome);
      if (kind != Kind::kPass && outcome.kind == Kind::kPass) {
        outcome.kind = kind;
        outcome.detail = fmt::format("test {}: {}", i, instance.substr(0, 300));
      }
    }
    return outcome;
  }

  Kind Feed(State state, const std::string& instance, bool valid, MaskbenchOutcome& outcome) const {
    outcome.layers.resize(2 * kMaskStrategies);
    for (const TokenId token : text_.tokenizer->Encode(instance)) {
      const uint64_t made = GrammarAccess::MasksMadeBy(state).count;
      const uint64_t start = Nanoseconds(thread_time_);
      const bool allowed = state.mask()->Allows(token);
      std::optional<State> next;
      if (allowed) next = state.Advance(token);
      const uint64_t ns = Nanoseconds(thread_time_) - start;
      outcome.token_ns.push_back(ns);
      const MasksMade now = GrammarAccess::MasksMadeBy(state);
      const auto path = static_cast<size_t>(now.count == made ? MaskStrategy::kKnown : now.last);
      outcome.layers[2 * path] += 1;
      outcome.layers[2 * path + 1] += ns;
      if (!next.has_value()) return valid ? Kind::kValidRejected : Kind::kPass;
      state = *std::move(next);
    }
    if (valid) return state.accepting() ? Kind::kPass : Kind::kEndRefused;
    return state.accepting() ? Kind::kInvalidAccepted : Kind::kPass;
  }

  JsonSchemaOptions options_;
  CompilerOptions compiler_options_;
  bool thread_time_;
  int best_of_;
  ModelText text_;
  std::unique_ptr<Compiler> shared_;
};

struct Failure {
  std::string file, kind, detail;
};

struct SlowMask {
  uint64_t ns;
  std::string file;
  size_t number;  // of the masks of the file
};
constexpr size_t kSlowest = 10;

struct Totals {
  std::array<uint64_t, 2 * kMaskStrategies> profile{};  // by MaskStrategy: masks, nanoseconds
  std::map<Kind, int> kinds;
  std::vector<uint64_t> token_ns, first_ns;
  uint64_t rss_bytes = 0;
  std::vector<Failure> failures;
  std::vector<SlowMask> slowest;  // slowest first, at most one of a file

  void AddSlowest(const std::string& file, const std::vector<uint64_t>& times) {
    const auto most = std::ranges::max_element(times);
    if (most == times.end()) return;
    slowest.push_back({*most, file, static_cast<size_t>(most - times.begin())});
    std::ranges::sort(slowest, std::greater(), &SlowMask::ns);
    if (slowest.size() > kSlowest) slowest.pop_back();
  }
  int Count(Kind kind) const {
    const auto it = kinds.find(kind);
    return it == kinds.end() ? 0 : it->second;
  }
  int refused() const { return Count(Kind::kRefused) + Count(Kind::kUnsatisfiable); }
};

std::string ToJson(const Totals& totals, size_t schemas, const MaskbenchFlags& flags) {
  std::string out = fmt::format(
      "{{\"schemas\":{},\"passing\":{},\"refused\":{},\"unsatisfiable\":{},\"valid_rejected\":{},"
      "\"invalid_accepted\":{},"
      "\"end_refused\":{},\"timeouts\":{},\"crashes\":{},\"bad_files\":{},\"tokens\":{},\"order\":{"
      "},\"whitespace\":{},\"warm\":{},\"jobs\":{},\"thread_time\":{},\"best_of\":{}",
      schemas, totals.Count(Kind::kPass), totals.refused(), totals.Count(Kind::kUnsatisfiable),
      totals.Count(Kind::kValidRejected), totals.Count(Kind::kInvalidAccepted),
      totals.Count(Kind::kEndRefused), totals.Count(Kind::kTimeout), totals.Count(Kind::kCrash),
      totals.Count(Kind::kBadFile), totals.token_ns.size(), json::Quote(flags.layout.order),
      json::Quote(flags.layout.whitespace), flags.warm, flags.jobs, flags.thread_time,
      flags.best_of);
  out += fmt::format(",\"tbm_us\":{},\"ttfm_us\":{}", SummaryJson(totals.token_ns),
                     SummaryJson(totals.first_ns));
  out +=
      fmt::format(",\"rss_mb\":{:.1f},\"slowest\":[", static_cast<double>(totals.rss_bytes) / 1e6);
  const char* comma = "\n";
  for (const SlowMask& mask : totals.slowest) {
    out += fmt::format("{}{{\"file\":{},\"mask\":{},\"us\":{:.1f}}}", comma, json::Quote(mask.file),
                       mask.number, static_cast<double>(mask.ns) / 1000);
    comma = ",\n";
  }
  out += "],\"failures\":[";
  comma = "\n";
  for (const Failure& failure : totals.failures) {
    out += fmt::format("{}{{\"file\":{},\"kind\":\"{}\",\"detail\":{}}}", comma,
                       json::Quote(failure.file), failure.kind, json::Quote(failure.detail));
    comma = ",\n";
  }
  return out + "]}\n";
}

std::string Table(const Totals& totals, size_t schemas) {
  std::string out = fmt::format(
      "schemas {}: {} pass ({:.2f} %), {} refused ({} of them unsatisfiable)\n", schemas,
      totals.Count(Kind::kPass),
      100.0 * totals.Count(Kind::kPass) / static_cast<double>(std::max<size_t>(1, schemas)),
      totals.refused(), totals.Count(Kind::kUnsatisfiable));
  for (const Kind kind : {Kind::kValidRejected, Kind::kEndRefused, Kind::kInvalidAccepted,
                          Kind::kTimeout, Kind::kCrash, Kind::kBadFile}) {
    out += fmt::format("  {:<17}{}\n", MaskbenchKindName(kind), totals.Count(kind));
  }
  const auto masks = SummaryOfTimes(totals.token_ns), first = SummaryOfTimes(totals.first_ns);
  out += fmt::format("{:>12}", "us");
  for (const auto& [key, value] : masks) out += fmt::format("{:>12}", key);
  out += fmt::format("\n{:>12}", "TBM");
  for (const auto& [key, value] : masks) out += fmt::format("{:>12.2f}", value);
  out += fmt::format("\n{:>12}", "TTFM");
  for (const auto& [key, value] : first) out += fmt::format("{:>12.1f}", value);
  return out + fmt::format("\n{} masks; memory {:.0f} MB\n", totals.token_ns.size(),
                           static_cast<double>(totals.rss_bytes) / 1e6);
}

// Where the time of the masks went.
std::string Profile(const Totals& totals) {
  std::string out = fmt::format("{:<16}{:>10}{:>10}{:>12}{:>10}{:>10}\n", "way", "masks", "%", "ms",
                                "%", "avg us");
  double masks = 1e-9, ns = 1e-9;
  for (size_t i = 0; i < kMaskStrategies; ++i) {
    masks += static_cast<double>(totals.profile[2 * i]);
    ns += static_cast<double>(totals.profile[2 * i + 1]);
  }
  for (size_t i = 0; i < kMaskStrategies; ++i) {
    const auto count = static_cast<double>(totals.profile[2 * i]);
    const auto time = static_cast<double>(totals.profile[2 * i + 1]);
    out += fmt::format("{:<16}{:>10}{:>10.2f}{:>12.1f}{:>10.2f}{:>10.2f}\n", kMaskStrategyNames[i],
                       totals.profile[2 * i], 100 * count / masks, time / 1e6, 100 * time / ns,
                       count == 0 ? 0 : time / count / 1000);
  }
  const double first = std::accumulate(totals.first_ns.begin(), totals.first_ns.end(), 0.0);
  out +=
      fmt::format("{:<16}{:>10}{:>10}{:>12.1f}{:>10}{:>10.2f}\n", "compile", totals.first_ns.size(),
                  "", first / 1e6, "",
                  first / 1000 / std::max<double>(1, static_cast<double>(totals.first_ns.size())));
  out += "slowest masks, one of a file\n";
  for (const SlowMask& mask : totals.slowest)
    out += fmt::format("{:>12.1f} us  {}, mask {}\n", static_cast<double>(mask.ns) / 1000,
                       mask.file, mask.number);
  return out;
}

Result<std::vector<std::string>> Files(const MaskbenchFlags& flags) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(flags.data, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  if (error) return Error{ErrorCode::kIo, error.message(), flags.data};
  if (files.empty())
    return Error{ErrorCode::kInvalid, "holds no .json files of MaskBench", flags.data};
  // One order for every machine, and slow schemas of one origin not side by side.
  std::sort(files.begin(), files.end());
  for (size_t i = files.size(); i-- > 1;) {
    std::swap(files[i],
              files[static_cast<size_t>(UniformAt(1, 0, i) * static_cast<float>(i + 1)) % (i + 1)]);
  }
  if (flags.limit > 0 && files.size() > static_cast<size_t>(flags.limit))
    files.resize(static_cast<size_t>(flags.limit));
  return files;
}

int Maskbench(const MaskbenchFlags& flags) {
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok())
      return Fail(kMaskbench, status.error());
  }
  Result<std::vector<std::string>> files = Files(flags);
  if (!files.ok()) return Fail(kMaskbench, files.error());
  Result<ModelText> text = LoadText(kMaskbench, flags.tokenizer);
  if (!text.ok()) return Fail(kMaskbench, text.error());
  const Bench bench(flags, std::move(*text));
  Totals totals;
  size_t finished = 0;
  {
    Progress progress(kMaskbench, "starting");
    Status status = RunMaskbench(
        files->size(), flags.jobs, flags.timeout, [&](size_t i) { return bench.Run((*files)[i]); },
        [&](size_t i, MaskbenchOutcome outcome) {
          ++totals.kinds[outcome.kind];
          totals.token_ns.insert(totals.token_ns.end(), outcome.token_ns.begin(),
                                 outcome.token_ns.end());
          for (size_t k = 0; k < outcome.layers.size() && k < totals.profile.size(); ++k)
            totals.profile[k] += outcome.layers[k];
          totals.AddSlowest(std::filesystem::path((*files)[i]).filename().string(),
                            outcome.token_ns);
          if (outcome.first_mask_ns != 0) totals.first_ns.push_back(outcome.first_mask_ns);
          totals.rss_bytes = std::max(totals.rss_bytes, outcome.rss_bytes);
          if (outcome.kind != Kind::kPass) {
            totals.failures.push_back({std::filesystem::path((*files)[i]).filename().string(),
                                       MaskbenchKindName(outcome.kind), outcome.detail});
          }
          progress.Set(fmt::format("{} of {} schemas, {} failed", ++finished, files->size(),
                                   totals.failures.size()));
        });
    if (!status.ok()) return Fail(kMaskbench, status.error());
  }
  std::sort(totals.failures.begin(), totals.failures.end(),
            [](const Failure& a, const Failure& b) { return a.file < b.file; });
  Print(Table(totals, files->size()));
  if (flags.profile) Print(Profile(totals));
  if (flags.list_failures) {
    for (const Failure& failure : totals.failures)
      Print(fmt::format("{}: {}: {}\n", failure.file, failure.kind, failure.detail));
  }
  if (!flags.json.empty()) {
    if (Status status = WriteFile(flags.json, ToJson(totals, files->size(), flags)); !status.ok())
      return Fail(kMaskbench, status.error());
  }
  const bool measured = totals.Count(Kind::kTimeout) == 0 && totals.Count(Kind::kCrash) == 0 &&
                        totals.Count(Kind::kBadFile) == 0;
  return measured ? kExitOk : kExitSomeFailed;
}

}  // namespace

void AddMaskbench(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kMaskbench, "Measure masks and correctness on the schemas of MaskBench");
  const auto flags = std::make_shared<MaskbenchFlags>();
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH",
             "tokenizer.json, or a folder with one")
      ->required();
  TextOption(command, "--data", flags->data, "DIR", "Folder with MaskBench files")->required();
  flags->layout.AddTo(command);
  flags->memory.AddTo(command);
  CountOption(command, "--jobs", flags->jobs, 1, 256, "Processes side by side; 1 for timings");
  CountOption(command, "--limit", flags->limit, 0, kMostCount,
              "Only N schemas, drawn evenly; 0: all");
  RealOption(command, "--timeout", flags->timeout, 0.001, 1e6, "SECONDS",
             "Seconds of processor time that one schema may take");
  auto* warm =
      command->add_flag("--warm", flags->warm,
                        "One compiler for all schemas, which keeps the last grammars, as in a "
                        "server;\neach schema and its texts are run once before they are timed");
  command->add_flag("--thread-time", flags->thread_time,
                    "Processor time of the thread, not time on the wall");
  CountOption(command, "--best-of", flags->best_of, 1, 100,
              "Runs of each schema; of every mask the shortest time counts");
  command->add_flag("--profile", flags->profile,
                    "Where the time of the masks went: a table by the way they were found, and "
                    "the slowest");
  command->add_flag("--cold", flags->cold, "A fresh compiler for every schema (the default)")
      ->excludes(warm);
  TextOption(command, "--json", flags->json, "OUT", "File for the figures and failures");
  command->add_flag("--list-failures", flags->list_failures,
                    "Print every schema that does not pass");
  command->footer(
      "Exit codes: 0 all files were measured, whatever came of them; 1 some were not (timeout, "
      "crash, "
      "bad_file); 2 bad input or usage.\n"
      "Data: the folder maskbench/data of github.com/guidance-ai/jsonschemabench.\n"
      "Example:\n  pawl maskbench --tokenizer llama3/tokenizer.json --data "
      "jsonschemabench/maskbench/data --json out.json");
  command->callback([flags, &action] { action = [flags] { return Maskbench(*flags); }; });
}

}  // namespace pawl::cli
