// GLM: keys and values as pairs of elements. GLM 4.5 and 4.6 write line feeds between them, 4.7
// and later none; white space is free there.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kGlmFormat = {
    .name = "glm",
    .models = "GLM-4.5 to 5.1, Laguna, Ling 3, Spark 2.5",
    .marks = {"<tool_call>", "<arg_key>", "<arg_value>"},
    .trigger = "<tool_call>",
    .separator = "\n",
    .call_open = {"<tool_call>$NAME"},
    .call_close = {"</tool_call>"},
    .style = "glm_xml",
    .stops = {"<|observation|>", "<|user|>"},
};

}  // namespace pawl
