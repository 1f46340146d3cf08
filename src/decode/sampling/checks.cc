// Checks that are made of other things: a grammar, a function, a memory of answers. And when which
// check is asked.
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "grammar/grammar_access.h"
#include "pawl/sampling.h"
#include "src/decode/sampling/asking.h"

namespace pawl {

Check::~Check() = default;
Critic::~Critic() = default;

namespace {

class GrammarCheck : public Check {
 public:
  GrammarCheck(const Grammar& grammar, CheckGranularity granularity)
      : grammar_(grammar), granularity_(granularity) {}
  CheckGranularity granularity() const override { return granularity_; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    const std::optional<State> state = grammar_.Start().Advance(question.text);
    if (!state.has_value()) return Verdict::kDead;
    return state->accepting() ? Verdict::kAccept : Verdict::kLive;
  }

 private:
  Grammar grammar_;
  CheckGranularity granularity_;
};

class FunctionCheck : public Check {
 public:
  FunctionCheck(CheckGranularity granularity,
                std::function<Result<Verdict>(const CheckQuestion&)> judge)
      : granularity_(granularity), judge_(std::move(judge)) {}
  CheckGranularity granularity() const override { return granularity_; }
  Result<Verdict> Judge(const CheckQuestion& question) const override { return judge_(question); }

 private:
  CheckGranularity granularity_;
  std::function<Result<Verdict>(const CheckQuestion&)> judge_;
};

// The text, and where the check reads them the tokens; the one used last stands first.
class CachedCheck : public Check {
 public:
  CachedCheck(std::shared_ptr<const Check> check, const CacheOptions& options)
      : check_(std::move(check)), options_(options) {}
  CheckGranularity granularity() const override { return check_->granularity(); }

  Result<Verdict> Judge(const CheckQuestion& question) const override {
    if (question.why != nullptr) return check_->Judge(question);  // reasons are not kept
    std::string key(1, question.ended ? '1' : '0');
    key += question.text;
    if (granularity() == CheckGranularity::kToken) {
      key += '\0';
      key.append(reinterpret_cast<const char*>(question.tokens.data()),
                 question.tokens.size_bytes());
    }
    {
      const std::lock_guard lock(mutex_);
      const auto found = index_.find(key);
      if (found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->verdict;
      }
    }
    Result<Verdict> verdict = check_->Judge(question);
    if (!verdict.ok() || *verdict == Verdict::kUnknown) return verdict;
    const std::lock_guard lock(mutex_);
    if (index_.contains(key)) return verdict;
    entries_.push_front({key, *verdict});
    index_.emplace(entries_.front().key, entries_.begin());
    bytes_ += CostOf(key);
    while (bytes_ > options_.max_bytes && !entries_.empty()) {
      bytes_ -= CostOf(entries_.back().key);
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return verdict;
  }

 private:
  struct Entry {
    std::string key;
    Verdict verdict;
  };
  static size_t CostOf(const std::string& key) { return key.size() + 160; }

  std::shared_ptr<const Check> check_;
  CacheOptions options_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;
  mutable std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  mutable size_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Check> MakeGrammarCheck(const Grammar& grammar,
                                              CheckGranularity granularity) {
  if (!grammar.unbound().empty()) {
    return MakeCheck(granularity,
                     [why = GrammarAccess::UnboundError(grammar)](
                         const CheckQuestion&) -> Result<Verdict> { return why; });
  }
  return std::make_shared<GrammarCheck>(grammar, granularity);
}

std::shared_ptr<const Check> MakeCheck(CheckGranularity granularity,
                                       std::function<Result<Verdict>(const CheckQuestion&)> judge) {
  return std::make_shared<FunctionCheck>(granularity, std::move(judge));
}

std::shared_ptr<const Check> MakeCachedCheck(std::shared_ptr<const Check> check,
                                             const CacheOptions& options) {
  return std::make_shared<CachedCheck>(std::move(check), options);
}

Result<bool> MayGoOn(const Checks& checks, const std::string& text,
                     const std::vector<TokenId>& tokens, TokenId token, std::string_view bytes,
                     int64_t& asked, bool* by_bytes) {
  std::string whole;
  std::vector<TokenId> longer;
  for (const auto& check : checks) {
    const CheckGranularity granularity = check->granularity();
    if (granularity == CheckGranularity::kComplete) continue;
    const size_t line = bytes.rfind('\n');
    if (granularity == CheckGranularity::kLine && line == std::string_view::npos) continue;
    if (longer.empty()) {
      whole.reserve(text.size() + bytes.size());
      whole.append(text).append(bytes);
      longer.reserve(tokens.size() + 1);
      longer.assign(tokens.begin(), tokens.end());
      longer.push_back(token);
    }
    CheckQuestion question{.text = whole, .tokens = longer};
    if (granularity == CheckGranularity::kLine) {
      question.text = std::string_view(whole).substr(0, text.size() + line + 1);
    }
    ++asked;
    const Result<Verdict> verdict = check->Judge(question);
    if (!verdict.ok()) return verdict.error();
    if (*verdict == Verdict::kDead) {
      if (by_bytes != nullptr) *by_bytes = granularity == CheckGranularity::kByte;
      return false;
    }
  }
  return true;
}

Result<bool> BytesMayGoOn(const Checks& checks, const std::string& text,
                          const std::vector<TokenId>& tokens, std::string_view bytes,
                          int64_t& asked) {
  std::string whole;
  whole.reserve(text.size() + bytes.size());
  whole.append(text).append(bytes);
  for (const auto& check : checks) {
    if (check->granularity() != CheckGranularity::kByte) continue;
    ++asked;
    const Result<Verdict> verdict = check->Judge({.text = whole, .tokens = tokens});
    if (!verdict.ok()) return verdict.error();
    if (*verdict == Verdict::kDead) return false;
  }
  return true;
}

Result<bool> MayEnd(const Checks& checks, std::string_view text, std::span<const TokenId> tokens,
                    int64_t& asked) {
  for (const auto& check : checks) {
    ++asked;
    const Result<Verdict> verdict = check->Judge({.text = text, .tokens = tokens, .ended = true});
    if (!verdict.ok()) return verdict.error();
    if (*verdict != Verdict::kAccept) return false;
  }
  return true;
}

}  // namespace pawl
