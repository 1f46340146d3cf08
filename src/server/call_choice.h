// Call::Choice: one output of a call, between the thread of the engine and that of the connection.
#ifndef PAWL_SRC_SERVER_CALL_CHOICE_H_
#define PAWL_SRC_SERVER_CALL_CHOICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/decode/constraint.h"
#include "src/server/call.h"

namespace pawl::server {

struct Call::Choice {
  int index = 0;
  size_t prompt = 0;  // of prompts
  std::vector<TokenId> prompt_tokens;
  std::optional<Error> refused;      // before it began
  std::shared_ptr<CodeOutput> code;  // of code to complete
  std::string note;                  // on its thoughts, before it began
  AsyncEngine::Id id = 0;
  bool code_goes_on = true;  // of the engine's thread
  // Of outputs that come together: what makes records of their texts, or nullptr.
  std::shared_ptr<const LoopConstraint> records;

  // Under mutex_.
  std::string text;
  size_t safe = 0;                // bytes that may be handed out
  std::vector<uint32_t> lengths;  // of the tokens' bytes
  std::vector<TokenEntry> entries;
  bool done = false, stopped = false;
  bool absent = false;  // as ChoiceOut::absent
  std::string stop_string;
  std::optional<Result<Generation>> output;
  std::vector<float> embedding;

  // Of the connection's thread.
  std::optional<OutputParser> parser;
  size_t taken = 0, tokens_taken = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_CALL_CHOICE_H_
