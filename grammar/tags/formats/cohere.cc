// Cohere: from Command R7B on each part of an output stands between tokens. Command R+ writes a
// JSON list in a code fence.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

namespace {

constexpr ChatFormat PartsBetweenTokens(std::string_view name, std::string_view models,
                                        std::string_view answer_open,
                                        std::string_view answer_close) {
  return {
      .name = name,
      .models = models,
      .marks = {"<|START_ACTION|>", answer_open},
      .think_open = "<|START_THINKING|>",
      .think_close = "<|END_THINKING|>",
      .answer_open = {answer_open},
      .answer_close = answer_close,
      .list_open = {"<|START_ACTION|>[\n    "},
      .list_close = {"\n]<|END_ACTION|>"},
      .separator = ",\n    ",
      .call_open = {R"({"tool_call_id": "$INDEX", "tool_name": $QUOTED, "parameters": )"},
      .call_close = {"}"},
      .raw_open = "{\"tool_name\": $QUOTED}\n",
      .raw_close = "\n</$NAME>",
      .stops = {"<|END_OF_TURN_TOKEN|>"},
  };
}

}  // namespace

constinit const ChatFormat kCohereFormat = PartsBetweenTokens(
    "cohere", "Command A Reasoning, North (START_TEXT)", "<|START_TEXT|>", "<|END_TEXT|>");

constinit const ChatFormat kCommandR7bFormat = PartsBetweenTokens(
    "command_r7b", "Command R7B, Command A", "<|START_RESPONSE|>", "<|END_RESPONSE|>");

constinit const ChatFormat kCommandRFormat = {
    .name = "command_r",
    .models = "Command R, R+",
    .marks = {"Action:", "\"tool_name\": ", "```json"},
    .trigger = "Action:",
    .list_open = {"Action:\n```json\n[\n", "Action: ```json\n[\n"},
    .list_close = {"\n]```"},
    .separator = ",\n",
    .call_open = {"    {\n        \"tool_name\": $QUOTED,\n        \"parameters\": "},
    .call_close = {"\n    }"},
    .raw_open = "    {\"tool_name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

}  // namespace pawl
