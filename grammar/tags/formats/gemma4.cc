// Gemma 4: an object without quotes at its keys, and strings between marks of their own. The
// template sorts the keys, so the model has learned them sorted.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGemma4Format = {
    .name = "gemma4",
    .models = "Gemma 4",
    .marks = {"<|tool_call>call:"},
    .think_open = "<|channel>thought\n",
    .think_close = "<channel|>",
    .trigger = "<|tool_call>",
    .call_open = {"<|tool_call>call:$NAME"},
    .call_close = {"<tool_call|>"},
    .style = "gemma4",
    .stops = {"<turn|>", "<|tool_response>"},
};

}  // namespace pawl
