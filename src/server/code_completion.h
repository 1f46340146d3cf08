// Code to complete: /v1/fim/completions, /infill and prompts with the marks of a gap, under the
// monitors of the language (plugins/monitors). Where those are not built in there are none.
#ifndef PAWL_SRC_SERVER_CODE_COMPLETION_H_
#define PAWL_SRC_SERVER_CODE_COMPLETION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
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
};

// What a request says of it.
struct CodeSpec {
  std::string language;
  std::string file;
  std::vector<std::string> monitors;
  bool use_monitors = true;
  bool has_grammar = false;
};

// What a model writes for one gap.
class CodeOutput {
 public:
  virtual ~CodeOutput() = default;
  // Under the monitors and, where there is one, the grammar.
  virtual std::shared_ptr<const Constraint> ConstraintWith(
      std::shared_ptr<const Constraint> grammar) = 0;
  // The model repeats so many tokens at most that stand in the text already.
  virtual int more_tokens() const = 0;
  // Bytes of a token. false: the completion is over.
  virtual bool Add(std::string_view bytes) = 0;
  virtual std::string_view added() const = 0;  // what the last Add gave
  virtual bool ended() const = 0;
  virtual void Finish() = 0;
  virtual const std::string& text() const = 0;
  virtual bool Parses() const = 0;  // after Finish
  // Questions about this output that the monitors gave up.
  virtual uint64_t given_up() const = 0;
};

class CodePlan {
 public:
  virtual ~CodePlan() = default;
  virtual const std::string& prefix() const = 0;  // what the model reads
  virtual std::shared_ptr<CodeOutput> NewOutput() const = 0;
};

// Thread-safe.
class CodePlans {
 public:
  virtual ~CodePlans() = default;
  // Errors: kInvalid; the place is a JSON Pointer.
  virtual Result<std::shared_ptr<const CodePlan>> Plan(const CodeSpec& spec, std::string prefix,
                                                       std::string suffix) = 0;
};
// nullptr where monitors are not built in.
std::unique_ptr<CodePlans> MakeCodePlans(std::shared_ptr<const Vocabulary> vocabulary,
                                         const CodeOptions& options);

// The members `language`, `filename` and `monitors` (a list of names, or false). nullopt: the
// language is not known by them. Errors go to `in`.
std::optional<CodeSpec> ReadCode(const JsonReader& in);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_CODE_COMPLETION_H_
