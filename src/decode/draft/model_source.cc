// A smaller model with the same vocabulary writes ahead (guess_drawer.h tells how it draws). What
// it thinks is a chain: its first draft, what it says after that, and so on, each step a call of
// its own. With several lanes of noise (sampler.cc) it draws with each of them, and the drafts are
// a tree. Its masks are the tree's, and its head reads only the rows that they leave.
//
// The model is itself sped up (staged speculation, arXiv 2308.04623): where the text says what
// followed the same tokens before, a call has rows for these tokens too. If the tree grows along
// them, the logits behind them are there, and no call is made.
#include "src/decode/draft/model_source.h"

#include <algorithm>
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
    if (sequence_) source_.model().FreeSequence(*sequence_);
  }

  void Append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) text_.Append(token);
  }
  // a: the number of the drafted token in its tree, from 1 on; the root has 1. b: its depth.
  DraftCursor Root() override {
    drafted_.assign(1, {});
    asked_ = 0;
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
    Model& model = source_.model();
    const size_t n = place.tokens.size() + place.path.size();
    if (!sequence_) {
      if (failed_) return {};
      const Result<SequenceId> made = model.NewSequence(model.info().context_length);
      failed_ = !made.ok();
      if (failed_) return {};
      sequence_ = *made;
    }
    if (n >= static_cast<size_t>(model.info().context_length)) return {};
    std::vector<TokenId> tokens(place.tokens.begin(), place.tokens.end());
    tokens.insert(tokens.end(), place.path.begin(), place.path.end());
    size_t same = static_cast<size_t>(
        std::mismatch(held_.begin(), held_.end(), tokens.begin(), tokens.end()).first -
        held_.begin());
    const auto width = static_cast<size_t>(model.info().vocabulary_size);
    if (same == n && n > answered_ && n - answered_ <= logits_.size() / width) {
      return std::span(logits_).subspan((n - answered_ - 1) * width, width);
    }
    same = std::min(same, tokens.size() - 1);
    held_.resize(same);
    std::vector<std::shared_ptr<const Mask>> masks;
    while (held_.size() < tokens.size()) {
      const size_t end = std::min(tokens.size(), held_.size() + kChunk);
      rows_.clear();
      for (size_t i = held_.size(); i < end; ++i) {
        rows_.push_back(
            {.token = tokens[i], .position = static_cast<int32_t>(i), .sequence = *sequence_});
      }
      if (end == tokens.size()) {
        rows_.back().output = 0;
        if (place.mask != nullptr) rows_.back().allowed = place.mask->words();
        AddAhead(place, masks);
      }
      logits_.resize(static_cast<size_t>(rows_.back().output + 1) * width);
      if (!model.Forward(rows_, logits_).ok()) {
        held_.clear();
        logits_.clear();
        return {};
      }
      for (const Row& row : rows_) held_.push_back(row.token);
    }
    answered_ = n - 1;
    return std::span(logits_).first(width);
  }

  ModelSource& source_;
  GuessDrawer drawer_;
  std::optional<SequenceId> sequence_;
  bool failed_ = false;
  std::vector<TokenId> held_;     // what the sequence holds
  SuffixAutomaton text_;          // prompt and output
  size_t answered_ = 0;           // the position of the first of logits_, which has some in a row
  std::vector<Drafted> drafted_;  // behind the root, which is the first
  // Calls for the tree. With one lane that is a chain, which is seldom right to its end.
  const size_t most_asked_;
  size_t asked_ = 0;  // calls for the tree
  std::vector<TokenId> guesses_;
  std::vector<float> logits_;
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
