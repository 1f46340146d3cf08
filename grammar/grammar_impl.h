// GrammarImpl: one generation of a grammar, a machine with all that was found with it.
// GrammarOwner, the owner of the epochs of a grammar, comes last.
//
// Thread-safe: one lock serialises what is asked of the machine (grammar_impl.cc). Once an
// exception has broken that lock (machine_lock.h), every question is answered like that of a state
// after which nothing fits.
#ifndef PAWL_GRAMMAR_GRAMMAR_IMPL_H_
#define PAWL_GRAMMAR_GRAMMAR_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/known_answers.h"
#include "grammar/machine.h"
#include "grammar/machine_lock.h"
#include "grammar/masks/mask_builder.h"
#include "grammar/masks/mask_memo.h"
#include "grammar/memory_budget.h"
#include "grammar/vocabulary_tables.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"
#include "src/base/sync.h"

namespace pawl {

struct RecordKeys;

// What the epochs of one grammar share.
struct GrammarShared {
  GrammarShared(std::shared_ptr<const Vocabulary> of, std::shared_ptr<MemoryBudget> paid_by)
      : vocabulary(std::move(of)), budget(std::move(paid_by)), pool(budget->limit()) {}
  ~GrammarShared() { budget->Add(-static_cast<int64_t>(mask_bytes.load())); }
  GrammarShared(const GrammarShared&) = delete;
  GrammarShared& operator=(const GrammarShared&) = delete;

  const std::shared_ptr<const Vocabulary> vocabulary;
  const std::shared_ptr<MemoryBudget> budget;
  Mutex publish;  // of the pool and of what GrammarImpl says
  MaskPool pool;
  std::atomic<size_t> mask_bytes{0};  // of the pool, as the budget has them
};

class GrammarImpl : public GrammarUse {
  // What `ask` answers, asked under the lock; an empty answer where that is broken.
  template <typename Ask>
  auto Asked(const Ask& ask) const -> decltype(ask()) {
    std::optional<decltype(ask())> answer;
    bool grew = false;
    {
      const MachineUse use(*lock_);
      if (use.broken()) return {};
      const GrowthWatch watch = Watch();
      answer = ask();
      grew = Grew();
    }
    if (grew) Settle();
    return *std::move(answer);
  }
  // The same of what hardly makes a machine grow.
  template <typename Ask>
  auto AskedBriefly(const Ask& ask) const -> decltype(ask()) {
    const MachineUse use(*lock_);
    if (use.broken()) return {};
    return ask();
  }

 public:
  GrammarImpl(std::shared_ptr<Machine> machine, std::shared_ptr<MachineLock> lock,
              std::shared_ptr<GrammarShared> shared);
  ~GrammarImpl() override;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::shared_ptr<Machine>& machine() const { return machine_; }
  const std::shared_ptr<MachineLock>& lock() const { return lock_; }

  Machine::Key Start() const {
    return AskedBriefly([&] { return machine_->Start(); });
  }
  // Steps as long as the bytes fit; returns how many did, and the state after them.
  size_t Run(Machine::Key& key, std::string_view bytes) const;
  // The states after each of the bytes, as far as they fit.
  std::vector<Machine::Key> Path(Machine::Key key, std::string_view bytes) const;
  // The state after a token; kDead when it does not fit.
  Machine::Key RunToken(Machine::Key key, TokenId token) const;
  std::shared_ptr<const Mask> MaskOf(Machine::Key key) const;
  // The masks of several states at once; nullptr where another thread is about to keep the mask.
  // false: the machine was busy for long, or took nearly all of the time, so that two threads would
  // only hand it to and fro.
  bool MakeMasks(std::span<const Machine::Key> keys,
                 std::span<std::shared_ptr<const Mask>> masks) const;
  MasksMade masks_made() const {
    const MachineUse use(*lock_);
    return made_;
  }
  int64_t CopyKnownMask(Machine::Key key, std::span<uint32_t> row) const {
    return lost() ? -1 : memo_.Copy(key, row);
  }
  std::shared_ptr<const Mask> KnownMask(Machine::Key key) const { return memo_.Find(key); }
  std::vector<std::string> SampleTexts(size_t bytes) const {
    return Asked([&] { return machine_->SampleTexts(bytes); });
  }
  bool Accepting(Machine::Key key) const {
    return AskedBriefly([&] { return machine_->Accepting(key); });
  }
  std::string Forced(Machine::Key key, size_t limit) const;
  std::optional<std::string> CompletionBytes(Machine::Key key) const {
    return Asked([&] { return machine_->CompletionBytes(key); });
  }
  std::optional<std::vector<OutputPiece>> Completion(Machine::Key key) const {
    return Asked([&] { return machine_->Completion(key); });
  }
  // In which tokens a text is closed from a state on, as found before: at most `most` of them, or
  // the completion (kShortest). nullptr: not known. Nothing in it: none was found.
  static constexpr int kShortest = -1;
  using Closing = std::optional<std::vector<TokenId>>;
  std::shared_ptr<const Closing> KnownClosing(Machine::Key key, int most) const;
  // Keeps it, within a bound on bytes, unless the lock is broken; returns it in any case.
  std::shared_ptr<const Closing> KeepClosing(Machine::Key key, int most, Closing closing) const;
  // Vocabulary::FewestTokens. Completions inside one long word end alike: the last long text that
  // was spelled is kept, and its endings are looked up.
  std::vector<TokenId> FewestTokens(std::string_view bytes) const;
  std::optional<float> Temperature(Machine::Key key) const {
    return AskedBriefly([&] { return machine_->Temperature(key); });
  }
  bool TakesTokens(Machine::Key key) const {
    return AskedBriefly([&] { return machine_->TakesTokens(key); });
  }
  // What was asked before, as far as askers keep it there (GrammarAccess).
  KnownAnswers& known() const { return known_; }
  std::string LimitNote(Machine::Key key) const {
    return AskedBriefly([&] {
      machine_->AtToken(key, *vocabulary_);
      return machine_->LimitNote(key);
    });
  }
  bool NamesEndTokens() const { return machine_->NamesEndTokens(); }
  bool CountsTokens() const { return machine_->CountsTokens(); }
  // kInternal where the lock is broken.
  Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> output) const;

  // Memory. Of the machine and what was found with it, masks aside: as measured last, and what has
  // to be there before a new start is worth while.
  size_t bytes() const { return static_cast<size_t>(bytes_.load(std::memory_order_relaxed)); }
  size_t least_bytes() const { return least_bytes_.load(std::memory_order_relaxed); }
  int64_t users() const { return users_.load(std::memory_order_relaxed); }
  void Measure() const;
  // The same, unless a question runs: then what was booked before stands.
  void MeasureIfFree() const;
  void ForgetMasks() const;
  // No state starts here any more.
  void Retire() const;
  // Somebody has taken a text again that is still being written: what it needs is needed.
  void Replayed() const;

 private:
  // The keys of one call in being_made_, while it runs.
  static constexpr size_t kBookStep = size_t{16} << 10;
  struct MakingGuard {
    const GrammarImpl& impl;
    std::vector<size_t> list;  // in `keys`
    std::span<const Machine::Key> keys = {};
    ~MakingGuard();
  };
  bool IsBeingMade(Machine::Key key) const;
  // Whether there is something to settle after the machine has grown. With the lock held.
  bool Grew() const {
    const size_t hint = machine_->GrowthHint();
    return hint >= booked_ + kBookStep && Book(hint);
  }
  size_t RunPiece(Machine::Key& key, std::string_view bytes, bool of_more) const;
  bool Book(size_t hint) const;
  // With the lock, while the machine is asked.
  GrowthWatch Watch() const { return {*machine_, booked_, *shared_->budget}; }
  void MeasureHeld(const MachineUse& use) const;
  bool GrewSometimes() const { return (++steps_ & 63) == 0 && Grew(); }
  // With shared_->publish held:
  void Forget() const;
  void ForgetMemo() const;
  void BookMasks() const;
  void Settle() const;

  const std::shared_ptr<GrammarShared> shared_;
  const std::shared_ptr<MachineLock> lock_;  // shared with grammars that share parts of the machine
  const std::shared_ptr<Machine> machine_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  mutable MaskBuilder builder_;
  mutable MaskMemo memo_;  // may be read without any lock
  mutable KnownAnswers known_;
  // With shared_->publish, which is taken after the lock:
  mutable size_t memo_entries_ = 0;
  mutable std::vector<Machine::Key> being_made_;
  mutable ConditionVariable published_;
  mutable MasksMade made_;  // with the lock
  // With the lock: steps so far, and what the machine hinted at when it was measured.
  mutable uint64_t steps_ = 0;
  // and when it was booked; how much it may grow until it is measured again.
  mutable size_t hinted_ = 0, booked_ = 0, step_;
  mutable Mutex closings_mutex_;  // of what follows; no other lock is taken with it
  mutable std::map<std::pair<Machine::Key, int>, std::shared_ptr<const Closing>> closings_;
  mutable size_t closing_bytes_ = 0;
  mutable std::unique_ptr<const FewestFromEnd> spelled_;
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::atomic<size_t> least_bytes_{0};
};

// GrammarOwner: what a Grammar and its copies share. It knows how to make the grammar's machine
// again, so that what the machine has found can be freed.
//
// Thread-safe.

// A machine, and the lock of all machines that share parts with it.
struct LockedMachine {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<MachineLock> lock;
};
// Makes the same machine from what it was compiled from; a null one if that fails, which it must
// not, since it worked once.
using MachineMaker = std::function<LockedMachine()>;

class GrammarOwner : public std::enable_shared_from_this<GrammarOwner> {
 public:
  // `again`: may be empty; then only masks are freed, and an exception in a question of the
  // machine is the grammar's end. It holds `source_bytes`.
  static std::shared_ptr<GrammarOwner> Make(LockedMachine machine,
                                            std::shared_ptr<const Vocabulary> vocabulary,
                                            std::shared_ptr<MemoryBudget> budget,
                                            MachineMaker again, size_t source_bytes = 0);
  ~GrammarOwner();
  GrammarOwner(const GrammarOwner&) = delete;
  GrammarOwner& operator=(const GrammarOwner&) = delete;

  // The machine of now, with one use of it for the caller. Made again when it was freed, or
  // when an exception has broken its lock; without `again` one that takes nothing stands for that.
  const GrammarImpl* Current();
  const Vocabulary& vocabulary() const { return *shared_->vocabulary; }
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const { return shared_->vocabulary; }
  const std::shared_ptr<MemoryBudget>& budget() const { return shared_->budget; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool has_captures() const { return has_captures_; }
  // Of a JSON Schema with Keys::kAll; nullptr: its texts are its records. Set before the grammar is
  // handed out.
  const std::shared_ptr<const RecordKeys>& record_keys() const { return record_keys_; }
  void set_record_keys(std::shared_ptr<const RecordKeys> keys) { record_keys_ = std::move(keys); }
  // Makes the grammar of a text (Grammar::Bind), and the place that asks for one. Set before the
  // grammar is handed out.
  using Binder = std::function<Result<Grammar>(std::string_view)>;
  const Binder& binder() const { return binder_; }
  const std::string& unbound() const { return unbound_; }
  void set_binder(Binder binder, std::string place) {
    binder_ = std::move(binder);
    unbound_ = std::move(place);
  }
  // Makes the grammar of a text in which every field is copied; empty: there is none. Set before
  // the grammar is handed out.
  const Binder& copier() const { return copier_; }
  void set_copier(Binder copier) { copier_ = std::move(copier); }
  void AddNotes(const std::vector<std::string>& notes) {
    notes_.insert(notes_.end(), notes.begin(), notes.end());
  }

  // For the budget. Reclaimable: bytes that Trim would free once no state needs them; 0 where that
  // is not worth while.
  size_t Reclaimable() const;
  void Trim();
  // No state is in use, and there is a machine to let go.
  bool Idle() const;
  void Evict();
  // The same where an exception has broken the machine: what it holds is of no use any more.
  void LetGoLost();
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // What is asked something at this moment is not measured.
  void Measure();

 private:
  GrammarOwner(LockedMachine machine, std::shared_ptr<const Vocabulary> vocabulary,
               std::shared_ptr<MemoryBudget> budget, MachineMaker again, size_t source_bytes);
  // The machine of now with a use of it; nullptr when there is none, or its lock is broken.
  const GrammarImpl* Known() const;

  std::shared_ptr<GrammarShared> shared_;
  MachineMaker again_;
  const int64_t source_bytes_;
  std::vector<std::string> notes_;
  std::shared_ptr<const RecordKeys> record_keys_;
  Binder binder_, copier_;
  std::string unbound_;
  bool has_captures_;
  std::atomic<uint64_t> used_{0};
  Mutex making_;         // a machine again; before mutex_
  mutable Mutex mutex_;  // of current_
  const GrammarImpl* current_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_GRAMMAR_IMPL_H_
