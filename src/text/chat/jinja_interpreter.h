// Runs a chat template's program. Internal to src/text/chat.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_INTERPRETER_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_INTERPRETER_H_

#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/text/chat/jinja_program.h"

namespace pawl::jinja {

struct RunOptions {
  size_t max_output = size_t{64} << 20;  // bytes
  std::optional<std::tm> now;            // of strftime_now
};

// What the program writes. `variables` live in `heap`. Errors: kInvalid and kLimit, the place
// "line:column" of what failed.
Result<MarkedText> Run(const Program& program, Heap& heap,
                       const std::vector<std::pair<std::string, Value>>& variables,
                       const RunOptions& options);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_INTERPRETER_H_
