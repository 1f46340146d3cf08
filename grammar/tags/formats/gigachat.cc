// GigaChat: version 3 calls in a message of the role "function call", 3.1 behind a token. Neither
// calls twice in one turn, and nothing closes a call but the end of the turn.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGigaChat3Format = {
    .name = "gigachat3",
    .models = "GigaChat 3",
    .marks = {"<|role_sep|>", "function call"},
    .trigger = "<|message_sep|>\n\nfunction call<|role_sep|>\n",
    .separator = "",
    .call_open =
        {"<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": $QUOTED, \"arguments\": "},
    .call_close = {"}"},
    .raw_open = "<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

constinit const ChatFormat kGigaChat31Format = {
    .name = "gigachat3_1",
    .models = "GigaChat 3.1",
    .marks = {"<|function_call|>"},
    .trigger = "<|function_call|>",
    .call_open = {"<|function_call|>{\"name\": $QUOTED, \"arguments\": "},
    .call_close = {"}"},
    .raw_open = "<|function_call|>{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

}  // namespace pawl
