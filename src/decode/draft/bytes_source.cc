// A smaller model with another vocabulary writes ahead. The two have bytes in common: the text is
// written in the draft model's tokens, and what the draft model says is written in the model's.
//
// The noise of a token belongs to one vocabulary, so the draft model says the likeliest token. It
// does not see masks, which are over the model's tokens. The last token of what it says may become
// another one with the next bytes, so a token is guessed once the draft model has said more.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "src/decode/draft/model_source.h"
#include "src/text/tokenizer.h"

namespace pawl {
namespace {

constexpr size_t kMostSaid = 8;      // calls for a tree
constexpr size_t kBytesChunk = 256;  // rows of a call
// How much of the text's end is written anew when it grows: tokens do not reach further.
constexpr size_t kUnsettled = 32;
constexpr uint32_t kBytesDepths = 16;

class BytesSource : public DraftSource {
 public:
  BytesSource(const DraftSetting& setting, std::unique_ptr<Model> model,
              std::shared_ptr<const Tokenizer> tokenizer,
              std::shared_ptr<const Vocabulary> vocabulary)
      : setting_(setting),
        model_(std::move(model)),
        tokenizer_(std::move(tokenizer)),
        vocabulary_(std::move(vocabulary)) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;

  Model& model() { return *model_; }
  const DraftSetting& setting() const { return setting_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  const DraftSetting& setting_;
  std::unique_ptr<Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

class BytesFollower : public DraftSession {
 public:
  explicit BytesFollower(BytesSource& source) : source_(source) {}
  ~BytesFollower() override {
    if (sequence_) source_.model().FreeSequence(*sequence_);
  }

  void Append(std::span<const TokenId> tokens) override {
    const Vocabulary& vocabulary = *source_.setting().vocabulary;
    for (const TokenId t : tokens) {
      if (t >= 0 && t < vocabulary.size() && !vocabulary.is_special(t)) {
        text_ += vocabulary.bytes(t);
      }
    }
  }
  // a: 1 on the path that the draft model said. b: the depth.
  DraftCursor Root() override {
    said_.clear();
    guess_.clear();
    chain_.clear();
    asked_ = 0;
    return {1, 0};
  }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    if (at.a == 0 || at.b >= chain_.size() || chain_[at.b] != token) return {};
    return {1, at.b + 1};
  }

  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (cursor.a == 0) return;
    const size_t depth = cursor.b;
    while (chain_.size() <= depth + 1 && Say()) {
    }
    if (chain_.size() <= depth || place.path.size() != depth ||
        !std::equal(place.path.begin(), place.path.end(), chain_.begin())) {
      return;
    }
    const bool last = chain_.size() == depth + 1;
    const uint32_t row = std::min(cursor.b, kBytesDepths - 1);
    out.push_back({chain_[depth], static_cast<uint8_t>(row * 2 + (last ? 1 : 0)),
                   source_.setting().rules.first_chance(last ? 0.2f : 0.5f)});
  }

 private:
  // The text in the draft model's tokens.
  void Settle() {
    if (settled_ == text_.size()) return;
    while (!ends_.empty() && ends_.back() + kUnsettled > settled_) {
      ends_.pop_back();
      own_.pop_back();
    }
    const size_t from = ends_.empty() ? 0 : ends_.back();
    size_t end = from;
    for (const TokenId t : source_.tokenizer().Encode(std::string_view(text_).substr(from))) {
      if (t < 0 || t >= source_.vocabulary().size()) continue;
      end = std::min(end + source_.vocabulary().bytes(t).size(), text_.size());
      own_.push_back(t);
      ends_.push_back(end);
    }
    settled_ = text_.size();
  }

  // One token more of the draft model; false: there is none.
  bool Say() {
    if (asked_ >= kMostSaid || failed_) return false;
    ++asked_;
    Settle();
    const std::span<const float> logits = Ask();
    if (logits.empty()) {
      asked_ = kMostSaid;
      return false;
    }
    const Vocabulary& vocabulary = source_.vocabulary();
    const auto size = std::min(logits.size(), static_cast<size_t>(vocabulary.size()));
    const auto best = static_cast<TokenId>(
        std::max_element(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(size)) -
        logits.begin());
    if (vocabulary.is_special(best) || vocabulary.is_end(best) || vocabulary.bytes(best).empty()) {
      asked_ = kMostSaid;
      return false;
    }
    said_.push_back(best);
    guess_ += vocabulary.bytes(best);
    chain_ = source_.setting().encode(guess_);
    // A tokenizer may write more than the bytes, as a space in front of a text.
    const Vocabulary& target = *source_.setting().vocabulary;
    size_t at = 0, good = 0;
    for (const TokenId t : chain_) {
      if (t < 0 || t >= target.size()) break;
      const std::string_view bytes = target.bytes(t);
      if (bytes.empty() || std::string_view(guess_).substr(at, bytes.size()) != bytes) break;
      at += bytes.size();
      ++good;
    }
    chain_.resize(good);
    return true;
  }

  // The draft model's logits behind text and said_; empty: there are none.
  std::span<const float> Ask() {
    Model& model = source_.model();
    const int context = model.info().context_length;
    if (!sequence_) {
      const Result<SequenceId> made = model.NewSequence(context);
      failed_ = !made.ok();
      if (failed_) return {};
      sequence_ = *made;
    }
    tokens_.clear();
    if (source_.tokenizer().bos() != kNoToken) tokens_.push_back(source_.tokenizer().bos());
    tokens_.insert(tokens_.end(), own_.begin(), own_.end());
    tokens_.insert(tokens_.end(), said_.begin(), said_.end());
    if (tokens_.empty() || std::ssize(tokens_) >= context) return {};
    size_t same = static_cast<size_t>(
        std::mismatch(held_.begin(), held_.end(), tokens_.begin(), tokens_.end()).first -
        held_.begin());
    held_.resize(std::min(same, tokens_.size() - 1));
    logits_.resize(static_cast<size_t>(model.info().vocabulary_size));
    while (held_.size() < tokens_.size()) {
      const size_t end = std::min(tokens_.size(), held_.size() + kBytesChunk);
      rows_.clear();
      for (size_t i = held_.size(); i < end; ++i) {
        rows_.push_back(
            {.token = tokens_[i], .position = static_cast<int32_t>(i), .sequence = *sequence_});
      }
      if (end == tokens_.size()) rows_.back().output = 0;
      if (!model.Forward(rows_, logits_).ok()) {
        held_.clear();
        return {};
      }
      held_.insert(held_.end(), tokens_.begin() + static_cast<ptrdiff_t>(held_.size()),
                   tokens_.begin() + static_cast<ptrdiff_t>(end));
    }
    return logits_;
  }

  BytesSource& source_;
  std::optional<SequenceId> sequence_;
  bool failed_ = false;
  std::string text_;          // of prompt and output
  std::vector<TokenId> own_;  // the same in the draft model's tokens, up to settled_
  std::vector<size_t> ends_;  // where they end
  size_t settled_ = 0;
  std::vector<TokenId> held_;  // what the sequence holds
  // Of the tree: what the draft model said, in its tokens, as bytes, and in the model's tokens.
  std::vector<TokenId> said_;
  std::string guess_;
  std::vector<TokenId> chain_;
  size_t asked_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<Row> rows_;
};

std::unique_ptr<DraftSession> BytesSource::Follow(const DraftRequest&) {
  return std::make_unique<BytesFollower>(*this);
}

}  // namespace

std::unique_ptr<DraftSource> MakeBytesSource(const DraftSetting& setting,
                                             std::unique_ptr<Model> model,
                                             std::shared_ptr<const Tokenizer> tokenizer,
                                             std::shared_ptr<const Vocabulary> vocabulary) {
  return std::make_unique<BytesSource>(setting, std::move(model), std::move(tokenizer),
                                       std::move(vocabulary));
}

}  // namespace pawl
