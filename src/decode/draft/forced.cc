// Text that the grammar dictates, as the tokenizer writes it.
//
// The bytes are forced, the tokens are not: `"total":` has many spellings, and where the
// run ends a longer token may reach into what is free. So the run is spelled behind what stands
// there already, and its last token is drafted with the caution that counting teaches.
//
// The decode loop takes some runs without asking the model (OutputBuilder::Forced). Where it will
// do so, the draft is what it will take, so that a tree goes on behind it.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "grammar/vocabulary_tables.h"
#include "src/decode/draft/source.h"
#include "src/decode/generation.h"

namespace pawl {
namespace {

constexpr size_t kLongestRun = 256;  // bytes
// Where more tokens are allowed, hardly a byte is forced.
constexpr int kMostAllowed = 8192;
constexpr size_t kBehind = 4;  // tokens that a spelling looks back at

enum Bucket : uint8_t { kOnly, kInside, kNearEnd, kLast, kLastShort };

class ForcedFollower : public DraftSession {
 public:
  explicit ForcedFollower(const DraftSetting& setting, bool skips)
      : setting_(setting), skips_(skips) {}

  DraftCursor Root() override {
    runs_.clear();
    return {};
  }
  // a: the run's number from 1, b: the next token's place in it.
  DraftCursor Next(DraftCursor at, TokenId token) override {
    if (at.a == 0) return {};
    const std::vector<TokenId>& run = runs_[at.a - 1].tokens;
    if (at.b < run.size() && run[at.b] == token && at.b + 1 < run.size()) return {at.a, at.b + 1};
    return {};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (place.at == nullptr || place.mask == nullptr) return;
    if (cursor.a == 0) {
      const TokenId only = place.mask->singleton();
      if (only != kNoToken) {
        out.push_back({only, kOnly, 0.999f, 0, skips_});
        return;
      }
      if (place.mask->count() > kMostAllowed || !setting_.encode) return;
      Run run = Spell(place);
      if (run.tokens.empty()) return;
      runs_.push_back(std::move(run));
      cursor = {static_cast<uint32_t>(runs_.size()), 0};
    }
    const Run& run = runs_[cursor.a - 1];
    const size_t left = run.tokens.size() - cursor.b;
    const TokenId token = run.tokens[cursor.b];
    if (left == 1) {
      const bool one = setting_.vocabulary->bytes(token).size() < 2;
      out.push_back({token, one ? kLastShort : kLast, one ? 0.3f : 0.7f, 0, run.given});
    } else {
      out.push_back(
          {token, left == 2 ? kNearEnd : kInside, left == 2 ? 0.9f : 0.97f, 0, run.given});
    }
  }

 private:
  struct Run {
    std::vector<TokenId> tokens;
    bool given = false;  // as DraftProposal
  };

  Run Spell(const DraftPlace& place) {
    const std::string text = place.at->forced(kLongestRun);
    if (text.empty()) return {};
    if (skips_ && text.size() > 1 && place.mask->count() <= LoopConstraint::kMostSpellings) {
      if (known_.size() > kKnown) known_.clear();
      const auto [known, fresh] = known_.try_emplace(text);
      if (fresh) known->second = SpellForced(*setting_.vocabulary, setting_.encode, text);
      const std::vector<TokenId>& run = known->second;
      if (!run.empty()) return {run, true};
    }
    return {SpellBehind(place, text), false};
  }

  std::vector<TokenId> SpellBehind(const DraftPlace& place, const std::string& text) {
    const Vocabulary& vocabulary = *setting_.vocabulary;
    const size_t n = place.tokens.size() + place.path.size();
    if (n == 0) return {};
    const auto at = [&](size_t i) {
      return i < place.tokens.size() ? place.tokens[i] : place.path[i - place.tokens.size()];
    };
    // The prompt is another text.
    size_t begin = std::max(place.prompt, n - std::min(n, kBehind));
    std::string behind;
    for (size_t i = begin; i < n; ++i) {
      if (at(i) < 0 || at(i) >= vocabulary.size()) return {};
      behind = vocabulary.is_special(at(i)) ? "" : behind + std::string(vocabulary.bytes(at(i)));
    }
    if (known_.size() > kKnown) known_.clear();
    const auto [known, fresh] =
        known_.try_emplace(behind + '\0' + text + '\0' + std::to_string(at(n - 1)));
    std::vector<TokenId>& run = known->second;
    if (!fresh) return run;
    if (!behind.empty()) run = After(setting_.encode(behind + text), behind.size(), at(n - 1));
    if (run.empty()) run = After(setting_.encode(text), 0, kNoToken);
    return run;
  }

  // The tokens from `bytes` on; nothing where no token begins there, or `last` does not end there.
  std::vector<TokenId> After(std::vector<TokenId> tokens, size_t bytes, TokenId last) const {
    const Vocabulary& vocabulary = *setting_.vocabulary;
    size_t read = 0, i = 0;
    while (i < tokens.size() && read < bytes) {
      if (tokens[i] < 0 || tokens[i] >= vocabulary.size()) return {};
      read += vocabulary.bytes(tokens[i++]).size();
    }
    if (read != bytes || (i > 0 && tokens[i - 1] != last)) return {};
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(i));
    for (const TokenId token : tokens) {
      if (token < 0 || token >= vocabulary.size() || vocabulary.is_special(token)) return {};
    }
    return tokens;
  }

  const DraftSetting& setting_;
  const bool skips_;
  static constexpr size_t kKnown = 512;
  std::vector<Run> runs_;
  std::unordered_map<std::string, std::vector<TokenId>> known_;  // spellings
};

class ForcedSource : public DraftSource {
 public:
  explicit ForcedSource(const DraftSetting& setting) : setting_(setting) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override {
    const bool skips = setting_.as_skipped && (!request.options || request.options->skip_forced);
    return std::make_unique<ForcedFollower>(setting_, skips);
  }

 private:
  const DraftSetting& setting_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeForcedSource(const DraftSetting& setting) {
  return std::unique_ptr<DraftSource>(std::make_unique<ForcedSource>(setting));
}

}  // namespace pawl
