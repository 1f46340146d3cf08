// DeepSeek: R1 and V3 with the arguments in a code fence, V3.1 without; from V3.2 on elements
// whose marks have the letters DSML.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kDeepSeekR1Format = {
    .name = "deepseek_r1",
    .aliases = {"deepseek_v3"},
    .models = "DeepSeek R1, V3 and the distilled models",
    .marks = {"<｜tool▁calls▁begin｜>", "```json"},
    .trigger = "<｜tool▁calls▁begin｜>",
    .list_open = {"<｜tool▁calls▁begin｜>"},
    .list_close = {"<｜tool▁calls▁end｜>"},
    .separator = "\n",
    .call_open = {"<｜tool▁call▁begin｜>function<｜tool▁sep｜>$NAME\n```json\n"},
    .call_close = {"\n```<｜tool▁call▁end｜>"},
    .raw_open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$NAME\n```\n",
    .raw_close = "\n```<｜tool▁call▁end｜>",
};

constinit const ChatFormat kDeepSeekV31Format = {
    .name = "deepseek_v3_1",
    .models = "DeepSeek V3.1",
    .marks = {"<｜tool▁calls▁begin｜>"},
    .trigger = "<｜tool▁calls▁begin｜>",
    .list_open = {"<｜tool▁calls▁begin｜>"},
    .list_close = {"<｜tool▁calls▁end｜>"},
    .call_open = {"<｜tool▁call▁begin｜>$NAME<｜tool▁sep｜>"},
    .call_close = {"<｜tool▁call▁end｜>"},
};

constinit const ChatFormat kDeepSeekV32Format = {
    .name = "deepseek_v3_2",
    .models = "DeepSeek V3.2",
    .marks = {"DSML", "function_calls"},
    .trigger = "<｜DSML｜function_calls>",
    .list_open = {"<｜DSML｜function_calls>\n"},
    .list_close = {"\n</｜DSML｜function_calls>"},
    .separator = "\n",
    .call_open = {"<｜DSML｜invoke name=\"$NAME\">"},
    .call_close = {"</｜DSML｜invoke>"},
    .style = "deepseek_xml",
};

constinit const ChatFormat kDeepSeekV4Format = {
    .name = "deepseek_v4",
    .models = "DeepSeek V4",
    .marks = {"DSML", "tool_calls"},
    .trigger = "<｜DSML｜tool_calls>",
    .list_open = {"<｜DSML｜tool_calls>\n"},
    .list_close = {"\n</｜DSML｜tool_calls>"},
    .separator = "\n",
    .call_open = {"<｜DSML｜invoke name=\"$NAME\">"},
    .call_close = {"</｜DSML｜invoke>"},
    .style = "deepseek_xml",
};

}  // namespace pawl
