// Hunyuan: Hy3 has the pairs of GLM with a suffix at each mark; A13B a JSON list.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kHunyuanFormat = {
    .name = "hunyuan",
    .aliases = {"hy3"},
    .models = "Hunyuan Hy3",
    .marks = {":opensource", "<tool_calls", "<arg_key"},
    .think_open = "<think:opensource>",
    .think_close = "</think:opensource>",
    .trigger = "<tool_calls:opensource>",
    .list_open = {"<tool_calls:opensource>\n"},
    .list_close = {"\n</tool_calls:opensource>"},
    .separator = "\n",
    .call_open = {"<tool_call:opensource>$NAME<tool_sep:opensource>"},
    .call_close = {"</tool_call:opensource>"},
    .style = "hunyuan_xml",
};

}  // namespace pawl
