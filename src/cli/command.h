// What the subcommands of `pawl` share: exit codes, messages, reading of input.
#ifndef PAWL_SRC_CLI_COMMAND_H_
#define PAWL_SRC_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/result.h"
#include "src/base/file.h"

namespace pawl::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitSomeFailed = 1,  // some of several inputs were refused
  kExitBadInput = 2,    // usage, files, schemas, models, budgets
  kExitBug = 3,         // an error of kind kInternal
};

// What a parsed subcommand does; returns the exit code.
using Action = std::function<int()>;

// Each adds its subcommand and sets `action` when that is the one chosen. One .cc file per
// subcommand.
void AddExtract(CLI::App& app, Action& action);
void AddEval(CLI::App& app, Action& action);
void AddGenerate(CLI::App& app, Action& action);
void AddCheck(CLI::App& app, Action& action);
void AddValidate(CLI::App& app, Action& action);
void AddMask(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddBenchDecode(CLI::App& bench, Action& action);
void AddBenchDraft(CLI::App& bench, Action& action);
void AddMaskbench(CLI::App& app, Action& action);
void AddTokenize(CLI::App& app, Action& action);
void AddInfo(CLI::App& app, Action& action);
void AddModels(CLI::App& app, Action& action);
void AddPull(CLI::App& app, Action& action);
void AddQuantize(CLI::App& app, Action& action);
void AddSample(CLI::App& app, Action& action);
void AddScore(CLI::App& app, Action& action);
void AddSchema(CLI::App& app, Action& action);
void AddGrammar(CLI::App& app, Action& action);
void AddSchemaTest(CLI::App& app, Action& action);
void AddServe(CLI::App& app, Action& action);
void AddMonitor(CLI::App& app, Action& action);
void AddComplete(CLI::App& app, Action& action);
void AddIndex(CLI::App& app, Action& action);
void AddLsp(CLI::App& app, Action& action);
void AddTune(CLI::App& app, Action& action);

// Prints "pawl COMMAND: place: message" on stderr ("pawl: " without a command) and returns the exit
// code for it.
int Fail(std::string_view command, const Error& error);
// Prints "pawl COMMAND: text" on stderr.
void Note(std::string_view command, std::string_view text);

// What is wrong with the command line, in the words of this command; one line.
std::string UsageMessage(const CLI::ParseError& error);

// The place of an error of the engine as an option: "max_tokens" is "--max-tokens", "prompt" is
// `prompt_source`, "grammar" is `grammar_source`.
Error AtOption(Error error, const std::string& prompt_source, const std::string& grammar_source);

// The file, or standard input when `path` is "-" (`path` names it in errors otherwise). kLimit when
// it is larger.
Result<std::string> ReadInput(const std::string& path, size_t max_bytes = kMaxFileBytes);

// Lines of a file, or of standard input when the path is "-", as they come.
class LineReader {
 public:
  // Errors: kIo.
  static Result<LineReader> Open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();
  // The next line without its end; nullopt after the last. Errors: kIo; kLimit for a line of more
  // than kMaxFileBytes.
  Result<std::optional<std::string>> Next();
  // Whether Next has an answer without waiting for more input. Errors: kIo.
  Result<bool> Ready();

 private:
  // Reads what there is, waiting for at least a byte. Errors: kIo.
  Status Read();
  LineReader(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_;
  std::string name_;
  std::string buffer_;  // read, but not handed out
  bool at_end_ = false;
};

// Writes to stdout; a failure is remembered and found by FlushOutput.
void Print(std::string_view text);
// Errors: kIo when not everything could be written.
Status FlushOutput();

// Bytes for a human: JSON quoting, bytes that are not UTF-8 as \xHH.
std::string Readable(std::string_view bytes);

// Folder of the running executable, empty when unknown.
std::string ExecutableFolder();

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_COMMAND_H_
