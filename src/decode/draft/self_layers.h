// Which layers of a model draft for it (the source "self"), as functions of numbers.
#ifndef PAWL_SRC_DECODE_DRAFT_SELF_LAYERS_H_
#define PAWL_SRC_DECODE_DRAFT_SELF_LAYERS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

struct SelfDrafts {
  enum class Kind : unsigned char { kDel, kUnified, kExit, kSkipDecode, kClasp };
  Kind kind = Kind::kDel;
  double share = 0;  // kUnified: of the layers, that are kept
  int number = 0;    // kExit: layers; kClasp: layers that are left out
};
// What stands behind "self:". `layers`: of the model; 0: unknown. Errors: kInvalid, place "draft".
Result<SelfDrafts> ParseSelfDrafts(std::string_view setting, int layers);

// The first `count` layers.
std::vector<int> FirstLayers(int count);
// The first and the last layer, and others evenly between them (unified skipping).
std::vector<int> EvenLayers(int layers, double share);
// SkipDecode: the budget of layers falls from all of them at position 0 to a quarter at `last`. The
// first layer and the last ones are kept.
std::vector<int> BudgetLayers(int layers, int position, int last);

// DEL: how often an exit has drawn the token that came.
struct ExitCount {
  double layers = 0;  // that run; or what a call takes, in times of a layer of a whole call
  double right = 0, asked = 0;
};
struct ExitChoice {
  size_t exit = 0;
  int drafts = 0;  // 0: no draft pays
};
// The most expected tokens for the layers that run: with an exit that is right with probability a,
// d drafts and a model of L layers (1 - a^(d+1)) / (1 - a) tokens for d * layers + L. Of equal ones
// the fewer drafts, then the first exit.
ExitChoice ChooseExit(std::span<const ExitCount> exits, int layers, int most_drafts);

// CLaSp: the layers that are kept of `layers` when `left_out` are left out, such that the state of
// a token stays near to that of the whole model. D[i][j] is the state behind i layers of which j
// were left out: of leaving out layer i - 1 (D[i-1][j-1]) and running it (on D[i-1][j]) the one
// whose cosine to the whole model's state is larger; of equal ones the layer runs. `run` runs a
// layer on states of `width` floats, in place. `whole`: [layers + 1][width], the states of the
// whole model behind so many layers. Errors: those of `run`.
using RunOneLayer = std::function<Status(int layer, std::span<float> states)>;
Result<std::vector<int>> ClaspLayers(std::span<const float> whole, int layers, int width,
                                     int left_out, const RunOneLayer& run);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_SELF_LAYERS_H_
