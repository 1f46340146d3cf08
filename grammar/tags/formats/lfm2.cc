// LFM2: a list of calls in Python; the model may go on with a text about them.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kLfm2Format = {
    .name = "lfm2",
    .models = "LFM2, LFM2.5",
    .marks = {"List of tools: "},
    .trigger = "<|tool_call_start|>",
    .list_open = {"<|tool_call_start|>["},
    .list_close = {"]<|tool_call_end|>"},
    .separator = ", ",
    .text_behind = true,
    .call_open = {"$NAME("},
    .call_close = {")"},
    .style = "python",
};

}  // namespace pawl
