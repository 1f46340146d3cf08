// State and Grammar: the public face of a Machine bound to a vocabulary.
//
// A machine grows lazily in every question, so one mutex per grammar serialises the questions; they
// are short once warm (a hash look-up). Masks are memoised by state key; a mask that is known is
// found without that mutex, so that nobody waits for another one's new state. Of a new mask only
// what the machine answers is found under it. Memory before, and hashing, interning and counting
// the words after it, are half of the time of most masks of a JSON Schema, which is what lets two
// threads share the new states of one grammar. Meanwhile the keys of such masks are in being_made_,
// for others to wait instead of asking the machine again.
#include "pawl/grammar.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "grammar/grammar_access.h"
#include "grammar/machine.h"
#include "grammar/masks/mask_builder.h"
#include "grammar/masks/mask_memo.h"
#include "grammar/masks/mask_path.h"
#include "grammar/masks/mask_pool.h"
#include "src/base/spin.h"

namespace pawl {
namespace {
constexpr size_t kMaskPoolBytes = size_t{256} << 20;
constexpr size_t kMaxMemoEntries = size_t{1} << 20;
}  // namespace

class GrammarImpl {
 public:
  GrammarImpl(std::shared_ptr<Machine> machine, std::shared_ptr<const Vocabulary> vocabulary,
              std::shared_ptr<std::mutex> mutex)
      : lock_(std::move(mutex)),
        mutex_(*lock_),
        machine_(std::move(machine)),
        vocabulary_(std::move(vocabulary)),
        builder_(*machine_, *vocabulary_),
        pool_(kMaskPoolBytes) {}

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::vector<std::string>& notes() const { return machine_->notes(); }

  Machine::Key Start() const {
    std::lock_guard lock(mutex_);
    return machine_->Start();
  }

  // Steps as long as the bytes fit; returns how many did, and the state after them.
  size_t Run(Machine::Key& key, std::string_view bytes) const {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const Machine::Key next = machine_->Step(key, static_cast<uint8_t>(bytes[i]));
      if (next == Machine::kDead) return i;
      key = next;
    }
    return bytes.size();
  }

  // The state after a token; kDead when it does not fit.
  Machine::Key RunToken(Machine::Key key, TokenId token) const {
    Machine::Key after = Machine::kDead;
    const std::string_view bytes = vocabulary_->bytes(token);
    std::lock_guard lock(mutex_);
    if (!vocabulary_->is_special(token) && !bytes.empty()) {
      after = key;
      for (size_t i = 0; i < bytes.size() && after != Machine::kDead; ++i)
        after = machine_->Step(after, static_cast<uint8_t>(bytes[i]));
    }
    return machine_->StepToken(key, token, after);
  }

  std::shared_ptr<const Mask> MaskOf(Machine::Key key) const {
    last_mask_path = MaskPath::kKnown;
    std::shared_ptr<const Mask> mask = memo_.Find(key);
    while (mask == nullptr) {
      MakeMasks({&key, 1}, {&mask, 1});
      if (mask != nullptr) break;
      std::unique_lock publish(publish_);
      published_.wait(publish, [&] { return !IsBeingMade(key); });
    }
    return mask;
  }

  // The masks of several states at once; nullptr where another thread is about to keep the mask.
  // false: the machine was busy for long, or took nearly all of the time, so that two threads would
  // only hand it to and fro.
  bool MakeMasks(std::span<const Machine::Key> keys,
                 std::span<std::shared_ptr<const Mask>> masks) const {
    std::vector<std::vector<uint32_t>> words(keys.size());
    for (auto& of_one : words) of_one.resize(static_cast<size_t>(vocabulary_->mask_words()));
    MakingGuard making{*this, {}};
    making.list.reserve(keys.size());
    bool soon = true;
    using Clock = std::chrono::steady_clock;
    Clock::time_point locked;
    {
      std::unique_lock machine = LockSoon(mutex_);
      soon = machine.owns_lock();
      if (!soon) machine.lock();
      locked = Clock::now();
      {
        const std::lock_guard publish(publish_);
        being_made_.reserve(being_made_.size() + keys.size());
        for (size_t i = 0; i < keys.size(); ++i) {
          masks[i] = memo_.Find(keys[i]);
          if (masks[i] != nullptr || IsBeingMade(keys[i])) continue;
          making.list.push_back(i);
          being_made_.push_back(keys[i]);
        }
        making.keys = keys;
      }
      for (const size_t i : making.list) last_mask_path = builder_.Build(keys[i], words[i]);
    }
    const Clock::time_point unlocked = Clock::now();
    std::vector<uint64_t> hashes(keys.size());
    for (const size_t i : making.list) hashes[i] = MaskPool::Hash(words[i]);
    const std::lock_guard publish(publish_);
    for (const size_t i : making.list) {
      masks[i] = pool_.Intern(hashes[i], std::move(words[i]));
      // The memo pins masks, so it is bounded together with the pool.
      if (memo_entries_ >= kMaxMemoEntries || pool_.bytes() + memo_bytes_ > 2 * kMaskPoolBytes) {
        memo_.Clear();
        memo_entries_ = 0;
        memo_bytes_ = 0;
      }
      ++memo_entries_;
      memo_bytes_ += masks[i]->words().size() * 4;
      memo_.Keep(keys[i], masks[i]);
    }
    return soon && unlocked - locked < 8 * (Clock::now() - unlocked);
  }

  int64_t CopyKnownMask(Machine::Key key, std::span<uint32_t> row) const {
    return memo_.Copy(key, row);
  }

  bool Accepting(Machine::Key key) const {
    std::lock_guard lock(mutex_);
    return machine_->Accepting(key);
  }

  std::string Forced(Machine::Key key, size_t limit) const {
    std::lock_guard lock(mutex_);
    std::string out;
    while (out.size() < limit && !machine_->Accepting(key) && !machine_->TakesTokens(key)) {
      Machine::Key only = Machine::kDead;
      int byte = -1;
      for (int b = 0; b < 256; ++b) {
        const Machine::Key next = machine_->Step(key, static_cast<uint8_t>(b));
        if (next == Machine::kDead) continue;
        if (byte >= 0) return out;
        byte = b;
        only = next;
      }
      if (byte < 0) return out;
      out.push_back(static_cast<char>(byte));
      key = only;
    }
    return out;
  }

  std::optional<std::string> ShortestCompletion(Machine::Key key) const {
    std::lock_guard lock(mutex_);
    return machine_->ShortestCompletion(key);
  }

  std::optional<float> Temperature(Machine::Key key) const {
    std::lock_guard lock(mutex_);
    return machine_->Temperature(key);
  }

  bool NamesEndTokens() const { return machine_->NamesEndTokens(); }
  bool CountsTokens() const { return machine_->CountsTokens(); }
  bool has_captures() const { return machine_->has_captures(); }

  Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> output) const {
    if (!machine_->has_captures()) return std::vector<Capture>();
    const Error misfit = {ErrorCode::kInvalid, "the output does not fit the grammar", ""};
    Machine::Key key = Start();
    size_t size = 0;
    for (const OutputPiece& piece : output) {
      if (piece.token == kNoToken) {
        if (Run(key, piece.bytes) != piece.bytes.size()) return misfit;
        size += piece.bytes.size();
        continue;
      }
      if (piece.token < 0 || piece.token >= vocabulary_->size()) return misfit;
      key = RunToken(key, piece.token);
      if (key == Machine::kDead) return misfit;
      size += vocabulary_->bytes(piece.token).size();
    }
    std::lock_guard lock(mutex_);
    if (machine_->Accepting(key)) return machine_->FindCaptures(output, *vocabulary_);
    const auto rest = machine_->Completion(key);
    if (!rest) {
      return Error{ErrorCode::kUnsupported,
                   "the output is not complete, and nothing short completes it", ""};
    }
    std::vector<OutputPiece> whole(output.begin(), output.end());
    whole.insert(whole.end(), rest->begin(), rest->end());
    auto captures = machine_->FindCaptures(whole, *vocabulary_);
    if (!captures.ok()) return captures.error();
    std::erase_if(*captures, [size](const Capture& capture) {
      return capture.end > size || capture.begin == size;
    });
    return captures;
  }

  std::optional<std::vector<OutputPiece>> Completion(Machine::Key key) const {
    std::lock_guard lock(mutex_);
    return machine_->Completion(key);
  }

 private:
  friend struct GrammarAccess;
  bool IsBeingMade(Machine::Key key) const {
    return std::ranges::find(being_made_, key) != being_made_.end();
  }
  // The time of keys in being_made_.
  struct MakingGuard {
    const GrammarImpl& impl;
    std::vector<size_t> list;  // in `keys`
    std::span<const Machine::Key> keys = {};
    ~MakingGuard() {
      if (list.empty()) return;
      {
        const std::lock_guard lock(impl.publish_);
        for (const size_t i : list) std::erase(impl.being_made_, keys[i]);
      }
      impl.published_.notify_all();
    }
  };
  std::shared_ptr<std::mutex> lock_;  // shared with grammars that share parts of the machine
  std::mutex& mutex_;
  std::shared_ptr<Machine> machine_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  mutable MaskBuilder builder_;
  mutable MaskMemo memo_;       // may be read without any lock
  mutable std::mutex publish_;  // what follows, and writing to the memo; taken after mutex_
  mutable MaskPool pool_;
  mutable size_t memo_entries_ = 0;
  mutable size_t memo_bytes_ = 0;
  mutable std::vector<Machine::Key> being_made_;
  mutable std::condition_variable published_;
};

std::optional<State> State::Advance(std::string_view bytes) const {
  Machine::Key key = key_;
  if (grammar_->Run(key, bytes) != bytes.size()) return std::nullopt;
  return State(grammar_, key);
}

std::optional<State> State::Advance(TokenId token) const {
  if (token < 0 || token >= grammar_->vocabulary().size()) return std::nullopt;
  const Machine::Key key = grammar_->RunToken(key_, token);
  if (key == Machine::kDead) return std::nullopt;
  return State(grammar_, key);
}

size_t State::MatchedPrefix(std::string_view bytes) const {
  Machine::Key key = key_;
  return grammar_->Run(key, bytes);
}

std::shared_ptr<const Mask> State::mask() const { return grammar_->MaskOf(key_); }
int64_t State::CopyKnownMask(std::span<uint32_t> row) const {
  return grammar_->CopyKnownMask(key_, row);
}
bool State::accepting() const { return grammar_->Accepting(key_); }
std::string State::forced(size_t limit) const { return grammar_->Forced(key_, limit); }
std::optional<std::string> State::ShortestCompletion() const {
  return grammar_->ShortestCompletion(key_);
}

std::optional<float> State::temperature() const { return grammar_->Temperature(key_); }

std::optional<std::vector<OutputPiece>> State::Completion() const {
  return grammar_->Completion(key_);
}

std::optional<std::vector<TokenId>> State::CompletionTokens() const {
  const auto parts = Completion();
  if (!parts) return std::nullopt;
  std::vector<TokenId> tokens;
  for (const OutputPiece& part : *parts) {
    if (part.token != kNoToken) {
      tokens.push_back(part.token);
      continue;
    }
    const std::vector<TokenId> spelled = grammar_->vocabulary().FewestTokens(part.bytes);
    if (spelled.empty()) return std::nullopt;
    tokens.insert(tokens.end(), spelled.begin(), spelled.end());
  }
  // Bytes that complete may be more tokens than a rule may have.
  if (grammar_->CountsTokens()) {
    State at = *this;
    for (const TokenId token : tokens) {
      const std::optional<State> next = at.Advance(token);
      if (!next) return std::nullopt;
      at = *next;
    }
    if (!at.accepting()) return std::nullopt;
  }
  return tokens;
}

int State::shortest_close() const {
  const auto tokens = CompletionTokens();
  return tokens ? static_cast<int>(tokens->size()) : -1;
}

const Vocabulary& State::vocabulary() const { return grammar_->vocabulary(); }

Grammar::Grammar(std::shared_ptr<Machine> machine, std::shared_ptr<const Vocabulary> vocabulary)
    : impl_(std::make_shared<GrammarImpl>(std::move(machine), std::move(vocabulary),
                                          std::make_shared<std::mutex>())) {}

GrammarAccess GrammarAccess::Of(const Grammar& grammar) {
  return {grammar.impl_->machine_, grammar.impl_->lock_, grammar.impl_->vocabulary_};
}

GrammarAccess::Place GrammarAccess::PlaceOf(const State& state) {
  return {state.grammar_->lock_.get(), state.grammar_, state.key_};
}

bool GrammarAccess::NamesEndTokens(const State& state) { return state.grammar_->NamesEndTokens(); }

bool GrammarAccess::MakeMasks(const GrammarImpl* grammar, std::span<const Machine::Key> keys,
                              std::span<std::shared_ptr<const Mask>> masks) {
  const bool soon = grammar->MakeMasks(keys, masks);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (masks[i] == nullptr) masks[i] = grammar->MaskOf(keys[i]);
  }
  return soon;
}

Grammar GrammarAccess::Make(std::shared_ptr<Machine> made) const {
  return Grammar(std::make_shared<GrammarImpl>(std::move(made), vocabulary, lock));
}

State Grammar::Start() const { return State(impl_.get(), impl_->Start()); }
const Vocabulary& Grammar::vocabulary() const { return impl_->vocabulary(); }
const std::vector<std::string>& Grammar::notes() const { return impl_->notes(); }
bool Grammar::has_captures() const { return impl_->has_captures(); }
Result<std::vector<Capture>> Grammar::FindCaptures(std::span<const OutputPiece> output) const {
  return impl_->FindCaptures(output);
}

}  // namespace pawl
