// A drafter that guesses what stood in the prompt or in the output before: for servers of tests.
#ifndef PAWL_TESTS_SERVER_DRAFTS_OF_PROMPT_H_
#define PAWL_TESTS_SERVER_DRAFTS_OF_PROMPT_H_

#include <memory>
#include <string>
#include <utility>

#include "src/decode/draft/drafter.h"
#include "src/server/served_model.h"

namespace pawl::server {

inline Result<std::shared_ptr<Drafter>> DraftsOf(const char* names, const ServedModel& model,
                                                 const std::string& history = "") {
  DraftSetting setting;
  setting.vocabulary = model.vocabulary();
  setting.encode = model.loaded().encoder();
  setting.options.sources = names;
  setting.options.history_file = history;
  setting.options.always = true;  // whatever it costs on this machine
  setting.vocabulary_size = model.info().vocabulary_size;
  auto sources = ParseDraftSources(setting.options);
  if (!sources.ok()) return sources.error();
  auto made = Drafter::Make(std::move(setting), *sources);
  if (!made.ok()) return made.error();
  return std::shared_ptr<Drafter>(*std::move(made));
}
inline Result<std::shared_ptr<Drafter>> DraftsOfPrompt(const ServedModel& model) {
  return DraftsOf("suffix", model);
}

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_DRAFTS_OF_PROMPT_H_
