// MiniCPM5: elements whose strings stand in CDATA where they have a '<'.
#include "grammar/tags/formats/chat_formats.h"

namespace pawl {

constinit const ChatFormat kMiniCpm5Format = {
    .name = "minicpm5",
    .models = "MiniCPM5",
    .marks = {"<function name=\"", "<param name=\""},
    .trigger = "<function name=\"",
    .separator = "\n",
    .call_open = {"<function name=\"$NAME\">"},
    .call_close = {"</function>"},
    .style = "minicpm_xml",
};

}  // namespace pawl
