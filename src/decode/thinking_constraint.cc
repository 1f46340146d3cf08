// A place of the two is what the thoughts' constraint says of it, if the text so far may be
// thoughts, and what the answer's constraint says, once for each place at which the answer may have
// begun. There is mostly one of them. Two come where white space behind the closing mark may belong
// to the mark or to the answer.
#include "src/decode/thinking_constraint.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/sync.h"

namespace pawl {
namespace {

using MaskBits = std::vector<uint32_t>;
using LoopPlace = std::shared_ptr<const LoopConstraint>;

// An answer that may have begun, with this many tokens so far.
struct BegunAnswer {
  LoopPlace at;
  size_t tokens = 0;
};

void SetToken(MaskBits& words, TokenId token, bool value) {
  uint32_t& word = words[static_cast<size_t>(token) >> 5];
  const uint32_t bit = uint32_t{1} << (token & 31);
  word = value ? word | bit : word & ~bit;
}

// Any text.
class FreeConstraint final : public LoopConstraint,
                             public std::enable_shared_from_this<FreeConstraint> {
 public:
  explicit FreeConstraint(std::shared_ptr<const Vocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {
    MaskBits words(static_cast<size_t>(vocabulary_->mask_words()), 0);
    for (TokenId t = 0; t < vocabulary_->size(); ++t) {
      if (!vocabulary_->is_special(t) || vocabulary_->is_end(t)) SetToken(words, t, true);
    }
    mask_ = std::make_shared<Mask>(0, std::move(words));
  }
  Place Look() const override { return {.mask = mask_, .accepting = true}; }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    const bool text = token >= 0 && token < vocabulary_->size() && !vocabulary_->is_special(token);
    return text ? shared_from_this() : nullptr;
  }
  std::optional<std::vector<TokenId>> Completion(int) const override {
    return std::vector<TokenId>{};
  }
  int CompletionLength(int) const override { return 0; }
  Known known() const override { return {.place = true, .forced = true, .close = 0, .at = Look()}; }
  std::shared_ptr<const LoopConstraint> KnownNext(TokenId token) const override {
    return Next(token);
  }

 private:
  const std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const Mask> mask_;
};

// What all places of an output share.
struct ThinkingShared {
  ThinkFirstParts parts;
  Mutex mutex;
  std::optional<int> answer_close;  // under mutex: the length of the shortest answer
  // Under mutex: a mask of thoughts that may end early, and the same with the end tokens.
  std::shared_ptr<const Mask> without_ends, with_ends;

  std::optional<int> KnownAnswer() {
    const std::lock_guard lock(mutex);
    return answer_close;
  }
  int Answer() {
    if (const std::optional<int> known = KnownAnswer()) return *known;
    const int length = parts.answer->CompletionLength(std::numeric_limits<int>::max());
    const std::lock_guard lock(mutex);
    answer_close = length;
    return length;
  }
  std::shared_ptr<const Mask> WithEnds(const std::shared_ptr<const Mask>& mask) {
    const std::lock_guard lock(mutex);
    if (without_ends == mask) return with_ends;
    MaskBits words(mask->words().begin(), mask->words().end());
    for (const TokenId t : parts.vocabulary->end_tokens()) SetToken(words, t, true);
    without_ends = mask;
    with_ends = std::make_shared<Mask>(0, std::move(words));
    return with_ends;
  }
  // After how many tokens the thoughts must end; -1: never. `answer`: of the shortest one.
  int Limit(int answer) const {
    int limit = parts.most_tokens;
    if (parts.output_tokens >= 0) {
      const int left = std::max(parts.output_tokens - std::max(answer, 0) - parts.kept_tokens, 0);
      limit = limit < 0 ? left : std::min(limit, left);
    }
    return limit;
  }
};

class ThinkingConstraint final : public LoopConstraint {
 public:
  // `tokens`: so far, with so many bytes. `ending`: only the shortest end of the thoughts may
  // follow.
  ThinkingConstraint(std::shared_ptr<ThinkingShared> shared, LoopPlace thoughts,
                     std::vector<BegunAnswer> answers, int tokens, size_t bytes, bool ending)
      : shared_(std::move(shared)),
        thoughts_(std::move(thoughts)),
        answers_(std::move(answers)),
        tokens_(tokens),
        bytes_(bytes),
        ending_(ending) {}

  bool exact() const override { return shared_->parts.answer->exact(); }
  bool foreign() const override { return shared_->parts.answer->foreign(); }
  const void* lane() const override { return thoughts_->lane(); }
  std::unique_ptr<RecordFilter> NewRecordFilter() const override {
    return shared_->parts.answer->NewRecordFilter();
  }
  bool before_answer() const override { return true; }
  bool prefers() const override { return shared_->parts.answer->prefers(); }
  size_t AnswerTokens(TokenId token) const override {
    if (ThoughtsAfter(token) != nullptr) return 0;
    const std::vector<BegunAnswer> answers = AnswersAfter(token);
    return answers.empty() ? 0 : answers.back().tokens;
  }

  Place Look() const override {
    if (const std::optional<TokenId> end = EndOfThoughts()) return OnlyToken(*end);
    Place place = thoughts_->Look();
    if (answers_.empty() && !place.accepting) return WithEnds(std::move(place));
    return WithAnswers(std::move(place));
  }
  Place LookUnforced() const override {
    if (const std::optional<TokenId> end = EndOfThoughts()) return OnlyToken(*end);
    Place place = thoughts_->LookUnforced();
    if (answers_.empty() && !place.accepting) return WithEnds(std::move(place));
    return WithAnswers(std::move(place));
  }
  std::shared_ptr<const Mask> mask() const override { return LookUnforced().mask; }
  bool accepting() const override { return LookUnforced().accepting; }
  std::string forced(size_t limit) const override {
    if (!answers_.empty() || AtLimit() || MayEndHere() || thoughts_->accepting()) return {};
    return thoughts_->forced(limit);
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    if (LoopPlace thoughts = ThoughtsAfter(token))
      return After(token, std::move(thoughts), ending_);
    // Of two places where the answer may have begun the later one: the white space was the mark's.
    std::vector<BegunAnswer> answers = AnswersAfter(token);
    return answers.empty() ? nullptr : std::move(answers.back().at);
  }
  std::optional<InsteadOfEnd> AtEnd() const override {
    if (!MayEndHere()) return std::nullopt;
    const std::optional<TokenId> token = EndOfThoughtsHere();
    LoopPlace thoughts = token ? thoughts_->Next(*token) : nullptr;
    if (thoughts == nullptr) return std::nullopt;
    return InsteadOfEnd{*token, After(*token, std::move(thoughts), true)};
  }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    std::optional<std::vector<TokenId>> best;
    for (const BegunAnswer& answer : answers_) {
      auto tokens = answer.at->Completion(most);
      if (tokens && (!best || tokens->size() < best->size())) best = std::move(tokens);
    }
    std::optional<std::vector<TokenId>> end = thoughts_->Completion(most);
    if (!end) return best;
    const auto more = shared_->parts.answer->Completion(most - static_cast<int>(end->size()));
    if (!more) return best;
    end->insert(end->end(), more->begin(), more->end());
    return best && best->size() <= end->size() ? best : end;
  }
  int CompletionLength(int most) const override {
    int best = -1;
    for (const BegunAnswer& answer : answers_) {
      const int length = answer.at->CompletionLength(most);
      if (length >= 0 && (best < 0 || length < best)) best = length;
    }
    const int end = thoughts_->CompletionLength(most);
    const int more = end < 0 ? -1 : shared_->Answer();
    if (more >= 0 && more <= most - end) return best >= 0 ? std::min(best, end + more) : end + more;
    if (best >= 0) return best;
    // The answer's shortest end may be longer than another that it finds under a limit.
    const auto tokens = Completion(most);
    return tokens ? static_cast<int>(tokens->size()) : -1;
  }

  Known known() const override {
    if (!answers_.empty() || !KnownBelowLimit()) return {};
    Known known = thoughts_->known();
    if (known.place && known.at.accepting) return {};
    const std::optional<int> answer = shared_->KnownAnswer();
    if (known.close && (*known.close < 0 || !answer || *answer < 0)) known.close.reset();
    if (known.close) *known.close += *answer;
    if (known.place) known.at = WithEnds(std::move(known.at));
    return known;
  }
  std::shared_ptr<const LoopConstraint> KnownNext(TokenId token) const override {
    if (!answers_.empty() || !KnownBelowLimit()) return nullptr;
    const Known here = thoughts_->known();
    if (!here.place || here.at.accepting) return nullptr;
    LoopPlace next = thoughts_->KnownNext(token);
    if (next == nullptr) return nullptr;
    const Known there = next->known();
    if (!there.place || there.at.accepting) return nullptr;
    return std::make_shared<ThinkingConstraint>(shared_, std::move(next),
                                                std::vector<BegunAnswer>(), tokens_ + 1,
                                                bytes_ + BytesOf(token), ending_);
  }

 private:
  size_t BytesOf(TokenId token) const { return shared_->parts.vocabulary->bytes(token).size(); }
  // Whether the text is so short that it may be the opening mark.
  bool begins() const { return bytes_ < shared_->parts.open_bytes; }
  bool AtLimit() const {
    if (ending_) return true;
    if (shared_->parts.output_tokens < 0 && shared_->parts.most_tokens < 0) return false;
    const int limit = shared_->Limit(shared_->parts.output_tokens < 0 ? 0 : shared_->Answer());
    return limit >= 0 && tokens_ >= limit;
  }
  // Without work: false also where it is not known.
  bool KnownBelowLimit() const {
    if (ending_) return false;
    const std::optional<int> answer = shared_->KnownAnswer();
    if (!answer && shared_->parts.output_tokens >= 0) return false;
    const int limit = shared_->Limit(answer.value_or(0));
    return limit < 0 || tokens_ < limit;
  }
  // At the limit, inside of the thoughts: the first token of their shortest end.
  std::optional<TokenId> EndOfThoughts() const {
    if (!AtLimit() || !answers_.empty() || thoughts_->accepting()) return std::nullopt;
    return EndOfThoughtsHere();
  }
  std::optional<TokenId> EndOfThoughtsHere() const {
    const auto end = thoughts_->Completion(std::numeric_limits<int>::max());
    if (!end || end->empty()) return std::nullopt;
    return end->front();
  }
  // An end token of the model ends the thoughts here.
  bool MayEndHere() const {
    return shared_->parts.ends_early && answers_.empty() && !AtLimit() && !thoughts_->accepting();
  }
  // `place`: of thoughts that do not accept, below the limit.
  Place WithEnds(Place place) const {
    if (shared_->parts.ends_early) place.mask = shared_->WithEnds(place.mask);
    return place;
  }
  // Behind a token of the thoughts, after which they are at `thoughts`.
  LoopPlace After(TokenId token, LoopPlace thoughts, bool ending) const {
    std::vector<BegunAnswer> answers = AnswersAfter(token);
    const size_t bytes = bytes_ + BytesOf(token);
    // What has the whole opening mark is no answer any more.
    const bool opened = !answers.empty() && bytes >= shared_->parts.open_bytes && begins();
    if (opened) answers.clear();
    if (answers.empty() && thoughts->accepting() && IsOver(*thoughts)) return shared_->parts.answer;
    return std::make_shared<ThinkingConstraint>(shared_, std::move(thoughts), std::move(answers),
                                                tokens_ + 1, bytes, ending);
  }
  Place OnlyToken(TokenId token) const {
    MaskBits words(static_cast<size_t>(shared_->parts.vocabulary->mask_words()), 0);
    SetToken(words, token, true);
    return {.mask = std::make_shared<Mask>(0, std::move(words))};
  }
  // At the limit the thoughts go on only where there is no other end.
  LoopPlace ThoughtsAfter(TokenId token) const {
    if (!AtLimit()) return thoughts_->Next(token);
    const std::optional<TokenId> end = EndOfThoughts();
    return end && *end == token ? thoughts_->Next(token) : nullptr;
  }
  // The answers that may go on here.
  std::vector<BegunAnswer> Answers() const {
    std::vector<BegunAnswer> all = answers_;
    if (thoughts_->accepting()) all.push_back({shared_->parts.answer});
    return all;
  }
  std::vector<BegunAnswer> AnswersAfter(TokenId token) const {
    std::vector<BegunAnswer> after;
    for (const BegunAnswer& answer : Answers()) {
      if (LoopPlace next = answer.at->Next(token)) {
        after.push_back({std::move(next), answer.tokens + 1});
      }
    }
    return after;
  }
  // Nothing more of the thoughts may come.
  bool IsOver(const LoopConstraint& thoughts) const {
    const std::shared_ptr<const Mask> mask = thoughts.mask();
    const auto ends = shared_->parts.vocabulary->end_tokens();
    const int end_count = static_cast<int>(std::ranges::count_if(
        ends, [&](TokenId t) { return mask->Allows(t) && thoughts.Next(t) == nullptr; }));
    return mask->count() == end_count;
  }

  // `place`: of the thoughts.
  Place WithAnswers(Place place) const {
    const auto ends = shared_->parts.vocabulary->end_tokens();
    MaskBits words(place.mask->words().begin(), place.mask->words().end());
    // Where the thoughts may end the output may not, unless the answer may.
    for (const TokenId t : ends) {
      if (place.accepting && place.mask->Allows(t) && thoughts_->Next(t) == nullptr) {
        SetToken(words, t, false);
      }
    }
    if (AtLimit()) std::ranges::fill(words, 0);
    Place out;
    out.limit = std::move(place.limit);
    for (const BegunAnswer& answer : Answers()) {
      Place at = answer.at->LookUnforced();
      for (size_t i = 0; i < words.size(); ++i) words[i] |= at.mask->words()[i];
      out.accepting = out.accepting || at.accepting;
      if (at.temperature) out.temperature = at.temperature;
      if (out.limit.empty()) out.limit = std::move(at.limit);
    }
    out.mask = std::make_shared<Mask>(0, std::move(words));
    return out;
  }

  const std::shared_ptr<ThinkingShared> shared_;
  const LoopPlace thoughts_;  // what is written may be thoughts
  const std::vector<BegunAnswer> answers_;
  const int tokens_;
  const size_t bytes_;
  const bool ending_;
};

}  // namespace

std::shared_ptr<const LoopConstraint> AnyText(std::shared_ptr<const Vocabulary> vocabulary) {
  return std::make_shared<FreeConstraint>(std::move(vocabulary));
}

std::shared_ptr<const LoopConstraint> ThinkFirst(ThinkFirstParts parts) {
  if (parts.answer == nullptr) parts.answer = AnyText(parts.vocabulary);
  const auto shared = std::make_shared<ThinkingShared>();
  LoopPlace thoughts = parts.thoughts;
  shared->parts = std::move(parts);
  return std::make_shared<ThinkingConstraint>(shared, std::move(thoughts),
                                              std::vector<BegunAnswer>(), 0, 0, false);
}

}  // namespace pawl
