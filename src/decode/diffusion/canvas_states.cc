// A lattice meets the same places in each of its calls, and at many positions of one call. Here a
// place is a number, and a step is a look-up of (place, token). The constraint is asked once for
// each step, mask and completion. A step to a known place needs its key alone, so no constraint is
// made for it.
#include "src/decode/diffusion/canvas_states.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pawl {
namespace {

constexpr size_t kMostStateBytes = size_t{32} << 20;
constexpr size_t kStateBytes = 512, kStepBytes = 64;

uint64_t AddressKey(const void* address) { return reinterpret_cast<uintptr_t>(address); }

uint64_t PlaceKey(uint64_t key, const LoopConstraint* at) {
  return key != 0 ? key : AddressKey(at);
}

}  // namespace

bool CanvasRules::IsEnd(TokenId token) const {
  return std::ranges::find(ends, token) != ends.end();
}

CanvasPlace CanvasRules::Next(const CanvasPlace& place, TokenId token) const {
  if (place.ended) return {nullptr, IsEnd(token), -1};
  if (IsEnd(token)) return {nullptr, place.at->accepting(), -1};
  return {place.at->Next(token), false, -1};
}

CanvasStates::CanvasStates(const CanvasRules& rules) : rules_(rules) { Clear(); }

void CanvasStates::Clear() {
  states_.clear();
  states_.emplace_back();  // kEnded
  ids_ = {};
  masks_.clear();
  mask_ids_ = {};
  bytes_ = 0;
}

CanvasPlace CanvasStates::BeginCall(const CanvasPlace& root) {
  CanvasPlace now = root;
  if (auto renewed = root.ended ? nullptr : root.at->Renewed()) now.at = std::move(renewed);
  if (crowded() || now.at != root.at) Clear();
  return now;
}

bool CanvasStates::crowded() const { return bytes_ > kMostStateBytes; }

bool CanvasStates::MakeSpace(CanvasPlace& root) {
  const bool outdated = root.at != nullptr && root.at->outdated();
  if (!outdated && !crowded()) return false;
  Clear();  // first: what is let go need not be there twice
  if (outdated) {
    if (auto renewed = root.at->Renewed()) root.at = std::move(renewed);
  }
  return true;
}

CanvasStates::Id CanvasStates::Add(uint64_t key, State state) {
  const auto id = static_cast<Id>(states_.size());
  states_.push_back(std::move(state));
  ids_.Insert(key, id);
  bytes_ += kStateBytes;
  return id;
}

CanvasStates::Id CanvasStates::Of(const CanvasPlace& place) {
  if (place.ended) return kEnded;
  const uint64_t key = PlaceKey(place.at->key(), place.at.get());
  const Id* const known = ids_.Find(key);
  const Id id = known != nullptr ? *known : Add(key, {.at = place.at});
  return place.blank < 0 ? id : Blank(id, place.blank);
}

CanvasPlace CanvasStates::PlaceOf(Id id) const {
  const State& state = states_[static_cast<size_t>(id)];
  return {state.at, id == kEnded, state.blank};
}

CanvasStates::Id CanvasStates::Blank(Id id, int gap) {
  const State& state = states_[static_cast<size_t>(id)];
  if (state.base != kRefused) return Blank(state.base, gap);
  const uint64_t key = MixedKeys(static_cast<uint64_t>(id) + 1, static_cast<uint64_t>(gap) + 2);
  const Id* const known = ids_.Find(key);
  return known != nullptr ? *known : Add(key, {.at = state.at, .blank = gap, .base = id});
}

CanvasStates::Id CanvasStates::Find(TokenId token,
                                    const std::shared_ptr<const LoopConstraint>& at) {
  if (rules_.IsEnd(token)) return at->accepting() ? kEnded : kRefused;
  if (const std::optional<uint64_t> key = at->KeyAfter(token)) {
    if (*key == 0) return kRefused;
    if (const Id* const known = ids_.Find(*key)) return *known;
  }
  const std::shared_ptr<const LoopConstraint> next = at->NextHere(token);
  return next == nullptr ? kRefused : Of({next});
}

CanvasStates::Id CanvasStates::After(Id id, TokenId token) {
  if (id == kEnded) return rules_.IsEnd(token) ? kEnded : kRefused;
  if (const Id base = states_[static_cast<size_t>(id)].base; base != kRefused) id = base;
  const auto step = static_cast<uint64_t>(token);
  if (const Id* const known = states_[static_cast<size_t>(id)].steps.Find(step)) return *known;
  const std::shared_ptr<const LoopConstraint> at = states_[static_cast<size_t>(id)].at;
  const Id next = Find(token, at);
  states_[static_cast<size_t>(id)].steps.Insert(step, next);
  bytes_ += kStepBytes;
  return next;
}

const CanvasMask& CanvasStates::MaskOf(Id id) {
  State& state = states_[static_cast<size_t>(id)];
  if (state.base != kRefused) return MaskOf(state.base);
  if (state.mask != nullptr) return *state.mask;
  ++looks_;
  std::shared_ptr<const Mask> mask = state.at->mask();
  const uint64_t address = AddressKey(mask.get());
  const int32_t* const known = mask_ids_.Find(address);
  if (known != nullptr) {
    state.mask = masks_[static_cast<size_t>(*known)].get();
    return *state.mask;
  }
  mask_ids_.Insert(address, static_cast<int32_t>(masks_.size()));
  auto made = std::make_unique<CanvasMask>();
  made->mask = std::move(mask);
  if (made->few()) {
    made->tokens = made->mask->Tokens();
    std::erase_if(made->tokens, [&](TokenId token) { return token >= rules_.width; });
  }
  bytes_ += made->mask->words().size_bytes() + made->tokens.size() * sizeof(TokenId);
  state.mask = masks_.emplace_back(std::move(made)).get();
  return *state.mask;
}

bool CanvasStates::knows_mask(Id id) const {
  const State& state = states_[static_cast<size_t>(id)];
  return state.base != kRefused ? knows_mask(state.base) : state.mask != nullptr;
}

bool CanvasStates::tries_steps(Id id) const {
  return states_[static_cast<size_t>(id)].at->grammar() != nullptr;
}

bool CanvasStates::Completes(Id id, int most) {
  if (id == kEnded) return true;
  State& state = states_[static_cast<size_t>(id)];
  if (state.base != kRefused) return Completes(state.base, most);
  if (!state.shortest) {
    state.shortest = state.at->CompletionLength(std::numeric_limits<int>::max());
  }
  return *state.shortest >= 0 && *state.shortest <= most;
}

// What is enough for a budget is enough for a larger one.
bool CanvasStates::CompletesBySearch(Id id, int most) {
  State& state = states_[static_cast<size_t>(id)];
  if (state.base != kRefused) return CompletesBySearch(state.base, most);
  if (*state.shortest < 0) return false;
  if (most >= state.enough) return true;
  if (most <= state.short_of) return false;
  const int length = state.at->CompletionLength(most);
  if (length >= 0) {
    state.enough = std::min(state.enough, length);
  } else {
    state.short_of = std::max(state.short_of, most);
  }
  return length >= 0;
}

}  // namespace pawl
