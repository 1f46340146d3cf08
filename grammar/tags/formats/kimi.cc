// Kimi: K2 writes JSON between tokens, with an id that is the name and the number of the call; K3
// messages and arguments as elements, with the type of each value.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kKimiK2Format = {
    .name = "kimi_k2",
    .models = "Kimi K2, K2 Thinking, K2.5",
    .marks = {"<|tool_calls_section_begin|>"},
    .trigger = "<|tool_calls_section_begin|>",
    .list_open = {"<|tool_calls_section_begin|>"},
    .list_close = {"<|tool_calls_section_end|>"},
    .call_open = {"<|tool_call_begin|>functions.$NAME:$INDEX<|tool_call_argument_begin|>"},
    .call_close = {"<|tool_call_end|>"},
};

constinit const ChatFormat kKimiK3Format = {
    .name = "kimi_k3",
    .models = "Kimi K3",
    .marks = {"<|open|>", "<|sep|>", "<|end_of_msg|>"},
    .think_open = "<|open|>think<|sep|>",
    .think_close = "<|close|>think<|sep|>",
    .answer_open = {"<|open|>response<|sep|>"},
    .answer_close = "<|close|>response<|sep|>",
    .tail = "<|close|>message<|sep|>",
    .list_open = {"<|open|>tools<|sep|>"},
    .list_close = {"<|close|>tools<|sep|>"},
    .call_open = {"<|open|>call tool=\"$NAME\" index=\"$INDEX\"<|sep|>"},
    .call_close = {"<|close|>call<|sep|>"},
    .style = "kimi_k3_xml",
    .stops = {"<|end_of_msg|>"},
};

}  // namespace pawl
