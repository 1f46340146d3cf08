// Solar Open: messages of one output that each say what they are; a call has an id that the model
// makes up.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kSolarFormat = {
    .name = "solar",
    .models = "Solar Open",
    .marks = {"<|tool_call:begin|>"},
    .think_open = "<|think|>",
    .think_close = "<|end|>",
    .answer_open = {"<|content|>"},
    .answer_close = "<|end|>",
    .next = "<|begin|>assistant",
    .list_open = {"<|tool_calls|>"},
    .list_close = {"<|calls|>", kNoText},
    .call_open = {"<|tool_call:begin|>$ID10<|tool_call:name|>$NAME<|tool_call:args|>"},
    .call_close = {"<|tool_call:end|>"},
    .stops = {"<|end|>", "<|calls|>"},
};

}  // namespace pawl
