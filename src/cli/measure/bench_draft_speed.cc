// `pawl bench draft --speed-bench` and `--goodput`: what drafts give on prompts of several kinds.
//
// The first follows the protocol of SPEED-Bench: prompts by category, the length that a call
// accepts for each category, and the time at several batches, with drafts and without. The second
// sets the drafter's own choice of nodes against fixed numbers: that is what SmartSpec (Liu et al.,
// arXiv 2406.14066) and TETRIS (Wu et al., arXiv 2502.15197) promise, since the heap chooses by
// expected tokens a second over all requests of a call.
//
// An output ends where four tokens come for the third time: small models begin to repeat
// themselves, and repetitions are easy to draft.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/measure/bench_draft.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/decode/batch.h"

namespace pawl::cli {
namespace {

constexpr size_t kRepeated = 4;
constexpr int kMostRepeats = 3;
constexpr int kFixedNodes[] = {1, 2, 4, 8, 16, 32};

double ProcessorSeconds() {
  timespec spent = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

struct SpeedPrompt {
  std::string category;
  std::vector<TokenId> tokens;
};

struct CategoryCount {
  int outputs = 0;
  int64_t tokens = 0, calls = 0, rows = 0, accepted = 0;
  double PerCall() const {
    return calls > 0 ? static_cast<double>(tokens) / static_cast<double>(calls) : 0;
  }
};

struct SpeedRun {
  double seconds = 0;
  double processor = 0;  // seconds of all threads
  int64_t calls = 0;
  double expected = 0;
  int64_t model_calls = 0, late_calls = 0;  // of draft models
  CategoryCount all;
  std::map<std::string, CategoryCount> categories;
  double PerProcessor() const {
    return processor > 0 ? static_cast<double>(all.tokens) / processor : 0;
  }
  double PerSecond() const { return seconds > 0 ? static_cast<double>(all.tokens) / seconds : 0; }
};

Result<std::vector<SpeedPrompt>> ReadPrompts(const std::string& folder, const LoadedModel& model) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  }
  if (error) return Error{ErrorCode::kIo, error.message(), folder};
  std::sort(files.begin(), files.end());
  std::vector<SpeedPrompt> prompts;
  for (const std::string& file : files) {
    const Result<std::string> content = ReadFile(file);
    if (!content.ok()) return content.error();
    int number = 0;
    for (size_t begin = 0; begin < content->size();) {
      const size_t end = std::min(content->find('\n', begin), content->size());
      const std::string_view line = std::string_view(*content).substr(begin, end - begin);
      begin = end + 1;
      const std::string place = file + ":" + std::to_string(++number);
      if (line.empty()) continue;
      const Result<json::Value> value = json::Parse(line);
      if (!value.ok()) return InFile(place, value.error());
      const json::Value* const category = value->Find("category");
      const json::Value* const prompt = value->Find("prompt");
      const auto is_text = [](const json::Value* one) {
        return one != nullptr && one->type == json::Type::kString && !one->text.empty();
      };
      if (!is_text(category) || !is_text(prompt)) {
        return Error{ErrorCode::kInvalid, "is no object with a category and a prompt, both texts",
                     place};
      }
      Result<std::vector<TokenId>> tokens = model.EncodePlain(prompt->text, false);
      if (!tokens.ok()) return InFile(place, tokens.error());
      prompts.push_back({category->text, *std::move(tokens)});
    }
  }
  if (prompts.empty()) return Error{ErrorCode::kInvalid, "has no prompts in .jsonl files", folder};
  return prompts;
}

// Some of the prompts, of all categories alike.
void KeepSome(size_t limit, std::vector<SpeedPrompt>& prompts) {
  if (limit == 0 || limit >= prompts.size()) return;
  std::vector<SpeedPrompt> some;
  for (size_t i = 0; i < limit; ++i) {
    some.push_back(std::move(prompts[i * prompts.size() / limit]));
  }
  prompts = std::move(some);
}

class RepeatWatch {
 public:
  // Whether the output goes on behind this token.
  bool Add(TokenId token) {
    last_.push_back(token);
    if (last_.size() > kRepeated) last_.erase(last_.begin());
    return last_.size() < kRepeated || ++seen_[last_] < kMostRepeats;
  }

 private:
  std::vector<TokenId> last_;
  std::map<std::vector<TokenId>, int> seen_;
};

Result<SpeedRun> RunPrompts(const LoadedModel& model, const std::vector<SpeedPrompt>& prompts,
                            const BenchDraftFlags& flags, int batch,
                            std::shared_ptr<Drafter> drafter) {
  BatchOptions options;
  options.max_batch = batch;
  options.max_rows = std::max(options.max_rows, 2 * batch);
  options.drafter = std::move(drafter);
  BatchEngine engine(model.model(), model.text().vocabulary, model.text().encoder(), options);
  SpeedRun run;
  std::optional<Error> failed;
  std::vector<RepeatWatch> watches(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    BatchRequest request;
    request.prompt = prompts[i].tokens;
    request.options.sampling.temperature = flags.temperatures[0];
    request.options.sampling.seed = i;
    request.options.max_tokens = flags.max_tokens;
    request.options.on_token = [&watches, i](TokenId token, std::string_view) {
      return watches[i].Add(token);
    };
    request.done = [&run, &failed, &prompts, i](Result<Generation> output) {
      if (!output.ok()) {
        failed = output.error();
        return;
      }
      for (CategoryCount* count : {&run.all, &run.categories[prompts[i].category]}) {
        ++count->outputs;
        count->tokens += static_cast<int64_t>(output->tokens.size());
        count->calls += output->stats.forward_calls;
        count->rows += output->stats.drafts.rows;
        count->accepted += output->stats.drafts.accepted;
      }
      run.expected += output->stats.drafts.expected;
      for (const DraftSourceStats& source : output->stats.drafts.sources) {
        run.model_calls += source.model_calls;
        run.late_calls += source.late_calls;
      }
    };
    engine.Add(std::move(request));
  }
  const auto begin = std::chrono::steady_clock::now();
  const double before = ProcessorSeconds();
  while (engine.Step()) {
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.processor = ProcessorSeconds() - before;
  run.calls = engine.stats().steps;
  if (failed) return *std::move(failed);
  return run;
}

// The run whose time is the median; its processor time is the median of its own.
SpeedRun Median(std::vector<SpeedRun> runs) {
  std::vector<double> processor;
  for (const SpeedRun& run : runs) processor.push_back(run.processor);
  const auto half = processor.begin() + static_cast<ptrdiff_t>(processor.size() / 2);
  std::nth_element(processor.begin(), half, processor.end());
  const auto middle = runs.begin() + static_cast<ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const SpeedRun& a, const SpeedRun& b) { return a.seconds < b.seconds; });
  SpeedRun median = std::move(*middle);
  median.processor = *half;
  return median;
}

double Ratio(double over, double under) { return under > 0 ? over / under : 0; }

// Drafts with so many nodes: -1: the drafter chooses; 0: none.
using Contest = std::vector<int>;

Result<std::vector<SpeedRun>> RunContest(LoadedModel& model,
                                         const std::vector<SpeedPrompt>& prompts,
                                         const BenchDraftFlags& flags, int batch,
                                         const Contest& contest, Progress& progress) {
  std::vector<std::vector<SpeedRun>> runs(contest.size());
  for (int round = 0; round < flags.rounds; ++round) {
    for (size_t i = 0; i < contest.size(); ++i) {
      progress.Set(fmt::format("batch {}, round {} of {}", batch, round + 1, flags.rounds));
      std::shared_ptr<Drafter> drafter;
      if (contest[i] != 0) {
        DraftFlags drafts;
        drafts.options.sources = flags.sources;
        drafts.options.nodes = contest[i] > 0 ? contest[i] : flags.nodes;
        drafts.options.always = contest[i] > 0;
        drafts.options.text_file = flags.text_file;
        drafts.options.more_models = flags.draft_models;
        drafts.options.verify = flags.verify;
        drafts.options.shape = flags.shape_of_trees;
        if (Status status = drafts.Check(); !status.ok()) return AtSources(status.error());
        Result<std::shared_ptr<Drafter>> made = drafts.Make(model);
        if (!made.ok()) return AtSources(made.error());
        drafter = *std::move(made);
      }
      Result<SpeedRun> run = RunPrompts(model, prompts, flags, batch, std::move(drafter));
      if (!run.ok()) return run.error();
      runs[i].push_back(*std::move(run));
    }
  }
  std::vector<SpeedRun> medians;
  for (std::vector<SpeedRun>& of : runs) medians.push_back(Median(std::move(of)));
  return medians;
}

void PrintCategories(const SpeedRun& off, const SpeedRun& on, std::string& json) {
  Print(fmt::format("{:<16}{:>8}{:>12}{:>16}{:>10}\n", "category", "tokens", "tokens/call",
                    "without drafts", "right"));
  json += "\"categories\":{";
  const char* comma = "";
  for (const auto& [name, count] : on.categories) {
    const double without = off.categories.at(name).PerCall();
    const double right =
        Ratio(static_cast<double>(count.accepted), static_cast<double>(count.rows));
    Print(fmt::format("{:<16}{:>8}{:>12.2f}{:>16.2f}{:>10.2f}\n", name, count.tokens,
                      count.PerCall(), without, right));
    json += fmt::format(
        "{}{}:{{\"outputs\":{},\"tokens\":{},\"tokens_per_call\":{:.4f},\"without\":{:.4f},"
        "\"right\":{:.4f}}}",
        comma, json::Quote(name), count.outputs, count.tokens, count.PerCall(), without, right);
    comma = ",";
  }
  json += "}";
}

}  // namespace

int SpeedBench(const BenchDraftFlags& flags) {
  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok()) return Fail(kBenchDraft, folder.error());
  Result<std::unique_ptr<LoadedModel>> model = OpenModel(kBenchDraft, *folder);
  if (!model.ok()) return Fail(kBenchDraft, model.error());
  const std::string texts = flags.speed_bench.empty() ? kSpeedBenchTexts : flags.speed_bench;
  Result<std::vector<SpeedPrompt>> prompts = ReadPrompts(texts, **model);
  if (!prompts.ok()) return Fail(kBenchDraft, prompts.error());
  KeepSome(static_cast<size_t>(flags.limit), *prompts);
  if (Status status = LoadWeights(kBenchDraft, **model, flags.threads, flags.dtype); !status.ok()) {
    return Fail(kBenchDraft, status.error());
  }
  Contest contest = {0, flags.always ? flags.nodes : -1};
  if (flags.goodput) contest.insert(contest.end(), std::begin(kFixedNodes), std::end(kFixedNodes));
  std::vector<std::vector<SpeedRun>> by_batch;
  {
    Progress progress(kBenchDraft, "starting");
    for (const int batch : flags.batches) {
      auto runs = RunContest(**model, *prompts, flags, batch, contest, progress);
      if (!runs.ok()) return Fail(kBenchDraft, runs.error());
      by_batch.push_back(*std::move(runs));
    }
  }
  std::string json =
      fmt::format("{{\"prompts\":{},\"temperature\":{},", prompts->size(), flags.temperatures[0]);
  PrintCategories(by_batch[0][0], by_batch[0][1], json);
  json += ",\"batches\":[";
  Print(fmt::format("\n{:>6}{:>8}{:>12}{:>10}{:>12}{:>10}{:>12}{:>12}\n", "batch", "nodes",
                    "tokens/s", "speed-up", "tokens/call", "rows/call", "expected", "came"));
  for (size_t b = 0; b < by_batch.size(); ++b) {
    double best = 0, best_by_processor = 0;
    for (size_t i = 0; i < contest.size(); ++i) {
      const SpeedRun& run = by_batch[b][i];
      const double speed = Ratio(run.PerSecond(), by_batch[b][0].PerSecond());
      const auto calls = static_cast<double>(std::max<int64_t>(1, run.calls));
      const std::string nodes = contest[i] < 0    ? "chosen"
                                : contest[i] == 0 ? "off"
                                                  : std::to_string(contest[i]);
      if (contest[i] >= 0) {
        best = std::max(best, run.PerSecond());
        best_by_processor = std::max(best_by_processor, run.PerProcessor());
      }
      Print(fmt::format("{:>6}{:>8}{:>12.1f}{:>10.2f}{:>12.2f}{:>10.2f}{:>12.2f}{:>12.2f}\n",
                        flags.batches[b], nodes, run.PerSecond(), speed, run.all.PerCall(),
                        static_cast<double>(run.all.rows) / calls, run.expected / calls,
                        static_cast<double>(run.all.accepted) / calls));
      json += fmt::format(
          "{}{{\"batch\":{},\"nodes\":\"{}\",\"tokens\":{},\"calls\":{},\"seconds\":{:.4f},"
          "\"processor_seconds\":{:.4f},\"tokens_per_call\":{:.4f},\"rows\":{},\"expected\":{:.2f},"
          "\"came\":{},"
          "\"model_calls\":{},\"late_calls\":{}}}",
          b + i == 0 ? "" : ",", flags.batches[b], nodes, run.all.tokens, run.calls, run.seconds,
          run.processor, run.all.PerCall(), run.all.rows, run.expected, run.all.accepted,
          run.model_calls, run.late_calls);
    }
    if (const SpeedRun& run = by_batch[b][1]; run.model_calls > 0) {
      Print(fmt::format("{:>6}  {} calls of the draft model, {} of them while a device verified\n",
                        flags.batches[b], run.model_calls, run.late_calls));
    }
    if (flags.goodput) {
      const SpeedRun& chosen = by_batch[b][1];
      Print(fmt::format(
          "{:>6}  chosen against the best fixed number: {:.3f}; by processor time {:.3f}\n",
          flags.batches[b], Ratio(chosen.PerSecond(), best),
          Ratio(chosen.PerProcessor(), best_by_processor)));
    }
  }
  if (!flags.json.empty()) {
    if (Status status = WriteFile(flags.json, json + "]}\n"); !status.ok()) {
      return Fail(kBenchDraft, status.error());
    }
  }
  return kExitOk;
}

}  // namespace pawl::cli
