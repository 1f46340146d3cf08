// Code to complete: /v1/fim/completions, /infill and prompts with the marks of a gap, under the
// monitors of the language (src/completion). Without monitors, code_completion_off.cc takes the
// place of code_completion.cc: no request is one for code.
#ifndef PAWL_SRC_SERVER_CODE_COMPLETION_H_
#define PAWL_SRC_SERVER_CODE_COMPLETION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"
#include "src/base/json_reader.h"
#include "src/decode/constraint.h"

namespace pawl::server {

// What the operator says of the code that clients complete.
struct CodeOptions {
  std::string repo;                   // the folder that the files belong to
  std::vector<std::string> monitors;  // empty: all
  std::string lsp_server;             // command line; empty: none
  double lsp_seconds = 0.5;
  std::string cache;  // the folder for indexes of repositories; empty: in memory
  std::string java_home;
};

// What a request says of it.
struct CodeSpec {
  std::string language;
  std::string file;
  std::vector<std::string> monitors;
  bool use_monitors = true;
  bool has_grammar = false;
};

// A request with its plan; defined where monitors are built in.
struct PlannedCode;

// What a model writes for one gap. Thread safety: one call at a time.
class CodeOutput {
 public:
  explicit CodeOutput(std::shared_ptr<const PlannedCode> planned);
  ~CodeOutput();
  // Under the monitors and, where there is one, the grammar.
  std::shared_ptr<const Constraint> ConstraintWith(std::shared_ptr<const Constraint> grammar);
  // Of complete outputs: with what they would leave here the file parses.
  std::shared_ptr<const Check> ParseCheck() const;
  // The model repeats so many tokens at most that stand in the text already.
  int more_tokens() const;
  // Bytes of a token. false: the completion is over.
  bool Add(std::string_view bytes);
  std::string_view added() const;  // what the last Add gave
  bool ended() const;
  void Finish();
  const std::string& text() const;
  bool Parses() const;  // after Finish
  // Questions about this output that the monitors gave up.
  uint64_t given_up() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

class CodePlan {
 public:
  explicit CodePlan(std::shared_ptr<const PlannedCode> planned) : planned_(std::move(planned)) {}
  const std::string& prefix() const;  // what the model reads
  std::shared_ptr<CodeOutput> NewOutput() const { return std::make_shared<CodeOutput>(planned_); }

 private:
  std::shared_ptr<const PlannedCode> planned_;
};

// Thread-safe.
class CodePlans {
 public:
  // nullptr where monitors are not built in.
  static std::unique_ptr<CodePlans> Make(std::shared_ptr<const Vocabulary> vocabulary,
                                         const CodeOptions& options);
  ~CodePlans();
  // Errors: kInvalid; the place is a JSON Pointer.
  Result<CodePlan> Plan(const CodeSpec& spec, std::string prefix, std::string suffix);

 private:
  struct Parts;
  explicit CodePlans(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The members `language`, `filename` and `monitors` (a list of names, or false). nullopt: the
// language is not known by them. Errors go to `in`.
std::optional<CodeSpec> ReadCode(const JsonReader& in);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_CODE_COMPLETION_H_
