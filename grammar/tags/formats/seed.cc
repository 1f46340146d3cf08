// Seed-OSS: the elements of Qwen 3 Coder between marks of its own; values stand without line feeds.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kSeedFormat = {
    .name = "seed",
    .aliases = {"seed_oss"},
    .models = "Seed-OSS",
    .marks = {"<seed:tool_call>"},
    .think_open = "<seed:think>",
    .think_close = "</seed:think>",
    .trigger = "<seed:tool_call>",
    .separator = "\n",
    .call_open = {"<seed:tool_call>\n<function=$NAME>"},
    .call_close = {"</function>\n</seed:tool_call>"},
    .style = "qwen_xml",
    .stops = {"<seed:eos>"},
};

}  // namespace pawl
