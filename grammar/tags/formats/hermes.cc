// Hermes: JSON between <tool_call> marks, which many families have taken over.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kHermesFormat = {
    .name = "hermes",
    .aliases = {"qwen"},
    .models = "Hermes, Qwen 2.5 and 3, QwQ, Granite 4, SmolLM3, MiMo, Bielik",
    .marks = {"<tool_call>"},
    .trigger = "<tool_call>",
    .separator = "\n",
    .call_open = {"<tool_call>\n{\"name\": $QUOTED, \"arguments\": "},
    .call_close = {"}\n</tool_call>"},
    .raw_open = "<tool_call>\n{\"name\": $QUOTED}\n",
    .raw_close = "\n</tool_call>",
};

}  // namespace pawl
