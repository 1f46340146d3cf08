// Adapters as callers name them: DIR, or NAME=DIR.
#ifndef PAWL_SRC_ENGINE_LORA_NAMES_H_
#define PAWL_SRC_ENGINE_LORA_NAMES_H_

#include <string>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"

namespace pawl {

// "legal=adapters/legal". Without a name the adapter has that of its folder; what names a folder as
// a whole is its path. Errors: kInvalid with "lora" as place for an empty name or path.
Result<LoraAdapter> ParseLoraAdapter(const std::string& given);
// Of several.
Result<std::vector<LoraAdapter>> ParseLoraAdapters(const std::vector<std::string>& given);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_LORA_NAMES_H_
