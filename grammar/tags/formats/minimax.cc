// MiniMax: M1 writes JSON on lines between marks, M2 elements, M3 elements in elements, behind a
// text that begins each mark.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kMinimaxM1Format = {
    .name = "minimax_m1",
    .models = "MiniMax M1",
    .marks = {"<tool_calls>\n", "<beginning_of_sentence>"},
    .trigger = "<tool_calls>",
    .list_open = {"<tool_calls>\n"},
    .list_close = {"\n</tool_calls>"},
    .separator = "\n",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

constinit const ChatFormat kMinimaxM2Format = {
    .name = "minimax_m2",
    .aliases = {"minimax"},
    .models = "MiniMax M2",
    .marks = {"<minimax:tool_call>"},
    .trigger = "<minimax:tool_call>",
    .list_open = {"<minimax:tool_call>\n"},
    .list_close = {"\n</minimax:tool_call>"},
    .separator = "\n",
    .call_open = {"<invoke name=\"$NAME\">"},
    .call_close = {"</invoke>"},
    .style = "minimax_xml",
    .stops = {"[e~["},
};

constinit const ChatFormat kMinimaxM3Format = {
    .name = "minimax_m3",
    .models = "MiniMax M3",
    .marks = {"]<]minimax[>["},
    .think_open = "<mm:think>",
    .think_close = "</mm:think>",
    .trigger = "]<]minimax[>[<tool_call>",
    .list_open = {"]<]minimax[>[<tool_call>\n"},
    .list_close = {"\n]<]minimax[>[</tool_call>"},
    .separator = "\n",
    .call_open = {"]<]minimax[>[<invoke name=\"$NAME\">"},
    .call_close = {"]<]minimax[>[</invoke>"},
    .style = "minimax_m3_xml",
    .stops = {"[e~["},
};

}  // namespace pawl
