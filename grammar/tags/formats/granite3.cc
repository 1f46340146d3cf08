// Granite 3: a JSON list behind one token; nothing closes it.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGranite3Format = {
    .name = "granite3",
    .models = "Granite 3.0 to 3.3",
    .marks = {"<|tool_call|>", "<|start_of_role|>"},
    .trigger = "<|tool_call|>",
    .list_open = {"<|tool_call|>[", "<|tool_call|> ["},
    .list_close = {"]"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

}  // namespace pawl
