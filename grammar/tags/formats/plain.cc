// Models without a chat template, which have learned no form of calls: that of Llama 3, which is
// plain JSON. Where one call of one tool is asked for, its arguments alone are the output.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kPlainFormat = {
    .name = "plain",
    .models = "models without a chat template",
    .trigger = R"({"name": )",
    .separator = "; ",
    .call_open = {R"({"name": $QUOTED, "parameters": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

}  // namespace pawl
