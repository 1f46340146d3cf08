// OutputPlan: one grammar for all that a request asks of the output - thinking, tool calls, the
// answer's own constraint - and how to take the output apart again.
//
//   ModelTraits traits = TraitsOf(chat_template);
//   Result<OutputPlan> plan = MakePlan(constraints, traits, ThinkingStart::kMay, {});
//   plan->grammar            // to be compiled; kNone: nothing is asked
//   OutputParser parser(*plan);
//
// A pure function: the same request and model give the same plan.
#ifndef PAWL_SRC_ENGINE_OUTPUT_PLAN_H_
#define PAWL_SRC_ENGINE_OUTPUT_PLAN_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/tags/formats/chat_format.h"
#include "pawl/result.h"
#include "src/engine/output_constraint.h"

namespace pawl {

struct ModelTraits {
  // How calls look (grammar/tags/formats/); nullptr where the chat template shows no form that is
  // known.
  const ChatFormat* format = nullptr;
  // The marks around what the model thinks; empty where it does not.
  std::string think_open, think_close;
};

// What a chat template gives away: how calls look and how thinking is marked. FormatOf alone says
// which format the template has.
ModelTraits TraitsOf(std::string_view chat_template);
// The same where the format is known.
ModelTraits TraitsOf(std::string_view chat_template, const ChatFormat* format);
// Of a model without a chat template.
ModelTraits PlainTraits();

// Where the output begins, by the end of the prompt.
enum class ThinkingStart {
  kOff,   // nothing is thought: the template has closed the block, or there is none
  kMay,   // the model opens the block, or does not
  kOpen,  // the prompt has opened it
};
ThinkingStart ThinkingStartOf(std::string_view prompt, const ModelTraits& traits);

struct CallSyntax {
  enum class Body {
    kArguments,  // as the format writes them
    kInput,      // {"input": "..."}, of which the text is meant
    kRaw,        // the text itself, up to `raw_close`
  };
  size_t tool = 0;  // index into RequestConstraints::tools
  Body body = Body::kArguments;
  std::vector<std::vector<FormatPiece>> opens, closes;
  std::string raw_close;
};

struct OutputPlan {
  ConstraintSpec grammar;
  const ChatFormat* format = nullptr;
  ThinkingStart thinking = ThinkingStart::kOff;
  std::string think_open, think_close;
  bool free_text = false;  // in place of thoughts: what stands behind think_close is the answer
  // The whole answer is the body of a call: nothing stands around it.
  bool direct = false;
  std::vector<CallSyntax> calls;
  // Calls are asked for, but no form of them is known: the output is read as text.
  bool no_form_of_calls = false;
  std::vector<std::string> names;       // of the tools
  std::vector<bool> custom;             // by tool
  std::vector<json::Value> parameters;  // schemas by tool, where arguments are no JSON
  std::string behind;                   // first characters of what may stand behind arguments

  bool marked() const { return format != nullptr && format->marked() && !direct; }
  // Whether a special token of this name is part of what the parser reads.
  bool IsMark(std::string_view name) const;
};

struct PlanOptions {
  int thinking_tokens = -1;  // budget of the block; -1: none
};

// Errors: kUnsupported where a call is required of a model whose form of calls is not known.
Result<OutputPlan> MakePlan(const RequestConstraints& asked, const ModelTraits& traits,
                            ThinkingStart thinking, const PlanOptions& options = {});

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OUTPUT_PLAN_H_
