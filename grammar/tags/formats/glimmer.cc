// Muse Glimmer: each message names its recipient: "self" for thoughts, "user" for the answer, or a
// tool, whose message is an element of its own.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGlimmerFormat = {
    .name = "glimmer",
    .models = "Muse Glimmer",
    .marks = {"<atem:function_calls>"},
    .think_open = " to=self<|message|>",
    .think_close = "<|eom|>",
    .thinks_often = true,
    .answer_open = {" to=user<|message|>"},
    .answer_close = "<|eom|>",
    .next = "<|start|>assistant",
    .separator = "<|eom|><|start|>assistant",
    .call_open = {" to=$NAME<|message|><atem:function_calls>\n<atem:invoke name=\"$NAME\">"},
    .call_close = {"</atem:invoke>\n</atem:function_calls>"},
    .style = "atem_xml",
    .stops = {"<|eot|>"},
};

}  // namespace pawl
