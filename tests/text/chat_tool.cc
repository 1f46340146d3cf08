// Renders chat templates for scripts/make_chat_goldens.py: each line of standard input is a case
// {"template": ..., "special": {...}, "now": "...", "input": {...}}, each line of the output
// {"output": ...} or {"error": ...}.
#include <cstdio>
#include <iostream>
#include <string>

#include "tests/text/chat_case.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const pawl::Result<pawl::json::Value> value = pawl::json::Parse(line);
    if (!value.ok()) return 2;
    const pawl::Result<pawl::MarkedText> text = pawl::RenderCase(*value);
    const std::string answer =
        text.ok() ? "{\"output\":" + pawl::json::Quote(text->bytes()) + "}"
                  : "{\"error\":" + pawl::json::Quote(text.error().ToString()) + "}";
    std::puts(answer.c_str());
  }
  return 0;
}
