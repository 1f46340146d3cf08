// DrawPlan: how many independent drafts a place of a tree gets under the rule "spectr", and how the
// nodes behind them are shared.
//
//   DrawPlan plan;
//   plan.Count(2, true);                  // a place had two draws, and one of them was taken
//   const DrawPlan::Choice& at = plan.At(16);
//   at.draws, at.behind[0]                // of 16 nodes behind a place
//
// A second draw makes it likelier that some draw is taken, but less likely that it is the first:
// the rule must give each of them its part of the law. So a second draw costs what stands behind
// the first one, and pays in wide trees only.
//
// The choice must not depend on what was drawn, or the law of the output would be another one. So
// it is made from counts, depth and the number of nodes alone, before a draw is looked at.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFY_DRAW_PLAN_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFY_DRAW_PLAN_H_

#include <array>
#include <cstddef>
#include <vector>

namespace pawl {

// One thread at a time.
class DrawPlan {
 public:
  static constexpr int kMostDraws = 4;
  static constexpr int kMostNodes = 63;
  struct Choice {
    int draws = 0;
    std::array<int, kMostDraws> behind = {};  // nodes behind each of them
    double expected = 0;                      // tokens, in all
  };

  // What came of a place with so many draws.
  void Count(int draws, bool taken);
  // That one of so many draws is taken, and that it is the nth.
  double Taken(int draws) const;
  double TakenAt(int draws, int nth) const;
  // `nodes`: behind the place, its draws included. 0 nodes have no draws.
  const Choice& At(int nodes);

 private:
  void Make();

  std::array<double, kMostDraws + 1> asked_ = {}, missed_ = {};
  std::vector<Choice> choices_;  // by nodes
  std::array<double, kMostDraws + 1> made_for_ = {};
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFY_DRAW_PLAN_H_
