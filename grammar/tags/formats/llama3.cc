// Llama 3.1 to 4: JSON without marks around it; the words of the prompt give it away.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kLlama3Format = {
    .name = "llama3",
    .models = "Llama 3.1, 3.2, 3.3, 4",
    .marks = {"\"parameters\": dictionary of argument name"},
    .trigger = R"({"name": )",
    .separator = "; ",
    .call_open = {R"({"name": $QUOTED, "parameters": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<|eom_id|>", "<|eot_id|>"},
};

}  // namespace pawl
