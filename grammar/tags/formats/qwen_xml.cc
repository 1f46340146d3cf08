// Qwen 3 Coder: the parameters as elements, each value on lines of its own.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kQwenXmlFormat = {
    .name = "qwen_xml",
    .models = "Qwen 3 Coder, 3.5, Nemotron 3, Step 3.5",
    .marks = {"<tool_call>", "<function=", "<parameter="},
    .without = {"<seed:tool_call>"},
    .trigger = "<tool_call>",
    .separator = "\n",
    .call_open = {"<tool_call>\n<function=$NAME>"},
    .call_close = {"</function>\n</tool_call>"},
    .style = "qwen_xml",
    .values_on_lines = true,
};

}  // namespace pawl
