// A machine and all that was found with it is one generation of a grammar. Its states hold it by a
// count of uses, of which one is the keeper's. To begin anew is to drop that one: whoever starts
// next gets a new machine, and the old one goes with the last of its states. The same happens to an
// generation whose lock an exception has broken, as soon as somebody starts.
#include "grammar/grammar_owner.h"

#include <algorithm>

namespace pawl {
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
