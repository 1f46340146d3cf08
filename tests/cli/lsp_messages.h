// Messages of the language server protocol, as tests of `pawl lsp` write and read them.
#ifndef PAWL_TESTS_CLI_LSP_MESSAGES_H_
#define PAWL_TESTS_CLI_LSP_MESSAGES_H_

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pawl {

using LspMessageJson = nlohmann::json;

inline std::string Framed(const LspMessageJson& message) {
  const std::string body = message.dump();
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline std::vector<LspMessageJson> Unframed(const std::string& text) {
  std::vector<LspMessageJson> messages;
  for (size_t at = 0; at < text.size();) {
    const size_t head = text.find("\r\n\r\n", at);
    if (head == std::string::npos) break;
    const size_t size = std::strtoull(text.c_str() + at + 16, nullptr, 10);
    messages.push_back(LspMessageJson::parse(text.substr(head + 4, size)));
    at = head + 4 + size;
  }
  return messages;
}

inline LspMessageJson Asked(int id, const std::string& uri, int line, int column,
                            LspMessageJson context = {}) {
  if (context.is_null()) context = {{"triggerKind", 1}};
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"method", "textDocument/inlineCompletion"},
          {"params",
           {{"textDocument", {{"uri", uri}}},
            {"position", {{"line", line}, {"character", column}}},
            {"context", context}}}};
}

// Without the notes that say why a completion is empty (window/logMessage of type 4).
inline std::vector<LspMessageJson> AnswersIn(const std::string& text) {
  std::vector<LspMessageJson> messages = Unframed(text);
  std::erase_if(messages, [](const LspMessageJson& message) {
    return message.value("method", "") == "window/logMessage" && message["params"]["type"] == 4;
  });
  return messages;
}

inline LspMessageJson Opened(const std::string& uri, const std::string& text) {
  return {{"jsonrpc", "2.0"},
          {"method", "textDocument/didOpen"},
          {"params",
           {{"textDocument",
             {{"uri", uri}, {"languageId", "typescript"}, {"version", 1}, {"text", text}}}}}};
}

}  // namespace pawl

#endif  // PAWL_TESTS_CLI_LSP_MESSAGES_H_
