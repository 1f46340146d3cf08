// `pawl check`: a check of code as a program. It reads questions from standard input and writes
// verdicts, as docs/sampling.md has it. So programs without the parsers of the command can use its
// checks: the libraries for C++ and C, and the Python package, start it for syntax and monitor.
#include <memory>
#include <string>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/decode/sampling/names.h"

#ifdef PAWL_HAVE_MONITORS
#include "src/completion/code_check.h"
#endif

namespace pawl::cli {
namespace {

constexpr const char* kCheck = "check";

#ifdef PAWL_HAVE_MONITORS
// The answer to a line. Errors: a line that is no question.
Result<std::string> AnswerOf(const Check& check, const std::string& line) {
  const Result<json::Value> question = json::Parse(line);
  if (!question.ok()) return question.error();
  const json::Value* const id = question->Find("id");
  const json::Value* const text = question->Find("text");
  const json::Value* const ended = question->Find("ended");
  if (id == nullptr || text == nullptr || text->type != json::Type::kString) {
    return Error{ErrorCode::kInvalid, "must have an \"id\" and a text \"text\"", "#"};
  }
  std::string why;
  const Result<Verdict> verdict =
      check.Judge({.text = text->text,
                   .tokens = {},
                   .ended = ended != nullptr && ended->type == json::Type::kTrue,
                   .why = &why});
  if (!verdict.ok()) return verdict.error();
  std::string answer =
      "{\"id\":" + json::Dump(*id) + ",\"verdict\":" + json::Quote(NameOf(*verdict));
  if (!why.empty()) answer += ",\"error\":" + json::Quote(why);
  return answer + "}\n";
}

int RunCheck(const std::string& spec) {
  const auto check = completion::MakeCodeCheck(spec);
  if (!check.ok()) return Fail(kCheck, check.error());
  Result<LineReader> lines = LineReader::Open("-");
  if (!lines.ok()) return Fail(kCheck, lines.error());
  for (int number = 1;; ++number) {
    const Result<std::optional<std::string>> line = lines->Next();
    if (!line.ok()) return Fail(kCheck, line.error());
    if (!*line) return kExitOk;
    const Result<std::string> answer = AnswerOf(**check, **line);
    if (!answer.ok()) return Fail(kCheck, InFile("line " + std::to_string(number), answer.error()));
    Print(*answer);
    if (Status status = FlushOutput(); !status.ok()) return Fail(kCheck, status.error());
  }
}
#else
int RunCheck(const std::string& spec) {
  return Fail(kCheck,
              Error{ErrorCode::kUnsupported, "this command was built without parsers", spec});
}
#endif

}  // namespace

void AddCheck(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kCheck, "Answer questions about code: a line of JSON for each line of standard input");
  const auto spec = std::make_shared<std::string>();
  command->add_option("spec", *spec, "syntax:LANGUAGE or monitor:LANGUAGE")
      ->required()
      ->type_name("SPEC");
  command->footer(
      "Exit codes: 0 done; 2 bad input or usage.\n"
      "Example:\n  echo '{\"id\":1,\"text\":\"x = (\",\"ended\":true}' | pawl check syntax:python");
  command->callback([spec, &action] { action = [spec] { return RunCheck(*spec); }; });
}

}  // namespace pawl::cli
