// Functionary: 3.1 writes the name in a mark and JSON behind it; 3.2 names the recipient of each
// message, of which "all" is the user. The prompt of 3.2 ends with the >>> before the first one.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kFunctionary31Format = {
    .name = "functionary_v3_1",
    .models = "Functionary 3.1",
    .marks = {"<function=", "</function>"},
    .without = {"<parameter="},
    .trigger = "<function=",
    .call_open = {"<function=$NAME>"},
    .call_close = {"</function>"},
    .stops = {"<|eom_id|>", "<|eot_id|>"},
};

constinit const ChatFormat kFunctionary32Format = {
    .name = "functionary_v3_2",
    .models = "Functionary 3.2",
    .marks = {">>>all", ">>>"},
    .answer_open = {"all\n"},
    .answer_close = ">>>",
    .separator = ">>>",
    .call_open = {"$NAME\n"},
    .call_close = {kNoText},
    .raw_close = "\n</$NAME>",
    .stops = {"<|eot_id|>"},
};

}  // namespace pawl
