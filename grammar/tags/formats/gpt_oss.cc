// gpt-oss: harmony. Each message begins with its channel; the prompt ends with <|start|>assistant.
// Thoughts stand in the channel "analysis", of which several may come, the answer in "final", calls
// and what is said before them in "commentary". A call may name its recipient before the channel.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGptOssFormat = {
    .name = "gpt_oss",
    .aliases = {"harmony"},
    .models = "gpt-oss",
    .marks = {"<|channel|>", "<|message|>", "analysis"},
    .think_open = "<|channel|>analysis<|message|>",
    .think_close = "<|end|>",
    .thinks_often = true,
    .answer_open = {"<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>"},
    .answer_close = "<|end|>",
    .note_open = "<|channel|>commentary<|message|>",
    .note_close = "<|end|>",
    .next = "<|start|>assistant",
    .separator = "<|start|>assistant",
    .call_open = {"<|channel|>commentary to=functions.$NAME <|constrain|>json<|message|>",
                  "<|channel|>commentary to=functions.$NAME<|constrain|>json<|message|>",
                  " to=functions.$NAME<|channel|>commentary <|constrain|>json<|message|>",
                  " to=functions.$NAME<|channel|>commentary json<|message|>"},
    .call_close = {"<|call|>", kNoText},
    .raw_open = "<|channel|>commentary to=functions.$NAME<|message|>",
    .raw_close = "<|call|>",
    .stops = {"<|return|>", "<|call|>"},
};

}  // namespace pawl
