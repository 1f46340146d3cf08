// The loop of code completion. A token is drawn from the model's logits, its bytes are offered to
// the monitors, and when they refuse it is taken out of the mask and another one is drawn. With the
// sampler's noise fixed by the position, that is the same token which a complete mask would have
// given: the best of those that are left. So away from triggers a step asks the monitors about one
// token, and behind one about as many as the model gets wrong; after some of those in a row the
// whole mask is found.
//
// The output ends with its statement: at a ";" or the end of a line where the brackets are as they
// were at the beginning, or before a bracket that closes what the prefix has opened.
#include "plugins/monitors/complete.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "plugins/monitors/fim.h"
#include "src/base/utf8.h"
#include "src/decode/sampler.h"

namespace pawl::monitors {
namespace {

constexpr int kRefusalsBeforeMask = 24;
constexpr size_t kKeptSets = 4;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class SequenceOf {
 public:
  SequenceOf(Model& model, SequenceId id) : model_(model), id_(id) {}
  ~SequenceOf() { model_.FreeSequence(id_); }
  SequenceOf(const SequenceOf&) = delete;
  SequenceOf& operator=(const SequenceOf&) = delete;
  SequenceId id() const { return id_; }

 private:
  Model& model_;
  SequenceId id_;
};

// Where the statement at the cursor ends in what follows.
class StatementEnd {
 public:
  StatementEnd(Language language, std::string_view prefix) : scan_(language), language_(language) {
    scan_.Add(prefix);
    depth_ = scan_.depth();
  }
  // The number of bytes of `bytes` that belong to the statement; npos: all, and it goes on.
  size_t Take(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      const bool code = scan_.in_code();
      if (code && (c == ')' || c == ']' || c == '}') && scan_.depth() <= depth_) return i;
      if (code && c == '\n' && scan_.depth() <= depth_ && some_) {
        if (language_ == Language::kPython || !Continues()) return i;
      }
      scan_.Add(c);
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        some_ = true;
        last_ = c;
      }
      if (code && c == ';' && scan_.depth() <= depth_ && language_ != Language::kPython)
        return i + 1;
      if (code && c == '}' && scan_.depth() == depth_ && language_ != Language::kPython)
        block_ = true;
    }
    return std::string_view::npos;
  }

 private:
  // An operator at the end of a line: the statement goes on.
  bool Continues() const {
    return std::string_view("=+-*/%&|^<>?:,.!~({[").find(last_) != std::string_view::npos;
  }
  Scan scan_;
  Language language_;
  size_t depth_;
  bool some_ = false;
  bool block_ = false;
  char last_ = 0;
};

}  // namespace

struct CodeCompleter::Kept {
  std::string key;
  std::unique_ptr<MonitorSet> set;
};

CodeCompleter::CodeCompleter(Model& model, std::shared_ptr<const Tokenizer> tokenizer,
                             std::shared_ptr<const Vocabulary> vocabulary, PromptTemplate layout)
    : model_(model),
      tokenizer_(std::move(tokenizer)),
      vocabulary_(std::move(vocabulary)),
      layout_(std::move(layout)) {}

CodeCompleter::~CodeCompleter() = default;

Result<MonitorSet*> CodeCompleter::SetOf(const CompletionRequest& request) {
  std::string key = LanguageName(*request.language) + std::string("\n") + request.repo;
  for (const std::string& name : request.monitors) key += "\n" + name;
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->key == key) {
      std::rotate(kept, kept + 1, kept_.end());
      return kept_.back().set.get();
    }
  }
  auto made =
      MonitorSet::Make(*request.language, {.monitors = request.monitors, .repo = request.repo});
  if (!made.ok()) {
    if (made.error().code == ErrorCode::kUnsupported) return static_cast<MonitorSet*>(nullptr);
    return made.error();
  }
  if (kept_.size() >= kKeptSets) kept_.erase(kept_.begin());
  kept_.push_back(Kept{std::move(key), std::move(*made)});
  return kept_.back().set.get();
}

Result<CompletionResult> CodeCompleter::Complete(const CompletionRequest& request) {
  if (Status status = CheckSamplingParams(request.sampling); !status.ok()) return status.error();
  if (request.max_tokens < 0) return Error{ErrorCode::kInvalid, "must be at least 0", "max_tokens"};
  MonitorSet* set = nullptr;
  if (request.language && request.use_monitors) {
    Result<MonitorSet*> found = SetOf(request);
    if (!found.ok()) return found.error();
    set = *found;
  }
  const FimTemplate* form = request.suffix.empty() ? nullptr : FindFimTemplate(*tokenizer_);
  std::vector<TokenId> tokens;
  if (form != nullptr) {
    // What stands in the texts never becomes a marker.
    const size_t first = std::string_view(form->suffix_first ? form->suffix : form->prefix).size();
    const std::string& a = form->suffix_first ? request.suffix : request.prefix;
    const std::string& b = form->suffix_first ? request.prefix : request.suffix;
    const size_t second = first + a.size() +
                          std::string_view(form->suffix_first ? form->prefix : form->suffix).size();
    const TextRange data[] = {{first, first + a.size()}, {second, second + b.size()}};
    tokens = tokenizer_->Encode(FimPrompt(*form, request.prefix, request.suffix),
                                {.parse_special = true, .data = data});
    if (layout_.bos && tokenizer_->bos() != kNoToken)
      tokens.insert(tokens.begin(), tokenizer_->bos());
  } else {
    tokens = EncodeText(*tokenizer_, layout_, request.prefix, false);
  }
  const ModelInfo& info = model_.info();
  const int budget = std::min(
      request.max_tokens, info.context_length - static_cast<int>(request.must_begin.size()) - 1);
  // The nearest part of a long prefix is what matters.
  const auto room = static_cast<size_t>(std::max(16, info.context_length - budget - 1));
  if (tokens.size() > room && form == nullptr) {
    tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(room));
  }
  if (tokens.empty()) return Error{ErrorCode::kInvalid, "has no tokens", "prefix"};
  if (tokens.size() + static_cast<size_t>(std::max(budget, 0)) >
      static_cast<size_t>(info.context_length)) {
    return Error{ErrorCode::kLimit,
                 "has " + std::to_string(tokens.size()) + " tokens, but the model's context is " +
                     std::to_string(info.context_length),
                 "prefix"};
  }
  const size_t prompt_size = tokens.size();

  CompletionResult result;
  std::optional<TextState> state;
  if (set != nullptr) {
    set->counts() = {};
    state = set->Start(request.prefix, request.suffix_aware ? request.suffix : "");
  }
  StatementEnd end(request.language.value_or(Language::kPython), request.prefix);
  std::string must = request.must_begin;

  Result<SequenceId> sequence = model_.NewSequence(info.context_length);
  if (!sequence.ok()) return sequence.error();
  const SequenceOf held(model_, *sequence);
  int length = model_.ReusePrefix(*sequence, tokens);
  length = std::min(length, static_cast<int>(tokens.size()) - 1);
  std::vector<float> logits(static_cast<size_t>(info.vocabulary_size));
  Sampler sampler(request.sampling);
  const int known = std::min(info.vocabulary_size, vocabulary_->size());
  const auto words = static_cast<size_t>(vocabulary_->mask_words());

  while (result.tokens < budget) {
    const double before = Now();
    constexpr int kChunk = 256;
    while (length < static_cast<int>(tokens.size())) {
      std::vector<Row> rows;
      const int until = std::min(length + kChunk, static_cast<int>(tokens.size()));
      for (int i = length; i < until; ++i) {
        rows.push_back(
            Row{.token = tokens[static_cast<size_t>(i)], .position = i, .sequence = *sequence});
      }
      if (until == static_cast<int>(tokens.size())) rows.back().output = 0;
      if (Status status = model_.Forward(rows, logits); !status.ok()) return status.error();
      length = until;
    }
    result.model_seconds += Now() - before;
    // All but special tokens; the end of the text is taken when the model wants it and nothing is
    // begun.
    std::vector<uint32_t> bits(words, ~uint32_t{0});
    const auto ban = [&](TokenId t) {
      bits[static_cast<size_t>(t) >> 5] &= ~(uint32_t{1} << (t & 31));
    };
    for (TokenId t = 0; t < static_cast<TokenId>(words * 32); ++t) {
      if (t >= vocabulary_->size() ||
          (vocabulary_->is_special(t) && !(vocabulary_->is_end(t) && must.empty())))
        ban(t);
    }
    const bool mid_name = state && state->completions() != nullptr;
    if (mid_name) {
      for (const TokenId t : vocabulary_->end_tokens()) ban(t);
    }
    TokenId taken = kNoToken;
    std::optional<TextState> next;
    for (int tries = 0; taken == kNoToken; ++tries) {
      const auto allowed = [&](TokenId t) {
        const std::string_view bytes = vocabulary_->bytes(t);
        if (bytes.empty()) return false;
        if (!must.empty() && !bytes.starts_with(must) && !must.starts_with(bytes)) return false;
        if (!state) return true;
        next = *state;
        return next->Add(bytes, nullptr);
      };
      if (tries == kRefusalsBeforeMask) {
        for (TokenId t = 0; t < known; ++t) {
          if (((bits[static_cast<size_t>(t) >> 5] >> (t & 31)) & 1) == 0 || vocabulary_->is_end(t))
            continue;
          if (!allowed(t)) ban(t);
        }
      }
      const Mask mask(0, bits);
      if (mask.count() == 0) break;
      Result<TokenId> sampled = sampler.Sample(
          std::span(logits).first(static_cast<size_t>(known)), &mask,
          static_cast<uint64_t>(result.tokens),
          {std::span(tokens).first(prompt_size), std::span(tokens).subspan(prompt_size)});
      if (!sampled.ok()) break;
      if (vocabulary_->is_end(*sampled) || allowed(*sampled)) {
        taken = *sampled;
      } else {
        ban(*sampled);
        ++result.refused;
      }
    }
    if (taken == kNoToken || vocabulary_->is_end(taken)) {
      result.ended = taken != kNoToken;
      break;
    }
    const std::string_view bytes = vocabulary_->bytes(taken);
    must = must.size() > bytes.size() ? must.substr(bytes.size()) : "";
    const size_t stop = end.Take(bytes);
    tokens.push_back(taken);
    ++result.tokens;
    result.text += bytes.substr(0, stop);
    if (stop != std::string_view::npos) {
      result.ended = true;
      break;
    }
    if (state) state = std::move(next);
  }
  result.text.resize(CompleteUtf8Prefix(result.text));
  if (request.suffix_aware) {
    // What the suffix begins with is not written twice.
    for (size_t n = std::min({result.text.size(), request.suffix.size(), size_t{200}}); n > 0;
         --n) {
      if (result.text.ends_with(std::string_view(request.suffix).substr(0, n))) {
        result.text.resize(result.text.size() - n);
        break;
      }
    }
  }
  if (request.language) {
    // The last gate: the text must not have broken what parsed before.
    Parser parser(*request.language);
    const bool whole = !parser.Parse(request.prefix + result.text + request.suffix)->broken();
    Scan closed(*request.language);
    closed.Add(request.prefix + result.text);
    result.parses = whole ||
                    !parser.Parse(request.prefix + result.text + closed.Closers(true))->broken() ||
                    parser.Parse(request.prefix + request.suffix)->broken();
  }
  if (set != nullptr) {
    result.points = set->counts().points;
    result.constrained = set->counts().constrained;
    result.monitor_seconds = set->counts().trigger_seconds;
  }
  return result;
}

}  // namespace pawl::monitors
