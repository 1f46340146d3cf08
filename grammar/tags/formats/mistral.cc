// Mistral: a JSON list behind [TOOL_CALLS] up to Nemo; later one [TOOL_CALLS] for each call, with
// the arguments behind [ARGS], and with an id in Small 3.2.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kMistralFormat = {
    .name = "mistral",
    .models = "Mistral 7B v0.3, Nemo, Small 3",
    .marks = {"[TOOL_CALLS]"},
    .trigger = "[TOOL_CALLS]",
    .list_open = {"[TOOL_CALLS][", "[TOOL_CALLS] ["},
    .list_close = {"]"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}", ", \"id\": \"$ID9\"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
};

constinit const ChatFormat kMinistralFormat = {
    .name = "ministral",
    .models = "Ministral 3, Devstral, Magistral, Mistral Large 3",
    .marks = {"[TOOL_CALLS]", "[ARGS]"},
    .trigger = "[TOOL_CALLS]",
    .call_open = {"[TOOL_CALLS]$NAME[ARGS]"},
    .call_close = {kNoText},
    .raw_close = "[/ARGS]",
};

constinit const ChatFormat kMistralSmallFormat = {
    .name = "mistral_small",
    .models = "Mistral Small 3.2",
    .marks = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"},
    .trigger = "[TOOL_CALLS]",
    .call_open = {"[TOOL_CALLS]$NAME[CALL_ID]$ID9[ARGS]"},
    .call_close = {kNoText},
    .raw_close = "[/ARGS]",
};

}  // namespace pawl
