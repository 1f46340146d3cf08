// The general instruction: tools for a model whose chat template shows none.
//
//   ToolInstruction told = InstructionOf(asked, plan);
//   told.text                                  // for a system message
//   WriteCallsAsText(told, messages);          // calls of the conversation, in the same form
//   AddInstruction(told.text, InstructionPlace::kSystem, messages);
//
// Each tool has a line of description and its call as a signature: the call itself, with the type
// in place of each value. `with_schemas` adds the schema where a signature does not say all of it.
// No tool is left out and none is cut.
#ifndef PAWL_SRC_SERVER_TOOL_INSTRUCTION_H_
#define PAWL_SRC_SERVER_TOOL_INSTRUCTION_H_

#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/engine/output_constraint.h"
#include "src/engine/output_plan.h"

namespace pawl::server {

struct ToolForm {
  std::string name, begin, end;
};

struct ToolInstruction {
  std::string text;
  std::string with_schemas;  // the same as `text` where signatures say all
  std::vector<ToolForm> forms;
  bool empty() const { return text.empty(); }
};

// Of the tools that may be called. `plan`: of the request, with the form of each call.
ToolInstruction InstructionOf(const RequestConstraints& asked, const OutputPlan& plan);

// Calls and results of the conversation become text. A call is written as the output will be, a
// result is what the user says. `messages`: a list of objects with a role.
void WriteCallsAsText(const ToolInstruction& told, json::Value& messages);

// Not every template takes a system message.
enum class InstructionPlace { kSystem, kUser };
void AddInstruction(const std::string& text, InstructionPlace place, json::Value& messages);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_TOOL_INSTRUCTION_H_
