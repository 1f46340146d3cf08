// Options of an output of a model that fills masks: what they mean, and which have no meaning.
#ifndef PAWL_SRC_DECODE_DIFFUSION_CANVAS_OPTIONS_H_
#define PAWL_SRC_DECODE_DIFFUSION_CANVAS_OPTIONS_H_

#include "pawl/generation.h"
#include "pawl/result.h"
#include "src/decode/diffusion/canvas_cache.h"
#include "src/decode/diffusion/fill_schedule.h"
#include "src/model/model.h"

namespace pawl {

// Errors: kUnsupported with the first option as place that says something about one token after
// the other; kInvalid with "diffusion.NAME" and others for values out of their range.
Status CheckCanvasOptions(const GenerateOptions& options, const MaskFilling& filling);

// REQUIRES, of all: CheckCanvasOptions is ok. `length`: of the canvas.
FillOptions FillOptionsOf(const GenerateOptions& options, const MaskFilling& filling, int length);
CanvasCache CacheOf(const DiffusionOptions& options, int prompt, bool shifted);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_CANVAS_OPTIONS_H_
