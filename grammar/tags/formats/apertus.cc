// Apertus: a JSON list of objects whose one key is the tool.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kApertusFormat = {
    .name = "apertus",
    .models = "Apertus",
    .marks = {"<|tools_prefix|>"},
    .think_open = "<|inner_prefix|>",
    .think_close = "<|inner_suffix|>",
    .trigger = "<|tools_prefix|>",
    .list_open = {"<|tools_prefix|>["},
    .list_close = {"]<|tools_suffix|>"},
    .separator = ", ",
    .call_open = {"{$QUOTED: "},
    .call_close = {"}"},
    .raw_open = "{$QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<|assistant_end|>"},
};

}  // namespace pawl
