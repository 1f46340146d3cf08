// The canvas of a text with gaps (DiffusionOptions::gaps): masks, texts that stand behind them, and
// one output that fits.
#ifndef PAWL_SRC_DECODE_DIFFUSION_GAP_CANVAS_H_
#define PAWL_SRC_DECODE_DIFFUSION_GAP_CANVAS_H_

#include "pawl/generation.h"
#include "pawl/matcher.h"
#include "pawl/result.h"
#include "src/decode/diffusion/mask_filler.h"

namespace pawl {

// Fills in canvas, gaps, witness and length, and moves the constraint behind the prefix. `most`:
// positions that the canvas can have. Errors: kUnsupported without a grammar, kUnsatisfiable and
// kLimit, whose message names the gap; the places are members of "diffusion".
Status LayOutGaps(const GenerateOptions& options, const Encoder& encode, int most, FillTask& task);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_GAP_CANVAS_H_
