// A machine grows lazily in every question, so one lock per grammar serialises the questions; they
// are short once warm (a hash look-up). Masks are memoised by state key; a mask that is known is
// found without that lock, so that no thread waits for another one's new state. Of a new mask only
// what the machine answers is found under it. Memory before, and hashing, interning and counting
// the words after it, are half of the time of most masks of a JSON Schema, which is what lets two
// threads share the new states of one grammar. Meanwhile the keys of such masks are in being_made_,
// for others to wait instead of asking the machine again.
//
// What is kept is measured now and then: a machine says in a few loads about how much it has grown,
// and is walked over when that is a lot. The budget is told, and may have this grammar, or another
// one, rebuilt (GrammarOwner).
#include "grammar/grammar_impl.h"

#include <algorithm>

#include "grammar/masks/machine_masks.h"
#include "src/base/stop_scope.h"

namespace pawl {

namespace {
constexpr size_t kMaxMemoEntries = size_t{1} << 20;
constexpr size_t kMemoEntryBytes = 48;
// Closings that are kept: of each in addition to its tokens, and of all.
constexpr size_t kClosingBytes = 128, kMostClosingBytes = size_t{4} << 20;
constexpr size_t kLongText = 1000;               // whose spelling is kept
constexpr size_t kPieceBytes = 256;              // of a text that is read
constexpr size_t kLeastStep = size_t{32} << 10;  // of growth, before it is measured
}  // namespace

GrammarUse::~GrammarUse() = default;

GrammarImpl::GrammarImpl(std::shared_ptr<Machine> machine, std::shared_ptr<MachineLock> lock,
                         std::shared_ptr<GrammarShared> shared)
    : GrammarUse(lock->broken_flag()),
      shared_(std::move(shared)),
      lock_(std::move(lock)),
      machine_(std::move(machine)),
      vocabulary_(shared_->vocabulary),
      builder_(*machine_, *vocabulary_),
      step_(kLeastStep),
      least_bytes_(machine_->GrowthHint()) {
  Book(least_bytes_);
}

GrammarImpl::~GrammarImpl() { shared_->budget->Freed(bytes_.load()); }

// A long text is many questions, between which the budget is told what was found.
size_t GrammarImpl::Run(Machine::Key& key, std::string_view bytes) const {
  size_t read = 0;
  while (read < bytes.size()) {
    const std::string_view piece = bytes.substr(read, kPieceBytes);
    const size_t fits = RunPiece(key, piece, bytes.size() > kPieceBytes);
    read += fits;
    if (fits < piece.size()) break;
  }
  return read;
}

size_t GrammarImpl::RunPiece(Machine::Key& key, std::string_view bytes, bool of_more) const {
  size_t i = 0;
  bool grew;
  {
    const MachineUse use(*lock_);
    if (use.broken()) return 0;
    const GrowthWatch watch = Watch();
    for (; i < bytes.size(); ++i) {
      const Machine::Key next = machine_->Step(key, static_cast<uint8_t>(bytes[i]));
      if (next == Machine::kDead) break;
      key = next;
    }
    grew = of_more ? Grew() : GrewSometimes();
  }
  if (grew) Settle();
  return i;
}

std::vector<Machine::Key> GrammarImpl::Path(Machine::Key key, std::string_view bytes) const {
  std::vector<Machine::Key> path;
  const MachineUse use(*lock_);
  if (use.broken()) return path;
  const GrowthWatch watch = Watch();
  for (const char byte : bytes) {
    key = machine_->Step(key, static_cast<uint8_t>(byte));
    if (key == Machine::kDead) break;
    path.push_back(key);
  }
  return path;
}

Machine::Key GrammarImpl::RunToken(Machine::Key key, TokenId token) const {
  Machine::Key after = Machine::kDead;
  const std::string_view bytes = vocabulary_->bytes(token);
  bool grew;
  {
    const MachineUse use(*lock_);
    if (use.broken()) return Machine::kDead;
    const GrowthWatch watch = Watch();
    key = machine_->AtToken(key, *vocabulary_);
    if (!vocabulary_->is_special(token) && !bytes.empty()) {
      after = key;
      for (size_t i = 0; i < bytes.size() && after != Machine::kDead; ++i)
        after = machine_->Step(after, static_cast<uint8_t>(bytes[i]));
    }
    after = machine_->StepToken(key, token, after);
    grew = GrewSometimes();
  }
  if (grew) Settle();
  return after;
}

std::shared_ptr<const Mask> GrammarImpl::MaskOf(Machine::Key key) const {
  std::shared_ptr<const Mask> mask = lost() ? nullptr : memo_.Find(key);
  while (mask == nullptr) {
    MakeMasks({&key, 1}, {&mask, 1});
    if (mask != nullptr) break;
    std::unique_lock publish(shared_->publish);
    published_.wait(publish, [&] { return !IsBeingMade(key); });
  }
  return mask;
}

bool GrammarImpl::MakeMasks(std::span<const Machine::Key> keys,
                            std::span<std::shared_ptr<const Mask>> masks) const {
  std::vector<std::vector<uint32_t>> words(keys.size());
  for (auto& of_one : words) of_one.resize(static_cast<size_t>(vocabulary_->mask_words()));
  MakingGuard making{*this, {}};
  making.list.reserve(keys.size());
  bool soon = true, grew = false, broken = false;
  LockClock::time_point locked;
  {
    const MachineUse use(*lock_, soon);
    broken = use.broken();
    locked = LockClock::now();
    {
      const std::lock_guard publish(shared_->publish);
      being_made_.reserve(being_made_.size() + keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        masks[i] = broken ? nullptr : memo_.Find(keys[i]);
        if (masks[i] != nullptr || IsBeingMade(keys[i])) continue;
        making.list.push_back(i);
        being_made_.push_back(keys[i]);
      }
      making.keys = keys;
    }
    const GrowthWatch watch = Watch();
    for (const size_t i : making.list) {
      if (!broken) made_ = {made_.count + 1, builder_.Build(keys[i], words[i])};
    }
    grew = !broken && Grew();
  }
  const LockClock::time_point unlocked = LockClock::now();
  std::vector<uint64_t> hashes(keys.size());
  for (const size_t i : making.list) hashes[i] = MaskPool::Hash(words[i]);
  {
    const std::lock_guard publish(shared_->publish);
    for (const size_t i : making.list) {
      const size_t before = shared_->pool.bytes();
      masks[i] = shared_->pool.Intern(hashes[i], std::move(words[i]));
      if (broken) continue;
      // The memo pins masks, so it goes together with the pool.
      if (shared_->pool.bytes() < before) {
        ForgetMemo();
      } else if (memo_entries_ >= kMaxMemoEntries) {
        Forget();
      }
      ++memo_entries_;
      memo_.Keep(keys[i], masks[i]);
    }
    BookMasks();
  }
  const bool alone = soon && unlocked - locked < 8 * (LockClock::now() - unlocked);
  if (grew || shared_->budget->Spent()) Settle();
  return alone;
}

std::string GrammarImpl::Forced(Machine::Key key, size_t limit) const {
  const MachineUse use(*lock_);
  std::string out;
  if (use.broken()) return out;
  const GrowthWatch watch = Watch();
  key = machine_->AtToken(key, *vocabulary_);
  while (out.size() < limit && !machine_->Accepting(key) && !machine_->TakesTokens(key)) {
    Machine::Key only = Machine::kDead;
    int byte = -1;
    StopScope::Steps(256);
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

Result<std::vector<Capture>> GrammarImpl::FindCaptures(std::span<const OutputPiece> output) const {
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
  const MachineUse use(*lock_);
  if (use.broken()) return Error{ErrorCode::kInternal, "the grammar was given up meanwhile", ""};
  const GrowthWatch watch = Watch();
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

std::shared_ptr<const GrammarImpl::Closing> GrammarImpl::KnownClosing(Machine::Key key,
                                                                      int most) const {
  if (lost()) return nullptr;
  const std::lock_guard lock(closings_mutex_);
  const auto known = closings_.find({key, most});
  return known == closings_.end() ? nullptr : known->second;
}

std::shared_ptr<const GrammarImpl::Closing> GrammarImpl::KeepClosing(Machine::Key key, int most,
                                                                     Closing closing) const {
  const size_t cost = kClosingBytes + (closing ? closing->size() * sizeof(TokenId) : 0);
  const auto made = std::make_shared<const Closing>(std::move(closing));
  if (lost()) return made;
  int64_t gained = 0;
  {
    const std::lock_guard lock(closings_mutex_);
    if (closing_bytes_ + cost > kMostClosingBytes) {
      closings_.clear();
      gained -= static_cast<int64_t>(std::exchange(closing_bytes_, 0));
    }
    if (closings_.emplace(std::pair(key, most), made).second) {
      closing_bytes_ += cost;
      gained += static_cast<int64_t>(cost);
    }
    bytes_.fetch_add(gained, std::memory_order_relaxed);
  }
  shared_->budget->Add(gained);
  return made;
}

std::vector<TokenId> GrammarImpl::FewestTokens(std::string_view bytes) const {
  if (bytes.size() < kLongText) return vocabulary_->FewestTokens(bytes);
  int64_t gained = 0;
  std::optional<std::vector<TokenId>> found;
  {
    const std::lock_guard lock(closings_mutex_);
    if (spelled_ != nullptr) found = spelled_->Of(bytes);
    if (!found) {
      gained -= spelled_ == nullptr ? 0 : static_cast<int64_t>(spelled_->MemoryBytes());
      spelled_ = std::make_unique<const FewestFromEnd>(*vocabulary_, std::string(bytes));
      gained += static_cast<int64_t>(spelled_->MemoryBytes());
      found = spelled_->Of(bytes);
    }
    bytes_.fetch_add(gained, std::memory_order_relaxed);
  }
  shared_->budget->Add(gained);
  return std::move(found).value_or(std::vector<TokenId>());
}

bool GrammarImpl::IsBeingMade(Machine::Key key) const {
  return std::ranges::find(being_made_, key) != being_made_.end();
}

GrammarImpl::MakingGuard::~MakingGuard() {
  if (list.empty()) return;
  {
    const std::lock_guard lock(impl.shared_->publish);
    for (const size_t i : list) std::erase(impl.being_made_, keys[i]);
  }
  impl.published_.notify_all();
}

void GrammarImpl::Measure() const {
  const MachineUse use(*lock_);
  MeasureHeld(use);
}

// A question may hold the lock for long; reports do not wait for its end.
void GrammarImpl::MeasureIfFree() const {
  const MachineUse use(*lock_, std::try_to_lock);
  if (use.held()) MeasureHeld(use);
}

void GrammarImpl::MeasureHeld(const MachineUse& use) const {
  if (use.broken()) return;
  auto bytes = static_cast<int64_t>(sizeof(GrammarImpl) + machine_->MemoryBytes() +
                                    builder_.bytes() + known_.bytes());
  hinted_ = booked_ = machine_->GrowthHint();
  step_ = std::max(kLeastStep, static_cast<size_t>(bytes) / 8);
  const std::lock_guard lock(closings_mutex_);
  bytes += static_cast<int64_t>(closing_bytes_ + (spelled_ ? spelled_->MemoryBytes() : 0));
  shared_->budget->Add(bytes - bytes_.exchange(bytes));
}

// Between two measurements the hint stands for what was gained.
bool GrammarImpl::Book(size_t hint) const {
  const auto gained = static_cast<int64_t>(hint - booked_);
  booked_ = hint;
  bytes_.fetch_add(gained, std::memory_order_relaxed);
  shared_->budget->Add(gained);
  return hint > hinted_ + step_ || shared_->budget->Spent();
}

void GrammarImpl::Settle() const {
  bool measure;
  {
    const MachineUse use(*lock_);
    if (use.broken()) return;
    measure = machine_->GrowthHint() > hinted_ + step_;
  }
  if (measure) {
    Measure();
    shared_->budget->HandBack();
  }
  if (shared_->budget->Spent()) shared_->budget->Settle();
}

void GrammarImpl::BookMasks() const {
  const size_t now = shared_->pool.bytes() + kMemoEntryBytes * memo_entries_;
  const size_t before = shared_->mask_bytes.exchange(now, std::memory_order_relaxed);
  shared_->budget->Add(static_cast<int64_t>(now) - static_cast<int64_t>(before));
}

void GrammarImpl::ForgetMemo() const {
  memo_.Clear();
  memo_entries_ = 0;
}

void GrammarImpl::Forget() const {
  shared_->pool.Clear();
  ForgetMemo();
}

void GrammarImpl::ForgetMasks() const {
  const std::lock_guard publish(shared_->publish);
  Forget();
  BookMasks();
}

void GrammarImpl::Retire() const {
  stale_.store(true, std::memory_order_relaxed);
  ForgetMasks();
}

void GrammarImpl::Replayed() const {
  Measure();
  least_bytes_.store(std::max(least_bytes(), bytes()), std::memory_order_relaxed);
}

// A machine and all that was found with it is one generation of a grammar. Its states hold it by a
// count of uses, of which one is the owner's. A rebuild drops that one: the next call of Start gets
// a new machine, and the old one is freed with the last of its states. The same happens to a
// generation whose lock an exception has broken, at the next call of Start.

namespace {

// In place of a machine that could not be made again. It takes nothing.
class NoMachine : public Machine {
 public:
  Key Start() override { return kDead; }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kDeadLexeme; }
  Key StepFrame(Key, uint8_t) override { return kDead; }
  bool Accepting(Key) override { return false; }
  std::optional<std::string> CompletionBytes(Key) override { return std::nullopt; }
};

}  // namespace

GrammarOwner::GrammarOwner(LockedMachine machine, std::shared_ptr<const Vocabulary> vocabulary,
                           std::shared_ptr<MemoryBudget> budget, MachineMaker again,
                           size_t source_bytes)
    : shared_(std::make_shared<GrammarShared>(std::move(vocabulary), std::move(budget))),
      again_(std::move(again)),
      source_bytes_(static_cast<int64_t>(source_bytes)),
      notes_(machine.machine->notes()),
      has_captures_(machine.machine->has_captures()),
      current_(new GrammarImpl(std::move(machine.machine), std::move(machine.lock), shared_)) {
  shared_->budget->Add(source_bytes_);
}

std::shared_ptr<GrammarOwner> GrammarOwner::Make(LockedMachine machine,
                                                 std::shared_ptr<const Vocabulary> vocabulary,
                                                 std::shared_ptr<MemoryBudget> budget,
                                                 MachineMaker again, size_t source_bytes) {
  if (machine.machine == nullptr)
    machine = {std::make_shared<NoMachine>(), std::make_shared<MachineLock>()};
  std::shared_ptr<GrammarOwner> keeper(new GrammarOwner(std::move(machine), std::move(vocabulary),
                                                        std::move(budget), std::move(again),
                                                        source_bytes));
  keeper->shared_->budget->Register(keeper);
  return keeper;
}

GrammarOwner::~GrammarOwner() {
  if (current_ != nullptr) current_->Leave();
  shared_->budget->Add(-source_bytes_);
}

const GrammarImpl* GrammarOwner::Known() const {
  const std::lock_guard lock(mutex_);
  if (current_ == nullptr || current_->lost()) return nullptr;
  current_->Take();
  return current_;
}

const GrammarImpl* GrammarOwner::Current() {
  used_.store(shared_->budget->Tick(), std::memory_order_relaxed);
  if (const GrammarImpl* const known = Known()) return known;
  const std::lock_guard making(making_);
  if (const GrammarImpl* const known = Known()) return known;
  Evict();
  LockedMachine machine = again_ != nullptr ? again_() : LockedMachine();
  if (machine.machine == nullptr)
    machine = {std::make_shared<NoMachine>(), std::make_shared<MachineLock>()};
  auto* const made = new GrammarImpl(std::move(machine.machine), std::move(machine.lock), shared_);
  made->Take();
  const std::lock_guard lock(mutex_);
  current_ = made;
  return made;
}

size_t GrammarOwner::Reclaimable() const {
  const GrammarImpl* const impl = Known();
  if (impl == nullptr) return 0;
  const size_t masks = shared_->mask_bytes.load(std::memory_order_relaxed);
  const size_t machine =
      again_ != nullptr && impl->bytes() >= 2 * impl->least_bytes() ? impl->bytes() : 0;
  impl->Leave();
  return std::max(masks, machine);
}

void GrammarOwner::Trim() {
  const GrammarImpl* const impl = Known();
  if (impl == nullptr) return;
  const size_t masks = shared_->mask_bytes.load(std::memory_order_relaxed);
  if (again_ == nullptr || masks > impl->bytes()) {
    impl->ForgetMasks();
  } else {
    Evict();
  }
  impl->Leave();
}

bool GrammarOwner::Idle() const {
  const std::lock_guard lock(mutex_);
  return again_ != nullptr && current_ != nullptr && current_->users() == 1;
}

void GrammarOwner::Evict() {
  const GrammarImpl* impl = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::swap(impl, current_);
  }
  if (impl == nullptr) return;
  struct Leaving {
    const GrammarImpl* impl;
    ~Leaving() { impl->Leave(); }
  } const leaving{impl};
  impl->Retire();
}

void GrammarOwner::LetGoLost() {
  {
    const std::lock_guard lock(mutex_);
    if (current_ == nullptr || !current_->lost()) return;
  }
  Evict();
}

void GrammarOwner::Measure() {
  const GrammarImpl* const impl = Known();
  if (impl == nullptr) return;
  impl->MeasureIfFree();
  impl->Leave();
}

}  // namespace pawl
