// What the C functions of models share: the handle of an engine, and how prompts and choices are
// read.
#ifndef PAWL_SRC_CAPI_ENGINE_HANDLES_H_
#define PAWL_SRC_CAPI_ENGINE_HANDLES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "src/capi/handles.h"
#include "src/decode/sampling/names.h"
#include "src/engine/async_engine.h"
#include "src/engine/option_names.h"

struct pawl_engine {
  std::shared_ptr<pawl::AsyncEngine> engine;
  std::shared_ptr<const pawl::capi::VocabularyData> vocabulary;
};

struct pawl_check {
  std::shared_ptr<const pawl::Check> check;
};

struct pawl_critic {
  std::shared_ptr<const pawl::Critic> critic;
};

namespace pawl::capi {

// A number of the caller's as a choice of ours.
template <typename Choice>
pawl_status Choose(int32_t given, const char* name, Choice& field, pawl_error** error) {
  if (given < 0 || static_cast<size_t>(given) >= OptionNames(Choice()).size()) {
    return BadArgument(error, name, "is no such choice: " + std::to_string(given));
  }
  field = static_cast<Choice>(given);
  return PAWL_OK;
}

pawl_status ReadPrompt(const pawl_prompt* given, EngineRequest& request, pawl_error** error);

}  // namespace pawl::capi

#endif  // PAWL_SRC_CAPI_ENGINE_HANDLES_H_
