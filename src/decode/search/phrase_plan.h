// PhrasePlan: whether an output that has all forced phrases can still follow a hypothesis, found
// without the model, and the tokens of one that does.
//
//   PhrasePlan plan(run, phrases, 20000);
//   auto path = plan.Find(run.at(h), state, phrases.count());
//   if (path && path->met == phrases.count()) ...           // path->tokens have all of them
#ifndef PAWL_SRC_DECODE_SEARCH_PHRASE_PLAN_H_
#define PAWL_SRC_DECODE_SEARCH_PHRASE_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/decode/search/phrases.h"
#include "src/decode/search/search_run.h"

namespace pawl {

class PhrasePlan {
 public:
  // `effort`: tokens that all searches together may try.
  PhrasePlan(const SearchRun& run, ForcedPhrases& phrases, int64_t effort);

  struct Path {
    std::vector<TokenId> tokens;  // until the phrases are met; the output can be completed behind
    size_t met = 0;
  };
  // A path on which `goal` phrases are met; if there is none, one with as many as were found.
  // nullopt: not even one with more than the hypothesis has, or the effort is spent.
  std::optional<Path> Find(const Hypothesis& from, int32_t state, size_t goal);
  bool spent() const { return effort_ <= 0; }

 private:
  struct Place {
    std::shared_ptr<const LoopConstraint> at;
    int32_t state = 0;
    int32_t length = 0;  // tokens of the output so far
    int32_t parent = -1;
    std::vector<TokenId> tokens;  // behind the parent
  };
  enum class Steps : uint8_t {
    kPhrases,  // whole phrases in strings of JSON, and the path to the end
    kNarrow,   // tokens that bring a phrase on, and the path to the end
    kWide,
  };
  std::vector<TokenId> NextTokens(const Place& place, Steps steps);
  // The place behind a text; nullopt: the constraint does not allow it, or forces another one.
  std::optional<Place> Behind(const Place& place, size_t number, std::string text);
  std::optional<Path> Search(const Hypothesis& from, int32_t state, size_t goal, Steps steps,
                             int64_t effort);
  bool CanEnd(const Place& place) const;

  const SearchRun& run_;
  ForcedPhrases& phrases_;
  int64_t effort_;
  std::vector<TokenId> bytes_;  // tokens of one byte
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_PHRASE_PLAN_H_
