// The options of thoughts. What they mean is src/engine/thinking.h's affair.
#include "src/cli/thinking_flags.h"

#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/options.h"

namespace pawl::cli {

void ThinkingFlags::AddTo(CLI::App* command, const std::string& standard) {
  AddThinkingTo(command, standard);
  AddMarksTo(command);
  AddFileTo(command);
}

void ThinkingFlags::AddThinkingTo(CLI::App* command, const std::string& standard) {
  command
      ->add_option("--thinking", thinking,
                   "What the model may think before it answers: off, auto (as it wants), or a "
                   "number of tokens (default: " +
                       standard + ")")
      ->check(NotEmpty)
      ->type_name("off|auto|N");
}

void ThinkingFlags::AddFileTo(CLI::App* command) {
  command->add_option("--reasoning", file, "Write what the model thought to this file")
      ->check(NotEmpty)
      ->type_name("FILE");
}

void ThinkingFlags::AddMarksTo(CLI::App* command) {
  command
      ->add_option("--reasoning-marks", marks,
                   "The marks around what the model thinks (default: by its chat template)")
      ->expected(2)
      ->check(NotEmpty)
      ->type_name("OPEN CLOSE");
}

Status ThinkingFlags::Check() const {
  if (!thinking.empty()) {
    if (const Result<Thinking> read = ParseThinking(thinking); !read.ok()) {
      return InFile("--thinking", read.error());
    }
  }
  if (!file.empty()) {
    if (Status status = CheckWritable(file); !status.ok()) return status;
  }
  return {};
}

Thinking ThinkingFlags::asked() const {
  return thinking.empty() ? Thinking() : *ParseThinking(thinking);
}

ChatOverride ThinkingFlags::MarksAlone() const {
  ChatOverride out;
  if (marks.empty()) return out;
  out.think_open = marks[0];
  out.think_close = marks[1];
  return out;
}

void NoteThinking(const std::string& command, const ThinkingFlags& flags, const ThoughtPlan& plan) {
  if (flags.thinking.empty() || !plan.changes_nothing) return;
  Note(command,
       "note: --thinking changes nothing: the chat template marks no thoughts, or closes them "
       "(--reasoning-marks names marks)");
}

}  // namespace pawl::cli
