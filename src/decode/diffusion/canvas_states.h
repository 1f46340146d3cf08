// CanvasStates: the places of a constraint that canvases have met, by number, with what was asked
// of them before.
//
//   CanvasStates states(rules);
//   place = states.BeginCall(place);
//   const CanvasStates::Id root = states.Of(place);
//   const CanvasStates::Id next = states.After(root, token);   // kRefused, kEnded, or a number
//   for (const TokenId token : states.MaskOf(next).mask->Tokens()) ...
//
// Numbers stay good until BeginCall and MakeSpace.
#ifndef PAWL_SRC_DECODE_DIFFUSION_CANVAS_STATES_H_
#define PAWL_SRC_DECODE_DIFFUSION_CANVAS_STATES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/hash_index.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"

namespace pawl {

// Stands at a mask that its gap does not need, as at all masks of the gap behind it.
constexpr TokenId kBlank = -2;

// Behind an end token, or in a constraint.
struct CanvasPlace {
  std::shared_ptr<const LoopConstraint> at;
  bool ended = false;
  int blank = -1;  // the gap whose text has ended
};

struct CanvasRules {
  std::vector<TokenId> ends;  // end tokens; the first one fills what is left of a canvas
  int width = 0;              // tokens from here on never stand in an output
  int candidates = 32;        // tokens that each state takes at a mask
  int states = 64;            // that are kept behind a position

  bool IsEnd(TokenId token) const;
  // nullptr and not ended: the token may not follow.
  CanvasPlace Next(const CanvasPlace& place, TokenId token) const;
};

// A mask of one state or of many: equal masks are one.
struct CanvasMask {
  static constexpr int kFew = 4096;
  std::shared_ptr<const Mask> mask;
  std::vector<TokenId> tokens;  // where there are few
  bool few() const { return mask->count() <= kFew; }
};

class CanvasStates {
 public:
  using Id = int32_t;
  static constexpr Id kRefused = -1, kEnded = 0;

  explicit CanvasStates(const CanvasRules& rules);

  // Lets all go where that has become much, or the grammar was rebuilt. Returns the place in the
  // grammar as it is now.
  CanvasPlace BeginCall(const CanvasPlace& root);
  // The same in the middle of a call. true: numbers are others now.
  bool MakeSpace(CanvasPlace& root);
  Id Of(const CanvasPlace& place);
  // The place with this number. It is not that of a blank or of kEnded.
  CanvasPlace PlaceOf(Id id) const;
  Id After(Id id, TokenId token);
  // The same place, where the rest of the gap is blank.
  Id Blank(Id id, int gap);
  int blank(Id id) const { return states_[static_cast<size_t>(id)].blank; }
  // Good until BeginCall. REQUIRES: not kEnded.
  const CanvasMask& MaskOf(Id id);
  bool knows_mask(Id id) const;
  // Steps are cheap, and they take what the mask allows.
  bool tries_steps(Id id) const;
  // The shortest text from there to an end has at most so many tokens.
  bool Completes(Id id, int most);
  // Another text has, which a search among tokens finds. REQUIRES: Completes was asked.
  bool CompletesBySearch(Id id, int most);

  int64_t looks() const { return looks_; }  // at masks that were not known
  size_t size() const { return states_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct State {
    std::shared_ptr<const LoopConstraint> at = nullptr;  // nullptr: ended
    int blank = -1;
    Id base = kRefused;  // of a blank: the same without it
    const CanvasMask* mask = nullptr;
    std::optional<int> shortest = std::nullopt;  // -1: none is known
    // Of the budgets that were searched for: the least one that was enough, and the largest that
    // was not.
    int enough = std::numeric_limits<int>::max(), short_of = -1;
    FlatMap<Id> steps = {};
  };
  Id Find(TokenId token, const std::shared_ptr<const LoopConstraint>& at);
  Id Add(uint64_t key, State state);
  void Clear();
  bool crowded() const;

  const CanvasRules rules_;
  std::vector<State> states_;
  FlatMap<Id> ids_;                                 // by key
  std::vector<std::unique_ptr<CanvasMask>> masks_;  // that differ
  FlatMap<int32_t> mask_ids_;                       // by address
  int64_t looks_ = 0;
  size_t bytes_ = 0;  // about
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_CANVAS_STATES_H_
