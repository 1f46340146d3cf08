// --thinking, --reasoning-marks and --reasoning: what a model may think before it answers, and
// where that goes.
#ifndef PAWL_SRC_CLI_THINKING_FLAGS_H_
#define PAWL_SRC_CLI_THINKING_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/engine/loaded_model.h"

namespace pawl::cli {

inline constexpr const char* kFreeFirstHelp =
    "First free text of at most so many tokens, then the output, which the model writes with that "
    "text before it (docs/search.md); 0: none";

struct ThinkingFlags {
  std::string thinking;            // empty: not given
  std::vector<std::string> marks;  // none, or OPEN and CLOSE
  std::string file;                // empty: the thoughts are not written

  // All of them. `standard`: what is done without --thinking.
  void AddTo(CLI::App* command, const std::string& standard);
  // One of them alone.
  void AddThinkingTo(CLI::App* command, const std::string& standard);
  void AddMarksTo(CLI::App* command);
  void AddFileTo(CLI::App* command);
  bool given() const { return !thinking.empty() || !marks.empty() || !file.empty(); }
  // Errors name the option.
  Status Check() const;
  // REQUIRES: Check() is ok.
  Thinking asked() const;
  ChatOverride MarksAlone() const;
};

// Says so where --thinking was given and changes nothing.
void NoteThinking(const std::string& command, const ThinkingFlags& flags, const ThoughtPlan& plan);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_THINKING_FLAGS_H_
