// A smaller model with the same vocabulary writes ahead (guess_drawer.h tells how it draws). What
// it thinks is a chain: its first draft, what it says after that, and so on, each step a call of
// its own. With several lanes of noise (sampler.cc) it draws with each of them, and the drafts are
// a tree. Its masks are the tree's, and its head reads only the rows that they leave.
//
// The model is itself sped up (staged speculation, arXiv 2308.04623): where the text says what
// followed the same tokens before, a call has rows for these tokens too. If the tree grows along
// them, the logits behind them are there, and no call is made.
//
// While a device verifies, the model goes on behind two leaves of the tree (overlap.cc), each on a
// line: a sequence of its own with the logits that it has given. The lines share the pages of what
// they have in common.
#include "src/decode/draft/model_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "src/base/pages.h"
#include "src/decode/draft/guess_drawer.h"
#include "src/decode/draft/source.h"
#include "src/decode/draft/suffix_automaton.h"
#include "src/model/draft_head.h"
#include "src/text/tokenizer.h"

namespace pawl {
namespace {

constexpr size_t kMostChain = 8;  // calls for a chain
constexpr size_t kChunk = 256;    // rows of a call
constexpr size_t kMostAhead = 4;  // rows for tokens that are expected
constexpr uint32_t kLeastContext = 2;
// Tokens that a line has to read before it can go on, while a device verifies.
constexpr size_t kMostCatchUp = 64;
constexpr size_t kMostAnswers = 64;

class ModelSource : public DraftSource {
 public:
  ModelSource(const DraftSetting& setting, std::unique_ptr<Model> model)
      : setting_(setting), model_(std::move(model)) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;

  Model& model() { return *model_; }
  const DraftSetting& setting() const { return setting_; }

 private:
  const DraftSetting& setting_;
  std::unique_ptr<Model> model_;
};

class ModelFollower : public DraftSession {
 public:
  ModelFollower(ModelSource& source, const DraftRequest& request)
      : source_(source),
        drawer_(source.setting(), request.output_options(), 1),
        most_asked_(request.output_options().sampling.draft_lanes > 1 ||
                            source.setting().rules.branches()
                        ? static_cast<size_t>(source.setting().options.nodes)
                        : kMostChain) {}
  ~ModelFollower() override {
    for (const Line& line : lines_) {
      if (line.sequence) source_.model().FreeSequence(*line.sequence);
    }
  }

  void Append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) text_.Append(token);
  }
  // a: the number of the drafted token in its tree, from 1 on; the root has 1. b: its depth.
  DraftCursor Root() override {
    drafted_.assign(1, {});
    asked_ = 0;
    lines_of_leaves_.fill(nullptr);
    return {1, 0};
  }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    if (at.a == 0) return {};
    for (size_t i = at.a; i < drafted_.size(); ++i) {
      if (drafted_[i].parent != at.a || drafted_[i].token != token) continue;
      return {static_cast<uint32_t>(i + 1), at.b + 1};
    }
    return {};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (cursor.a == 0 || asked_ >= most_asked_) return;
    const std::span<const float> logits = Ask(place);
    if (logits.empty()) return;
    ++asked_;
    drawer_.Draw(place, logits, guesses_);
    for (size_t i = 0; i < guesses_.size(); ++i) {
      const TokenId token = guesses_[i];
      drafted_.push_back({token, cursor.a});
      const size_t rank = std::min(i, kRanks - 1);
      const size_t depth = std::min<size_t>(cursor.b, kDraftBuckets / kRanks - 1);
      out.push_back({token, static_cast<uint8_t>(depth * kRanks + rank),
                     rank == 0 ? source_.setting().rules.first_chance(0.6f) : 0.2f});
    }
  }

  bool foresees() const override { return true; }
  DraftModelCalls calls() const override { return calls_; }
  void Foresee(const DraftPlace& place, int nth, std::vector<DraftProposal>& out) override {
    try {
      const std::span<const float> logits = AskBehindLeaf(place, static_cast<size_t>(nth));
      if (logits.empty()) return;
      drawer_.Draw(place, logits, guesses_);
      if (guesses_.empty()) return;
      // Counted as behind the root, where it will be asked for.
      out.push_back({guesses_[0], 0, source_.setting().rules.first_chance(0.6f)});
    } catch (...) {
      // What a sequence holds is not known.
      for (Line& line : lines_) line.Forget();
      throw;
    }
  }

 private:
  struct Drafted {
    TokenId token = kNoToken;
    uint32_t parent = 0;  // as DraftCursor::a
  };
  static constexpr size_t kRanks = 4;

  // The tokens that followed the place's in the text before.
  void LookAhead(const DraftPlace& place, std::vector<TokenId>& ahead) const {
    SuffixAutomaton::Match at = text_.Longest();
    for (const TokenId token : place.path) at = text_.Next(at, token);
    while (ahead.size() < kMostAhead && at.length >= kLeastContext) {
      TokenId best = kNoToken;
      uint32_t most = 0;
      text_.ForEachNext(at.state, [&](TokenId token, uint32_t count) {
        if (count > most) best = token;
        most = std::max(most, count);
        return true;
      });
      if (best < 0 || best >= source_.model().info().vocabulary_size) return;
      ahead.push_back(best);
      at = text_.Next(at, best);
    }
  }

  // A sequence of the draft model, and the logits that it has given.
  struct Line {
    std::optional<SequenceId> sequence;
    bool failed = false;
    std::vector<TokenId> held;     // by the sequence
    std::vector<size_t> answered;  // ascending: how many tokens each of the logits stands behind
    std::vector<float> logits;

    void Forget() {
      held.clear();
      DropAnswers();
    }
    void DropAnswers() {
      answered.clear();
      logits.clear();
    }
    // Those that stand behind fewer tokens.
    void DropUpTo(size_t tokens, size_t width) {
      const auto gone = std::ranges::lower_bound(answered, tokens) - answered.begin();
      answered.erase(answered.begin(), answered.begin() + gone);
      logits.erase(logits.begin(), logits.begin() + gone * static_cast<ptrdiff_t>(width));
    }
    // How many of the tokens it holds.
    size_t Common(std::span<const TokenId> tokens) const {
      const auto end = std::mismatch(held.begin(), held.end(), tokens.begin(), tokens.end()).first;
      return static_cast<size_t>(end - held.begin());
    }
    // Empty: there are none.
    std::span<const float> Behind(std::span<const TokenId> tokens, size_t width) const {
      const auto at = std::ranges::find(answered, tokens.size());
      if (at == answered.end() || Common(tokens) < tokens.size()) return {};
      return std::span(logits).subspan(static_cast<size_t>(at - answered.begin()) * width, width);
    }
  };

  size_t width() const { return static_cast<size_t>(source_.model().info().vocabulary_size); }

  std::span<const TokenId> TokensOf(const DraftPlace& place) {
    tokens_.assign(place.tokens.begin(), place.tokens.end());
    tokens_.insert(tokens_.end(), place.path.begin(), place.path.end());
    return tokens_;
  }

  // Rows for tokens behind the last one, with the masks that the grammar has there.
  void AddAhead(const DraftPlace& place, std::vector<std::shared_ptr<const Mask>>& masks) {
    std::vector<TokenId> ahead;
    LookAhead(place, ahead);
    std::shared_ptr<const LoopConstraint> kept;
    const LoopConstraint* at = place.at;
    for (const TokenId token : ahead) {
      Row row = rows_.back();
      if (++row.position >= source_.model().info().context_length) return;
      if (at != nullptr) {
        kept = at->Next(token);
        if (kept == nullptr) return;
        at = kept.get();
        masks.push_back(at->mask());
        row.allowed = {};
        if (masks.back() != nullptr) row.allowed = masks.back()->words();
      }
      row.token = token;
      ++row.output;
      rows_.push_back(row);
    }
  }

  // The logits behind the place; empty: there are none.
  std::span<const float> Ask(const DraftPlace& place) {
    const std::span<const TokenId> tokens = TokensOf(place);
    for (const Line& line : lines_) {
      const std::span<const float> ready = line.Behind(tokens, width());
      if (!ready.empty()) return ready;
    }
    if (!place.may_call) return {};
    Line& line = LongestOf(tokens);
    line.DropAnswers();
    return Run(place, tokens, false, line);
  }

  Line& LongestOf(std::span<const TokenId> tokens) {
    return lines_[1].Common(tokens) > lines_[0].Common(tokens) ? lines_[1] : lines_[0];
  }

  // The same while a device verifies.
  std::span<const float> AskBehindLeaf(const DraftPlace& place, size_t nth) {
    const std::span<const TokenId> tokens = TokensOf(place);
    for (const Line& line : lines_) {
      const std::span<const float> ready = line.Behind(tokens, width());
      if (!ready.empty()) return ready;
    }
    Line*& line = lines_of_leaves_[nth];
    if (line == nullptr) {
      const Line* const other = lines_of_leaves_[1 - nth];
      line = other == nullptr ? &LongestOf(tokens) : &lines_[other == &lines_[0] ? 1 : 0];
      line->DropUpTo(place.tokens.size(), width());
      const Line& longest = LongestOf(tokens);
      if (longest.Common(tokens) > line->Common(tokens)) CopyOf(tokens, *line);
    }
    if (tokens.size() > line->Common(tokens) + kMostCatchUp) return {};
    return Run(place, tokens, true, *line);
  }

  // The line begins again with what the model has of these tokens.
  void CopyOf(std::span<const TokenId> tokens, Line& line) {
    Model& model = source_.model();
    line.Forget();
    if (line.sequence) model.FreeSequence(*std::exchange(line.sequence, std::nullopt));
    if (!Open(line)) return;
    const int length = model.ReuseCopying(*line.sequence, tokens.first(tokens.size() - 1));
    line.held.assign(tokens.begin(), tokens.begin() + length);
  }

  bool Open(Line& line) {
    if (line.sequence || line.failed) return !line.failed;
    Model& model = source_.model();
    const Result<SequenceId> made = model.NewSequence(model.info().context_length);
    line.failed = !made.ok();
    if (!line.failed) line.sequence = *made;
    return !line.failed;
  }

  std::span<const float> Run(const DraftPlace& place, std::span<const TokenId> tokens, bool late,
                             Line& line) {
    Model& model = source_.model();
    if (!Open(line) || tokens.size() >= static_cast<size_t>(model.info().context_length)) return {};
    line.held.resize(std::min(line.Common(tokens), tokens.size() - 1));
    while (!line.answered.empty() && line.answered.back() > line.held.size()) {
      line.answered.pop_back();
    }
    if (line.answered.size() >= kMostAnswers) line.answered.clear();
    const size_t before = line.answered.size();
    std::vector<std::shared_ptr<const Mask>> masks;
    while (line.held.size() < tokens.size()) {
      const size_t end = std::min(tokens.size(), line.held.size() + kChunk);
      rows_.clear();
      for (size_t i = line.held.size(); i < end; ++i) {
        rows_.push_back(
            {.token = tokens[i], .position = static_cast<int32_t>(i), .sequence = *line.sequence});
      }
      size_t outputs = 0;
      if (end == tokens.size()) {
        rows_.back().output = 0;
        if (place.mask != nullptr) rows_.back().allowed = place.mask->words();
        AddAhead(place, masks);
        outputs = static_cast<size_t>(rows_.back().output + 1);
      }
      line.logits.resize((before + outputs) * width());
      ++calls_.all;
      if (late) ++calls_.late;
      if (!model.Forward(rows_, std::span(line.logits).subspan(before * width())).ok()) {
        line.Forget();
        return {};
      }
      for (const Row& row : rows_) line.held.push_back(row.token);
      for (size_t i = 0; i < outputs; ++i) line.answered.push_back(tokens.size() + i);
    }
    return std::span(line.logits).subspan(before * width(), width());
  }

  ModelSource& source_;
  GuessDrawer drawer_;
  std::array<Line, kForeseenLeaves> lines_;
  std::array<Line*, kForeseenLeaves> lines_of_leaves_ = {};  // of the tree
  SuffixAutomaton text_;                                     // prompt and output
  std::vector<Drafted> drafted_;                             // behind the root, which is the first
  // Calls for the tree. With one lane that is a chain, which is seldom right to its end.
  const size_t most_asked_;
  size_t asked_ = 0;  // calls for the tree
  DraftModelCalls calls_;
  std::vector<TokenId> guesses_, tokens_;
  std::vector<Row> rows_;
};

std::unique_ptr<DraftSession> ModelSource::Follow(const DraftRequest& request) {
  return std::make_unique<ModelFollower>(*this, request);
}

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeModelSource(const DraftSetting& setting) {
  return MakeModelSourceOf(setting, 0);
}

Result<std::unique_ptr<DraftSource>> MakeMtpSource(const DraftSetting& setting) {
  const auto at = std::ranges::find(setting.heads, kOwnHead);
  if (at == setting.heads.end()) {
    return Error{ErrorCode::kUnsupported, "the model has no block for several tokens", "draft"};
  }
  return MakeHeadSource(setting, static_cast<int>(at - setting.heads.begin()));
}

Result<std::unique_ptr<DraftSource>> MakeModelSourceOf(const DraftSetting& setting, size_t nth) {
  const std::string path = DraftModelsOf(setting.options)[nth];
  if (Status status = CheckHeadConfig(path); !status.ok()) return status.error();
  if (IsDraftHead(path)) {
    const auto at = std::ranges::find(setting.heads, path);
    const bool known = at != setting.heads.end();
    return MakeHeadSource(setting, known ? static_cast<int>(at - setting.heads.begin()) : 0);
  }
  Result<std::shared_ptr<const Tokenizer>> tokenizer =
      setting.tokenizer_of ? setting.tokenizer_of(path) : Tokenizer::FromFile(path);
  if (!tokenizer.ok()) return tokenizer.error();
  Result<std::shared_ptr<const Vocabulary>> vocabulary = (*tokenizer)->MakeVocabulary();
  if (!vocabulary.ok()) return vocabulary.error();
  const int size = std::min((*vocabulary)->size(), setting.vocabulary->size());
  TokenId same = 0;
  while (same < size && (*vocabulary)->bytes(same) == setting.vocabulary->bytes(same)) ++same;
  if (same < size && !setting.encode) {
    return Error{ErrorCode::kInvalid,
                 "has another vocabulary: token " + std::to_string(same) +
                     " differs, and the model has no tokenizer",
                 path};
  }
  // All draft models together have a quarter of what the model has at most.
  ModelOptions options;
  if (const int64_t memory = PhysicalMemory(); memory > 0) {
    options.kv_bytes = memory / (8 * static_cast<int64_t>(kMostDraftModels));
  }
  Result<std::unique_ptr<Model>> model = LoadModel(path, options);
  if (!model.ok()) return model.error();
  if (same < size) {
    return MakeBytesSource(setting, *std::move(model), *std::move(tokenizer),
                           *std::move(vocabulary));
  }
  return MakeModelSourceFrom(setting, *std::move(model));
}

std::unique_ptr<DraftSource> MakeModelSourceFrom(const DraftSetting& setting,
                                                 std::unique_ptr<Model> model) {
  return std::make_unique<ModelSource>(setting, std::move(model));
}

}  // namespace pawl
