// `pawl bench draft --replay DIR --shape SHAPE`: what drafts save in time, with real forward
// passes.
//
// The weights are random, so what the model says means nothing; the replayed text decides what is
// accepted. Everything else is what an output takes: masks, drafting, the rows of the model with
// the head that the masks leave, and a draw for each row that the text passes. Without drafts a
// step has one row and those of forced tokens. Each text is read by all contestants one after the
// other, in turns, so that they have the same machine: off, on (the cost curve decides), and, with
// --all-nodes, trees of a fixed number of nodes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
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
#include "src/decode/generation.h"
#include "src/decode/sampler.h"
#include "src/model/random_weights.h"

namespace pawl::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Of the prompt the model reads only the end: reading it is not what is measured.
constexpr size_t kMostPrompt = 64;
// Tokens of one text that are read.
constexpr size_t kMostText = 160;
// Where texts are picked by kind: shorter ones say little, and so many files are looked at.
constexpr size_t kLeastText = 16, kMostFiles = 2000;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Spent {
  double seconds = 0, drafting = 0, expected = 0, accepted = 0;
  int64_t tokens = 0, steps = 0, rows = 0;
  std::array<double, kTextKinds> kind_seconds = {};
  std::array<int64_t, kTextKinds> kind_tokens = {};
};

// One way to read all texts.
class Contestant {
 public:
  // `nodes`: 0: off; -1: as the curve says; else always so many.
  static Result<std::unique_ptr<Contestant>> Make(const ModelText& text, Model& model,
                                                  const BenchDraftFlags& flags, int nodes) {
    auto made = std::unique_ptr<Contestant>(new Contestant(text, model));
    if (nodes == 0) return made;
    DraftSetting setting;
    setting.vocabulary = text.vocabulary;
    setting.encode = text.encoder();
    setting.vocabulary_size = text.vocabulary->size();
    setting.options.sources =
        flags.sources == "all" ? "forced,literals,suffix,history,ngram" : flags.sources;
    setting.options.nodes = nodes > 0 ? nodes : flags.nodes;
    setting.options.filter = !flags.no_filter;
    setting.options.always = nodes > 0;
    const Result<std::vector<size_t>> indices = ParseDraftSources(setting.options);
    if (!indices.ok()) return indices.error();
    Result<std::unique_ptr<Drafter>> drafter = Drafter::Make(std::move(setting), *indices);
    if (!drafter.ok()) return drafter.error();
    made->drafter_ = *std::move(drafter);
    made->curve_ = LatencyModel(model.info());
    return made;
  }

  Status Read(const ReplayFile& file, const ReplayText& text, Spent& spent) {
    const auto width = static_cast<size_t>(model_.info().vocabulary_size);
    const size_t size = std::min(text.tokens.size(), kMostText);
    const std::vector<TokenId> prompt = file.prompt.empty() ? std::vector<TokenId>{0} : file.prompt;
    const size_t shown = std::min(prompt.size(), kMostPrompt);
    Result<SequenceId> sequence = model_.NewSequence(static_cast<int>(shown + size) + kMaxTreeRows);
    if (!sequence.ok()) return sequence.error();
    std::vector<TokenId> tokens = prompt;
    const size_t hidden = prompt.size() - shown;  // tokens that the model does not see
    // All but the last of the prompt.
    rows_.clear();
    for (size_t i = hidden; i + 1 < prompt.size(); ++i) Push(prompt[i], i - hidden, *sequence);
    if (!rows_.empty()) {
      if (Status status = model_.Forward(rows_, {}); !status.ok()) return status;
    }
    size_t held = shown - 1;  // positions
    std::shared_ptr<const LoopConstraint> at =
        ForLoop(MakeConstraint(text.grammar), text.grammar.vocabulary());
    std::unique_ptr<RequestDrafts> request;
    if (drafter_ != nullptr) request = drafter_->Begin({.prompt = prompt, .constraint = at});
    size_t done = 0;
    Status status;
    while (done < size && status.ok()) {
      const auto start = Clock::now();
      const size_t begin = done;
      TakeForced(text, size, done, at, tokens);
      if (done < size) {
        status = Step(text, size, *sequence, hidden, request.get(), width, done, at, tokens, held);
      }
      Count(text, begin, done, Since(start), spent);
    }
    if (drafter_ != nullptr) {
      drafter_->Finish(*request, std::span(text.tokens).first(size));
      spent.drafting += request->stats().seconds;
      spent.expected += request->stats().expected;
      spent.accepted += static_cast<double>(request->stats().accepted);
    }
    model_.FreeSequence(*sequence);
    return status;
  }

  Status Forget() { return drafter_ == nullptr ? Status() : drafter_->Forget(); }
  const LatencyModel& curve() const { return curve_; }

 private:
  Contestant(const ModelText& text, Model& model)
      : text_(text), encode_(text.encoder()), model_(model), sampler_({}) {}

  void Push(TokenId token, size_t position, SequenceId sequence) {
    Row row;
    row.token = token % model_.info().vocabulary_size;
    row.position = static_cast<int32_t>(position);
    row.sequence = sequence;
    rows_.push_back(row);
  }

  // What the decode loop takes without the model, where the text has the same tokens.
  void TakeForced(const ReplayText& text, size_t size, size_t& done,
                  std::shared_ptr<const LoopConstraint>& at, std::vector<TokenId>& tokens) const {
    const auto take = [&](TokenId token) {
      if (done >= size || text.tokens[done] != token) return false;
      at = at->Next(token);
      tokens.push_back(token);
      ++done;
      return true;
    };
    for (bool more = true; more && done < size;) {
      const auto mask = at->mask();
      more = false;
      if (mask->singleton() != kNoToken) {
        more = take(mask->singleton());
      } else if (mask->count() <= LoopConstraint::kMostSpellings) {
        const std::string run = at->forced(256);
        if (run.size() < 2) return;
        for (const TokenId token : SpellForced(*text_.vocabulary, encode_, run)) {
          if (!take(token)) return;
          more = true;
        }
      }
    }
  }

  std::span<const uint32_t> WordsOf(const Mask* mask, size_t width) const {
    if (mask == nullptr) return {};
    return mask->words().first(std::min(mask->words().size(), (width + 31) / 32));
  }

  Status Step(const ReplayText& text, size_t size, SequenceId sequence, size_t hidden,
              RequestDrafts* request, size_t width, size_t& done,
              std::shared_ptr<const LoopConstraint>& at, std::vector<TokenId>& tokens,
              size_t& held) {
    rows_.clear();
    for (size_t i = hidden + held; i < tokens.size(); ++i) Push(tokens[i], i - hidden, sequence);
    const int pending = static_cast<int>(rows_.size());
    const std::shared_ptr<const Mask> mask = at->mask();
    rows_.back().output = 0;
    rows_.back().allowed = WordsOf(mask.get(), width);
    int outputs = 1;
    node_rows_.assign(1, pending - 1);
    if (drafter_ != nullptr) drafter_->CountCall();
    if (drafter_ != nullptr && (curve_.known() || drafter_->options().always)) {
      DraftTask task;
      task.request = request;
      task.tokens = tokens;
      task.prompt = tokens.size() - done;
      task.at = at;
      task.mask = mask;
      task.most_nodes = std::min(drafter_->options().nodes, kMaxTreeRows - pending);
      task.most_depth = static_cast<int>(size - done) - 1;
      DraftLimits limits;
      limits.rows = pending;
      limits.context = static_cast<int>(tokens.size() - hidden);
      limits.curve = &curve_;
      drafter_->Draft({&task, 1}, limits);
      AddTree(request->tree, sequence, tokens.size() - hidden - 1, width, outputs);
    }
    logits_.resize(static_cast<size_t>(outputs) * width);
    const auto start = Clock::now();
    if (Status status = model_.Forward(rows_, logits_); !status.ok()) return status;
    curve_.Learn(static_cast<int>(rows_.size()), static_cast<int>(tokens.size() - hidden),
                 Since(start), outputs - 1);
    int node = 0;
    std::shared_ptr<const Mask> here = mask;
    const bool tree = request != nullptr && !request->tree.nodes.empty();
    for (;;) {
      const auto output = static_cast<size_t>(
          rows_[static_cast<size_t>(node_rows_[static_cast<size_t>(node)])].output);
      const auto known = std::min(width, static_cast<size_t>(text_.vocabulary->size()));
      // The draw is made, and the text knows better.
      (void)sampler_.Sample(
          std::span<const float>(logits_).subspan(output * width, known),
          known < static_cast<size_t>(text_.vocabulary->size()) ? nullptr : here.get(), done, {});
      const TokenId came = text.tokens[done++];
      tokens.push_back(came);
      at = at->Next(came);
      if (tree) drafter_->Verified(*request, node, came);
      const int child = tree ? request->tree.Child(node, came) : -1;
      if (child < 0 || done >= size) break;
      node = child;
      here = request->tree.nodes[static_cast<size_t>(node)].mask;
    }
    const int row = node_rows_[static_cast<size_t>(node)];
    held += static_cast<size_t>(pending);
    if (tree) {
      held += static_cast<size_t>(request->tree.nodes[static_cast<size_t>(node)].depth);
      if (static_cast<int>(rows_.size()) > plain_rows_) {
        return model_.CommitTree(sequence, row);
      }
      if (row + 1 < plain_rows_) model_.Truncate(sequence, static_cast<int>(held));
    }
    return {};
  }

  void AddTree(const DraftTree& tree, SequenceId sequence, size_t root, size_t width,
               int& outputs) {
    plain_rows_ = static_cast<int>(rows_.size());
    if (tree.drafts() == 0) return;
    node_rows_.assign(tree.nodes.size(), -1);
    node_rows_[0] = plain_rows_ - 1;
    std::vector<uint64_t> paths(tree.nodes.size(), 0);
    paths[0] = (uint64_t{1} << node_rows_[0]) - 1;
    const auto add = [&](int index, bool plain) {
      const DraftNode& node = tree.nodes[static_cast<size_t>(index)];
      const auto parent = static_cast<size_t>(node.parent);
      paths[static_cast<size_t>(index)] = paths[parent] | uint64_t{1} << node_rows_[parent];
      node_rows_[static_cast<size_t>(index)] = static_cast<int>(rows_.size());
      Push(node.token, root + static_cast<size_t>(node.depth), sequence);
      rows_.back().ancestors = plain ? 0 : paths[static_cast<size_t>(index)];
      rows_.back().output = outputs++;
      rows_.back().allowed = WordsOf(node.mask.get(), width);
    };
    for (int i = tree.LikeliestChild(0); i >= 0; i = tree.LikeliestChild(i)) {
      add(i, true);
      ++plain_rows_;
    }
    for (int i = 1; i < static_cast<int>(tree.nodes.size()); ++i) {
      if (node_rows_[static_cast<size_t>(i)] < 0) add(i, false);
    }
  }

  void Count(const ReplayText& text, size_t begin, size_t end, double seconds, Spent& spent) const {
    spent.seconds += seconds;
    ++spent.steps;
    spent.rows += static_cast<int64_t>(rows_.size());
    const size_t n = end - begin;
    spent.tokens += static_cast<int64_t>(n);
    for (size_t i = begin; i < end; ++i) {
      const auto kind = static_cast<size_t>(text.kinds[i]);
      spent.kind_seconds[kind] += seconds / static_cast<double>(n);
      ++spent.kind_tokens[kind];
    }
  }

  const ModelText& text_;
  const Encoder encode_;
  Model& model_;
  Sampler sampler_;
  std::unique_ptr<Drafter> drafter_;
  LatencyModel curve_;
  std::vector<Row> rows_;
  std::vector<int> node_rows_;
  int plain_rows_ = 0;
  std::vector<float> logits_;
};

// Of the times without drafts and with: over all tokens, and the mean over the kinds.
double MeanSpeedup(const Spent& off, const Spent& on, double& least) {
  double sum = 0;
  int kinds = 0;
  least = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < kTextKinds; ++k) {
    if (off.kind_tokens[k] == 0 || on.kind_seconds[k] <= 0) continue;
    const double ratio = off.kind_seconds[k] / on.kind_seconds[k];
    least = std::min(least, ratio);
    sum += ratio;
    ++kinds;
  }
  return kinds == 0 ? 0 : sum / kinds;
}

// What part of the tokens of all texts is of each kind.
constexpr std::array<double, kTextKinds> kShares = {0.543, 0.037, 0.292, 0.042,
                                                    0.027, 0.015, 0.043};

// The kind of which a text has most against what texts have on average.
size_t KindOf(const ReplayText& text) {
  std::array<double, kTextKinds> weights = {};
  const size_t size = std::min(text.kinds.size(), kMostText);
  for (size_t i = 0; i < size; ++i) {
    const auto kind = static_cast<size_t>(text.kinds[i]);
    weights[kind] += 1 / kShares[kind];
  }
  return static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
}

// All texts of --limit files, or --per-kind texts of each kind, out of files in an order that is
// spread evenly.
Result<std::vector<ReplayFile>> PickTexts(const BenchDraftFlags& flags, const ModelText& text) {
  Result<std::vector<std::string>> files = ReplayFiles(flags.replay, flags.limit);
  if (!files.ok()) return files.error();
  std::vector<ReplayFile> picked;
  std::array<int, kTextKinds> counts = {};
  Progress progress(kBenchDraft, "reading texts");
  // A stride that has no divisor in common with the number of files visits each once.
  size_t stride = files->size() * 5 / 8 + 1;
  while (std::gcd(stride, files->size()) != 1) ++stride;
  for (size_t i = 0; i < std::min<size_t>(files->size(), kMostFiles); ++i) {
    Result<std::optional<ReplayFile>> file =
        ReadReplayFile((*files)[flags.limit > 0 ? i : i * stride % files->size()], text);
    if (!file.ok()) return file.error();
    if (!*file) continue;
    if (flags.limit == 0) {
      std::erase_if((*file)->texts, [&](const ReplayText& t) {
        return t.tokens.size() < kLeastText || counts[KindOf(t)]++ >= flags.per_kind;
      });
    }
    if (!(*file)->texts.empty()) picked.push_back(*std::move(*file));
    const bool enough = std::all_of(counts.begin(), counts.end(),
                                    [&](int count) { return count >= flags.per_kind; });
    if (enough && flags.limit == 0) break;
  }
  return picked;
}

// All contestants, what each spent, and how many texts they read.
struct Comparison {
  std::vector<int> nodes;  // as Contestant::Make has them; 0 first, then -1
  std::vector<std::unique_ptr<Contestant>> contestants;
  std::vector<Spent> spent;
  int texts = 0;
};

Status ReadTexts(const std::vector<ReplayFile>& files, Comparison& all) {
  Progress progress(kBenchDraft, "starting");
  for (const ReplayFile& file : files) {
    for (const ReplayText& replayed : file.texts) {
      ++all.texts;
      for (size_t i = 0; i < all.contestants.size(); ++i) {
        // Each begins as often as the others.
        const size_t turn = (i + static_cast<size_t>(all.texts)) % all.contestants.size();
        Status status = all.contestants[turn]->Read(file, replayed, all.spent[turn]);
        if (!status.ok()) return status;
      }
      progress.Set(fmt::format("{} texts, {:.2f} times as fast", all.texts,
                               all.spent[0].seconds / all.spent[1].seconds));
    }
    for (const auto& contestant : all.contestants) (void)contestant->Forget();
  }
  return {};
}

// Prints the table, and returns the same figures as JSON.
std::string Report(const BenchDraftFlags& flags, const ModelInfo& info, const Comparison& all) {
  const std::vector<Spent>& spent = all.spent;
  std::string json = fmt::format(
      "{{\"shape\":\"{}\",\"dtype\":\"{}\",\"kernels\":\"{}\",\"threads\":{},\"texts\":{},"
      "\"tokens\":{},\"cost_us\":[",
      flags.shape, flags.dtype, info.kernels, info.threads, all.texts, spent[0].tokens);
  Print(fmt::format("{} texts, {} tokens; {} {}, {}, {} threads\nrows   ", all.texts,
                    spent[0].tokens, flags.shape, flags.dtype, info.kernels, info.threads));
  const auto points = all.contestants[1]->curve().points();
  for (size_t i = 0; i < 6; ++i) {
    Print(fmt::format("{:>9}", 1 << i));
    json += fmt::format("{}{:.1f}", i == 0 ? "" : ",", points[i] * 1e6);
  }
  Print("\nsteps  ");
  for (size_t i = 0; i < 6; ++i) Print(fmt::format("{:>9.2f}", points[i] / points[0]));
  Print(fmt::format("\n\n{:<10}{:>10}{:>12}{:>12}{:>10}{:>10}{:>10}{:>12}{:>12}\n", "nodes",
                    "steps", "tokens/step", "rows/step", "faster", "mean", "least", "accepted",
                    "expected"));
  json += "],\"runs\":{";
  double best_fixed = 0, chosen = 0;
  for (size_t i = 0; i < spent.size(); ++i) {
    const Spent& s = spent[i];
    const std::string name = all.nodes[i] == 0    ? "off"
                             : all.nodes[i] == -1 ? "curve"
                                                  : std::to_string(all.nodes[i]);
    double least = 0;
    const double mean = MeanSpeedup(spent[0], s, least), faster = spent[0].seconds / s.seconds;
    if (all.nodes[i] == -1) chosen = faster;
    if (all.nodes[i] > 0) best_fixed = std::max(best_fixed, faster);
    const auto steps = static_cast<double>(s.steps);
    Print(fmt::format("{:<10}{:>10}{:>12.2f}{:>12.2f}{:>10.3f}{:>10.3f}{:>10.3f}{:>12}{:>12.0f}\n",
                      name, s.steps, static_cast<double>(s.tokens) / steps,
                      static_cast<double>(s.rows) / steps, faster, mean, least, s.accepted,
                      s.expected));
    json += fmt::format(
        "{}\"{}\":{{\"seconds\":{:.4f},\"drafting_seconds\":{:.4f},\"steps\":{},\"rows\":{},"
        "\"accepted\":{},\"expected\":{:.1f},"
        "\"speedup\":{:.4f},\"mean_speedup\":{:.4f},\"least_speedup\":{:.4f},\"categories\":{{",
        i == 0 ? "" : ",", name, s.seconds, s.drafting, s.steps, s.rows, s.accepted, s.expected,
        faster, mean, least);
    const char* comma = "";
    for (size_t k = 0; k < kTextKinds; ++k) {
      if (s.kind_tokens[k] == 0) continue;
      json += fmt::format("{}\"{}\":{:.4f}", comma, kTextKindNames[k],
                          spent[0].kind_seconds[k] / s.kind_seconds[k]);
      comma = ",";
    }
    json += "}}";
  }
  Print(fmt::format("\n{:<16}{:>10}{:>10}\n", "", "tokens", "faster"));
  for (size_t k = 0; k < kTextKinds; ++k) {
    if (spent[0].kind_tokens[k] == 0) continue;
    Print(fmt::format("{:<16}{:>10}{:>10.3f}\n", kTextKindNames[k], spent[0].kind_tokens[k],
                      spent[0].kind_seconds[k] / spent[1].kind_seconds[k]));
  }
  json += "}";
  if (best_fixed > 0) {
    Print(fmt::format("\nthe curve reaches {:.3f} of the best fixed number of nodes\n",
                      chosen / best_fixed));
    json += fmt::format(",\"of_best_fixed\":{:.4f}", chosen / best_fixed);
  }
  return json + "}\n";
}

}  // namespace

int ReplayTimes(const BenchDraftFlags& flags) {
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok()) {
      return Fail(kBenchDraft, status.error());
    }
  }
  Result<ModelText> text = LoadText(kBenchDraft, flags.tokenizer);
  if (!text.ok()) return Fail(kBenchDraft, text.error());
  Result<std::vector<ReplayFile>> files = PickTexts(flags, *text);
  if (!files.ok()) return Fail(kBenchDraft, files.error());
  ModelOptions options;
  options.threads = flags.threads;
  options.dtype = DtypeNamed(flags.dtype);
  options.kernels = KernelsNamed(flags.kernels);
  Result<std::unique_ptr<Model>> model = RandomModel(*ShapeNamed(flags.shape), options, 1);
  if (!model.ok()) return Fail(kBenchDraft, model.error());
  Comparison all;
  all.nodes = {0, -1};
  if (flags.all_nodes) all.nodes.insert(all.nodes.end(), {1, 2, 4, 8, 16, 32});
  all.spent.resize(all.nodes.size());
  for (const int nodes : all.nodes) {
    auto contestant = Contestant::Make(*text, **model, flags, nodes);
    if (!contestant.ok()) return Fail(kBenchDraft, AtSources(contestant.error()));
    all.contestants.push_back(*std::move(contestant));
  }
  if (Status status = ReadTexts(*files, all); !status.ok()) {
    return Fail(kBenchDraft, status.error());
  }
  if (all.texts == 0) {
    return Fail(kBenchDraft,
                Error{ErrorCode::kInvalid, "no valid instance fits its schema", flags.replay});
  }
  const std::string json = Report(flags, (*model)->info(), all);
  if (!flags.json.empty()) {
    if (Status status = WriteFile(flags.json, json); !status.ok()) {
      return Fail(kBenchDraft, status.error());
    }
  }
  return kExitOk;
}

}  // namespace pawl::cli
