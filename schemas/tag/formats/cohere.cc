// Cohere: from Command R7B on each part of an output stands between tokens. Command R+ writes a
// JSON list in a code fence.
#include "schemas/tag/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kCohereFormat = {
    .name = "cohere",
    .models = "Command A Reasoning, North (START_TEXT)",
    .marks = {"<|START_ACTION|>", "<|START_TEXT|>"},
    .think_open = "<|START_THINKING|>",
    .think_close = "<|END_THINKING|>",
    .answer_open = {"<|START_TEXT|>"},
    .answer_close = "<|END_TEXT|>",
    .list_open = {"<|START_ACTION|>[\n    "},
    .list_close = {"\n]<|END_ACTION|>"},
    .separator = ",\n    ",
    .call_open = {R"({"tool_call_id": "$INDEX", "tool_name": $QUOTED, "parameters": )"},
    .call_close = {"}"},
    .raw_open = "{\"tool_name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<|END_OF_TURN_TOKEN|>"},
};

constinit const ChatFormat kCommandR7bFormat = {
    .name = "command_r7b",
    .models = "Command R7B, Command A",
    .marks = {"<|START_ACTION|>", "<|START_RESPONSE|>"},
    .think_open = "<|START_THINKING|>",
    .think_close = "<|END_THINKING|>",
    .answer_open = {"<|START_RESPONSE|>"},
    .answer_close = "<|END_RESPONSE|>",
    .list_open = {"<|START_ACTION|>[\n    "},
    .list_close = {"\n]<|END_ACTION|>"},
    .separator = ",\n    ",
    .call_open = {R"({"tool_call_id": "$INDEX", "tool_name": $QUOTED, "parameters": )"},
    .call_close = {"}"},
    .raw_open = "{\"tool_name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<|END_OF_TURN_TOKEN|>"},
};

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
