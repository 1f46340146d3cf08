// `pawl bench draft --replay`: how many tokens a step would give if a model wrote exactly these
// texts.
//
// No model is needed: at each step a tree is drafted, the walk follows the text as far as the tree
// has it, and the token after that comes with the same step. Three drafters run side by side over
// the same texts: forced text alone, the chosen sources, and the chosen sources without the filter.
// What they learned of tokens is forgotten from file to file; how often their proposals are right
// stays known, as in an engine that has been running.
#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/measure/bench_draft.h"
#include "src/cli/measure/replay_texts.h"
#include "src/cli/progress.h"
#include "src/decode/draft/drafter.h"

namespace pawl::cli {
namespace {

// Rows cost nothing in a count, so a node below this chance is not worth one.
constexpr float kLeastChance = 0.02f;

struct KindCount {
  int64_t tokens = 0;
  double steps = 0;  // each token has its part of its step
  double PerStep() const { return steps > 0 ? static_cast<double>(tokens) / steps : 0; }
};

// One drafter over all texts.
class Replayer {
 public:
  // `memory`: of DraftOptions.
  static Result<std::unique_ptr<Replayer>> Make(const ModelText& text, const BenchDraftFlags& flags,
                                                const std::string& sources, bool filter,
                                                int memory = DraftOptions().memory) {
    DraftSetting setting;
    setting.vocabulary = text.vocabulary;
    setting.encode = text.encoder();
    setting.vocabulary_size = text.vocabulary->size();
    setting.as_skipped = false;
    setting.options.sources = sources;
    setting.options.nodes = flags.nodes;
    setting.options.filter = filter;
    setting.options.memory = memory;
    setting.options.text_file = flags.text_file;
    const Result<std::vector<size_t>> indices = ParseDraftSources(setting.options);
    if (!indices.ok()) return indices.error();
    auto replayer = std::make_unique<Replayer>();
    replayer->nodes_ = flags.nodes;
    Result<std::unique_ptr<Drafter>> drafter = Drafter::Make(std::move(setting), *indices);
    if (!drafter.ok()) return drafter.error();
    replayer->drafter_ = *std::move(drafter);
    return replayer;
  }

  void Read(const ReplayFile& file) {
    for (const ReplayText& text : file.texts) Read(file.prompt, text);
    Forget();
  }
  // `counted`: its steps and tokens are.
  void Read(const std::vector<TokenId>& prompt, const ReplayText& text, bool counted = true);
  void Forget() { (void)drafter_->Forget(); }

  double PerStep() const {
    return steps_ > 0 ? static_cast<double>(tokens_) / static_cast<double>(steps_) : 0;
  }
  int64_t tokens() const { return tokens_; }
  int64_t steps() const { return steps_; }
  const std::array<KindCount, kTextKinds>& kinds() const { return kinds_; }
  const DraftStats& stats() const { return drafter_->stats(); }
  int64_t bytes() const { return drafter_->bytes(); }

 private:
  void Count(const ReplayText& text, size_t begin, size_t end);
  std::unique_ptr<Drafter> drafter_;
  int nodes_ = 0;
  int64_t tokens_ = 0, steps_ = 0;
  std::array<KindCount, kTextKinds> kinds_;
};

void Replayer::Read(const std::vector<TokenId>& prompt, const ReplayText& text, bool counted) {
  std::shared_ptr<const LoopConstraint> at =
      ForLoop(MakeConstraint(text.grammar), text.grammar.vocabulary());
  const auto request =
      drafter_->Begin({.prompt = prompt, .constraint = at, .grammar = FingerprintOf(at.get())});
  std::vector<TokenId> tokens = prompt;
  // A prompt has a token: the root's.
  size_t prompt_size = prompt.size();
  if (tokens.empty()) {
    tokens.push_back(0);
    prompt_size = 1;
  }
  for (size_t done = 0; done < text.tokens.size();) {
    const int left = static_cast<int>(text.tokens.size() - done);
    DraftTask task = {.request = request.get(),
                      .tokens = tokens,
                      .prompt = prompt_size,
                      .at = at,
                      .mask = at->mask(),
                      .most_nodes = nodes_,
                      .most_depth = left};
    drafter_->Draft({&task, 1}, {.least_chance = kLeastChance});
    const size_t begin = done;
    for (int node = 0; node >= 0 && done < text.tokens.size();) {
      const TokenId came = text.tokens[done++];
      drafter_->Verified(*request, node, came);
      at = at->Next(came);
      node = request->tree.Child(node, came);
    }
    tokens.insert(tokens.end(), text.tokens.begin() + static_cast<ptrdiff_t>(begin),
                  text.tokens.begin() + static_cast<ptrdiff_t>(done));
    if (counted) Count(text, begin, done);
  }
  drafter_->Finish(*request, text.tokens);
}

void Replayer::Count(const ReplayText& text, size_t begin, size_t end) {
  ++steps_;
  tokens_ += static_cast<int64_t>(end - begin);
  for (size_t i = begin; i < end; ++i) {
    KindCount& kind = kinds_[static_cast<size_t>(text.kinds[i])];
    ++kind.tokens;
    kind.steps += 1.0 / static_cast<double>(end - begin);
  }
}

struct Counts {
  int files = 0, texts = 0, skipped = 0, bad = 0;
};

std::string Json(const BenchDraftFlags& flags, const Counts& counts, const Replayer& forced,
                 const Replayer& all, const Replayer* unfiltered) {
  std::string out = fmt::format(
      "{{\"files\":{},\"texts\":{},\"skipped\":{},\"tokens\":{},\"nodes\":{},\"filter\":{},"
      "\"tokens_per_step\":{{\"none\":1.0,\"forced\":{:.4f},\"all\":{:.4f}",
      counts.files, counts.texts, counts.skipped, all.tokens(), flags.nodes, !flags.no_filter,
      forced.PerStep(), all.PerStep());
  if (unfiltered != nullptr) out += fmt::format(",\"unfiltered\":{:.4f}", unfiltered->PerStep());
  out += fmt::format("}},\"drafted_per_step\":{:.3f},\"seconds_per_step\":{:.9f},\"sources\":{{",
                     static_cast<double>(all.stats().rows) / static_cast<double>(all.steps()),
                     all.stats().seconds / static_cast<double>(all.steps()));
  const char* comma = "";
  for (const DraftSourceStats& s : all.stats().sources) {
    out += fmt::format("{}\"{}\":{{\"drafted\":{},\"kept\":{},\"accepted\":{},\"seconds\":{:.3f}}}",
                       comma, s.name, s.drafted, s.kept, s.accepted, s.seconds);
    comma = ",";
  }
  out += "},\"categories\":{";
  comma = "";
  for (size_t i = 0; i < kTextKinds; ++i) {
    const KindCount& kind = all.kinds()[i];
    out += fmt::format("{}\"{}\":{{\"tokens\":{},\"tokens_per_step\":{:.4f}", comma,
                       kTextKindNames[i], kind.tokens, kind.PerStep());
    out += fmt::format(",\"forced\":{:.4f}", forced.kinds()[i].PerStep());
    if (unfiltered != nullptr) {
      out += fmt::format(",\"unfiltered\":{:.4f}", unfiltered->kinds()[i].PerStep());
    }
    out += "}";
    comma = ",";
  }
  return out + "}}\n";
}

void PrintTable(const Counts& counts, const Replayer& forced, const Replayer& all,
                const Replayer* unfiltered) {
  Print(fmt::format("{} texts of {} files ({} refused, {} files without), {} tokens\n\n",
                    counts.texts, counts.files, counts.skipped, counts.bad, all.tokens()));
  Print(fmt::format("{:<16}{:>10}{:>8}{:>8}{:>8}{:>12}\n", "tokens per step", "tokens", "none",
                    "forced", "all", "unfiltered"));
  const auto line = [&](const char* name, int64_t tokens, double f, double a, double u) {
    Print(fmt::format("{:<16}{:>10}{:>8.2f}{:>8.2f}{:>8.2f}", name, tokens, 1.0, f, a));
    Print(unfiltered == nullptr ? "\n" : fmt::format("{:>12.2f}\n", u));
  };
  line("all texts", all.tokens(), forced.PerStep(), all.PerStep(),
       unfiltered != nullptr ? unfiltered->PerStep() : 0);
  for (size_t i = 0; i < kTextKinds; ++i) {
    line(kTextKindNames[i], all.kinds()[i].tokens, forced.kinds()[i].PerStep(),
         all.kinds()[i].PerStep(), unfiltered != nullptr ? unfiltered->kinds()[i].PerStep() : 0);
  }
  Print(fmt::format("\n{:<12}{:>12}{:>12}{:>12}{:>10}\n", "source", "drafted", "kept", "accepted",
                    "us/step"));
  const auto steps = static_cast<double>(std::max<int64_t>(1, all.steps()));
  for (const DraftSourceStats& s : all.stats().sources) {
    Print(fmt::format("{:<12}{:>12}{:>12}{:>12}{:>10.2f}\n", s.name, s.drafted, s.kept, s.accepted,
                      s.seconds / steps * 1e6));
  }
  Print(fmt::format("\n{:.2f} rows a step, {:.1f} us of drafting a step\n",
                    static_cast<double>(all.stats().rows) / steps,
                    all.stats().seconds / steps * 1e6));
}

std::string SourcesOf(const BenchDraftFlags& flags) {
  return flags.sources == "all" ? "forced,literals,suffix,history,ngram" : flags.sources;
}

// Each file with texts, and its progress. Errors: kIo, kInvalid.
Status EachFile(const BenchDraftFlags& flags, const ModelText& text,
                const std::function<void(const ReplayFile& file)>& see) {
  Result<std::vector<std::string>> files = ReplayFiles(flags.replay, flags.limit);
  if (!files.ok()) return files.error();
  if (flags.tools) std::erase_if(*files, [](const std::string& path) { return !IsToolFile(path); });
  Progress progress(kBenchDraft, "starting");
  int read = 0;
  for (const std::string& path : *files) {
    Result<std::optional<ReplayFile>> file = ReadReplayFile(path, text);
    if (!file.ok()) return file.error();
    if (*file) see(**file);
    progress.Set(fmt::format("{} of {} files", ++read, files->size()));
  }
  return {};
}

int WriteJson(const BenchDraftFlags& flags, const std::string& json) {
  if (flags.json.empty()) return kExitOk;
  if (Status status = WriteFile(flags.json, json); !status.ok()) {
    return Fail(kBenchDraft, status.error());
  }
  return kExitOk;
}

}  // namespace

// A tool is a schema, and its calls may stand in several files. The drafter of the third calls
// forgets nothing, as an engine that serves all tools in turn.
int ReplayTools(const BenchDraftFlags& flags) {
  constexpr size_t kWritten = 2;
  Result<ModelText> text = LoadText(kBenchDraft, flags.tokenizer);
  if (!text.ok()) return Fail(kBenchDraft, text.error());
  auto first = Replayer::Make(*text, flags, SourcesOf(flags), !flags.no_filter);
  auto third = Replayer::Make(*text, flags, SourcesOf(flags), !flags.no_filter);
  if (!first.ok() || !third.ok()) {
    return Fail(kBenchDraft, AtSources(first.ok() ? third.error() : first.error()));
  }
  int tools = 0, with_calls = 0;
  std::map<std::string, size_t> calls;  // of each tool
  const Status read = EachFile(flags, *text, [&](const ReplayFile& file) {
    if (!file.is_tool || file.texts.empty()) return;
    ++tools;
    (*first)->Read(file.prompt, file.texts[0]);
    (*first)->Forget();
    for (const ReplayText& call : file.texts) {
      const size_t before = calls[file.tool]++;
      if (before > kWritten) return;
      with_calls += before == kWritten ? 1 : 0;
      (*third)->Read(file.prompt, call, before == kWritten);
    }
  });
  if (!read.ok()) return Fail(kBenchDraft, read.error());
  if (tools == 0) {
    return Fail(kBenchDraft, {ErrorCode::kInvalid, "has no calls of tools", flags.replay});
  }
  Print(fmt::format("{:<28}{:>8}{:>10}{:>16}\n", "calls of tools", "tools", "tokens",
                    "tokens per step"));
  Print(fmt::format("{:<28}{:>8}{:>10}{:>16.2f}\n", "first, none written before", tools,
                    (*first)->tokens(), (*first)->PerStep()));
  Print(fmt::format("{:<28}{:>8}{:>10}{:>16.2f}\n", "third, two written before", with_calls,
                    (*third)->tokens(), (*third)->PerStep()));
  return WriteJson(
      flags, fmt::format("{{\"tools\":{},\"first\":{{\"tokens\":{},\"tokens_per_step\":{:.4f}}},"
                         "\"tools_with_three\":{},\"third\":{{\"tokens\":{},"
                         "\"tokens_per_step\":{:.4f}}}}}\n",
                         tools, (*first)->tokens(), (*first)->PerStep(), with_calls,
                         (*third)->tokens(), (*third)->PerStep()));
}

// The last text of each file is counted when all other texts have been written, so what counts is
// how much of them is still known.
int MemoryCurve(const BenchDraftFlags& flags) {
  constexpr int kMegabytes[] = {1, 4, 16, 64, 256};
  Result<ModelText> text = LoadText(kBenchDraft, flags.tokenizer);
  if (!text.ok()) return Fail(kBenchDraft, text.error());
  std::vector<std::unique_ptr<Replayer>> replayers;
  for (const int memory : kMegabytes) {
    auto made = Replayer::Make(*text, flags, SourcesOf(flags), !flags.no_filter, memory);
    if (!made.ok()) return Fail(kBenchDraft, AtSources(made.error()));
    replayers.push_back(*std::move(made));
  }
  for (const bool counted : {false, true}) {
    const Status read = EachFile(flags, *text, [&](const ReplayFile& file) {
      if (file.texts.size() < 2) return;
      for (const auto& replayer : replayers) {
        for (size_t i = 0; i + 1 < file.texts.size() && !counted; ++i) {
          replayer->Read(file.prompt, file.texts[i], false);
        }
        if (counted) replayer->Read(file.prompt, file.texts.back());
      }
    });
    if (!read.ok()) return Fail(kBenchDraft, read.error());
  }
  if (replayers[0]->tokens() == 0) {
    return Fail(kBenchDraft,
                {ErrorCode::kInvalid, "has no file with two valid texts", flags.replay});
  }
  Print(fmt::format("{:>6}{:>12}{:>12}{:>18}{:>18}\n", "MB", "MB kept", "tokens", "accepted drafts",
                    "tokens per step"));
  std::string json = "[";
  for (size_t i = 0; i < replayers.size(); ++i) {
    const Replayer& replayer = *replayers[i];
    const int64_t accepted = replayer.tokens() - replayer.steps();
    const double kept = static_cast<double>(replayer.bytes()) / (1 << 20);
    Print(fmt::format("{:>6}{:>12.1f}{:>12}{:>18}{:>18.2f}\n", kMegabytes[i], kept,
                      replayer.tokens(), accepted, replayer.PerStep()));
    json += fmt::format("{}{{\"memory\":{},\"kept\":{:.2f},\"tokens\":{},\"accepted\":{}}}",
                        i == 0 ? "" : ",", kMegabytes[i], kept, replayer.tokens(), accepted);
  }
  return WriteJson(flags, json + "]\n");
}

int ReplayCounts(const BenchDraftFlags& flags) {
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok()) {
      return Fail(kBenchDraft, status.error());
    }
  }
  Result<std::vector<std::string>> files = ReplayFiles(flags.replay, flags.limit);
  if (!files.ok()) return Fail(kBenchDraft, files.error());
  Result<ModelText> text = LoadText(kBenchDraft, flags.tokenizer);
  if (!text.ok()) return Fail(kBenchDraft, text.error());
  auto forced = Replayer::Make(*text, flags, "forced", true);
  if (!forced.ok()) return Fail(kBenchDraft, forced.error());
  const std::string sources = SourcesOf(flags);
  auto all = Replayer::Make(*text, flags, sources, !flags.no_filter);
  if (!all.ok()) return Fail(kBenchDraft, AtSources(all.error()));
  std::unique_ptr<Replayer> unfiltered;
  if (!flags.no_filter) {
    auto made = Replayer::Make(*text, flags, sources, false);
    if (!made.ok()) return Fail(kBenchDraft, made.error());
    unfiltered = *std::move(made);
  }
  Counts counts;
  {
    Progress progress(kBenchDraft, "starting");
    for (const std::string& path : *files) {
      Result<std::optional<ReplayFile>> file = ReadReplayFile(path, *text);
      if (!file.ok()) return Fail(kBenchDraft, file.error());
      ++counts.files;
      if (!*file) {
        ++counts.bad;
        continue;
      }
      counts.skipped += (*file)->skipped;
      counts.texts += static_cast<int>((*file)->texts.size());
      (*forced)->Read(**file);
      (*all)->Read(**file);
      if (unfiltered != nullptr) unfiltered->Read(**file);
      progress.Set(fmt::format("{} of {} files, {:.2f} tokens per step", counts.files,
                               files->size(), (*all)->PerStep()));
    }
  }
  if (counts.texts == 0) {
    return Fail(kBenchDraft,
                {ErrorCode::kInvalid, "no valid instance fits its schema", flags.replay});
  }
  PrintTable(counts, **forced, **all, unfiltered.get());
  return WriteJson(flags, Json(flags, counts, **forced, **all, unfiltered.get()));
}

}  // namespace pawl::cli
