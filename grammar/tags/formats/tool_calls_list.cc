// A JSON list between <tool_calls> marks: Apriel, whose calls may have an id, and Hunyuan A13B.
// The thoughts of Apriel 1.6 begin with words that the prompt has, and end at a line of their own.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kAprielFormat = {
    .name = "apriel",
    .aliases = {"hunyuan_a13b"},
    .models = "Apriel 1.5 and 1.6, Hunyuan A13B",
    .marks = {"<tool_calls>["},
    .think_open = "Here are my reasoning steps:",
    .think_close = "[BEGIN FINAL RESPONSE]",
    .trigger = "<tool_calls>",
    .list_open = {"<tool_calls>["},
    .list_close = {"]</tool_calls>"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}", ", \"id\": \"$ID9\"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

}  // namespace pawl
