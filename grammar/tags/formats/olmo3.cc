// OLMo 3: calls in Python, each on a line.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kOlmo3Format = {
    .name = "olmo3",
    .models = "OLMo 3",
    .marks = {"<function_calls>", "<functions>"},
    .trigger = "<function_calls>",
    .list_open = {"<function_calls>\n", "<function_calls>"},
    .list_close = {"\n</function_calls>", "</function_calls>"},
    .separator = "\n",
    .call_open = {"$NAME("},
    .call_close = {")"},
    .style = "python",
};

}  // namespace pawl
