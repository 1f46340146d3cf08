// OutputPlan: one grammar for all that a request asks of the output - thinking, tool calls, the
// answer's own constraint - and how to take the output apart again.
//
//   ModelTraits traits{.syntax = ToolSyntax::kHermes, .think_open = "<think>", ...};
//   Result<OutputPlan> plan = MakePlan(constraints, traits, ThinkingStart::kMay, {});
//   plan->grammar            // to be compiled; kNone: nothing is asked
//   OutputParser parser(*plan);
//
// A pure function: the same request and model give the same plan.
#ifndef PAWL_SRC_ENGINE_OUTPUT_PLAN_H_
#define PAWL_SRC_ENGINE_OUTPUT_PLAN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/engine/output_constraint.h"

namespace pawl {

// How a model writes a call of a tool; see docs/structural_tags.md.
enum class ToolSyntax {
  kPlain,  // as Llama 3; without a wrapper where one call is all that is asked for
  kLlama3,
  kHermes,
  kQwenXml,
  kDeepSeekR1,
  kDeepSeekV31,
  kMistral,
};

// "plain", "llama3", "hermes", ...: the names of `pawl serve --tool-syntax`.
std::optional<ToolSyntax> ToolSyntaxOf(std::string_view name);

struct ModelTraits {
  ToolSyntax syntax = ToolSyntax::kPlain;
  // The marks around what the model thinks; empty where it does not.
  std::string think_open, think_close;
};

// What a chat template gives away: how calls look and how thinking is marked.
ModelTraits TraitsOf(std::string_view chat_template);

// Where the output begins, by the end of the prompt.
enum class ThinkingStart {
  kOff,   // nothing is thought: the template has closed the block, or there is none
  kMay,   // the model opens the block, or does not
  kOpen,  // the prompt has opened it
};
ThinkingStart ThinkingStartOf(std::string_view prompt, const ModelTraits& traits);

struct CallSyntax {
  enum class Body {
    kJson,        // arguments as JSON
    kParameters,  // <parameter=KEY>VALUE</parameter>, to become JSON
    kInput,       // {"input": "..."}, of which the text is meant
    kRaw,         // the text itself, up to `end`
  };
  size_t tool = 0;  // index into RequestConstraints::tools
  Body body = Body::kJson;
  std::string begin, end;
};

struct OutputPlan {
  ConstraintSpec grammar;
  ThinkingStart thinking = ThinkingStart::kOff;
  std::string think_open, think_close;
  // The whole answer is the body of a call: nothing stands around it.
  bool direct = false;
  std::vector<CallSyntax> calls;
  // Of free text: what a call, or the list of calls, begins with.
  std::vector<std::string> triggers;
  // Calls stand in a list that ends with this; empty: each for itself.
  std::string list_end;
  bool in_list = false;                 // the trigger begins a list
  std::vector<std::string> names;       // of the tools
  std::vector<bool> custom;             // by tool
  std::vector<json::Value> parameters;  // schemas by tool, where calls have parameters
};

struct PlanOptions {
  int thinking_tokens = -1;  // budget of the block; -1: none
};

Result<OutputPlan> MakePlan(const RequestConstraints& asked, const ModelTraits& traits,
                            ThinkingStart thinking, const PlanOptions& options = {});

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OUTPUT_PLAN_H_
