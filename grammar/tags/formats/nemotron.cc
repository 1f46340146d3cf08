// Nemotron Nano 2: a JSON list between <TOOLCALL> marks.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kNemotronFormat = {
    .name = "nemotron",
    .models = "Nemotron Nano 2",
    .marks = {"<TOOLCALL>"},
    .trigger = "<TOOLCALL>",
    .list_open = {"<TOOLCALL>["},
    .list_close = {"]</TOOLCALL>"},
    .separator = ", ",
    .call_open = {R"({"name": $QUOTED, "arguments": )"},
    .call_close = {"}"},
    .raw_open = "{\"name\": $QUOTED}\n",
    .raw_close = "\n</$NAME>",
    .stops = {"<SPECIAL_12>"},
};

}  // namespace pawl
