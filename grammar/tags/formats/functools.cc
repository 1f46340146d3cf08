// Lists of JSON calls with a word in front: Firefunction's functools, and Phi-4-mini's tokens. A
// Phi-4-mini whose prompt speaks of functools is of the first kind.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kFunctoolsFormat = {
    .name = "functools",
    .aliases = {"firefunction"},
    .models = "Firefunction 2, Phi-4-mini with the prompt of vLLM",
    .marks = {"functools["},
    .trigger = "functools[",
    .list_open = {"functools["},
    .list_close = {"]"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

constinit const ChatFormat kPhi4MiniFormat = {
    .name = "phi4_mini",
    .models = "Phi-4-mini",
    .marks = {"<|tool|>", "<|/tool|>"},
    .trigger = "<|tool_call|>",
    .list_open = {"<|tool_call|>["},
    .list_close = {"]<|/tool_call|>"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<|end|>"},
};

}  // namespace pawl
