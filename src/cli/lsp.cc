// `pawl lsp`: a language server on stdin and stdout whose textDocument/inlineCompletion (LSP 3.18)
// answers with a monitored completion. An item that the editor has selected in its own list is a
// hard prefix: the completion begins with its text and replaces its range.
//
// Documents are kept in memory as the editor shows them. Where more are open than there are places,
// the one that was used longest ago makes room; used is what was opened, changed or completed.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "plugins/monitors/lsp/process.h"
#include "src/cli/command.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

constexpr const char* kLsp = "lsp";

struct LspFlags {
  MonitorFlags monitored;
  CompleterFlags completer;
  int max_tokens = 48;
  int max_prompt_tokens = 1024;
  bool no_monitors = false;
};

#ifndef PAWL_HAVE_MONITORS

int Run(const LspFlags&) { return FailWithoutMonitors(kLsp); }

#else

using LspJson = nlohmann::json;
constexpr size_t kMaxMessage = size_t{64} << 20;
constexpr size_t kMostDocuments = 256;

// The byte of a position whose column counts UTF-16 units, or bytes.
size_t ByteOf(std::string_view text, int64_t line, int64_t column, bool utf8) {
  size_t at = 0;
  for (int64_t i = 0; i < line; ++i) {
    const size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos) return text.size();
    at = newline + 1;
  }
  for (int64_t units = 0; units < column && at < text.size() && text[at] != '\n';) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    units += utf8 ? static_cast<int64_t>(size) : size == 4 ? 2 : 1;
    at = std::min(text.size(), at + size);
  }
  return at;
}

// file:///a%20b.ts -> /a b.ts; another scheme's names are left.
std::string PathOf(const std::string& uri) {
  constexpr std::string_view kScheme = "file://";
  if (!uri.starts_with(kScheme)) return uri;
  std::string path;
  for (size_t i = kScheme.size(); i < uri.size(); ++i) {
    const bool code = uri[i] == '%' && i + 2 < uri.size() &&
                      std::isxdigit(static_cast<unsigned char>(uri[i + 1])) != 0 &&
                      std::isxdigit(static_cast<unsigned char>(uri[i + 2])) != 0;
    path += code ? static_cast<char>(std::stoi(uri.substr(i + 1, 2), nullptr, 16)) : uri[i];
    if (code) i += 2;
  }
  return path;
}

class Server {
 public:
  Server(const LspFlags& flags, LoadedCompleter& loaded) : flags_(flags), loaded_(loaded) {}

  // Until the client says exit or closes the stream.
  int Serve() {
    for (;;) {
      std::optional<std::string> message = Receive();
      if (!message) return shutdown_ ? kExitOk : kExitBadInput;
      const LspJson request = monitors::ParseMessage(*message);
      if (!request.is_object()) {
        Send(
            {{"jsonrpc", "2.0"},
             {"id", nullptr},
             {"error",
              {{"code", -32700}, {"message", "is no JSON object, or nested more than 500 deep"}}}});
        continue;
      }
      const std::string method = Text(request, "method");
      if (method == "exit") {
        if (!shutdown_) Note(kLsp, "exit came without shutdown");
        return shutdown_ ? kExitOk : kExitBadInput;
      }
      const bool asks = request.contains("id");
      const LspJson parameters = request.contains("params") ? request["params"] : LspJson::object();
      std::string problem;
      LspJson result = Handle(method, parameters, asks, &problem);
      if (!asks) continue;
      LspJson answer = {{"jsonrpc", "2.0"}, {"id", request["id"]}};
      if (problem.empty()) {
        answer["result"] = std::move(result);
      } else {
        answer["error"] = {
            {"code", problem == "method" ? -32601 : -32602},
            {"message", problem == "method" ? "there is no method " + method : problem}};
      }
      Send(answer);
    }
  }

 private:
  static std::string Text(const LspJson& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() && found->is_string()
               ? found->get<std::string>()
               : "";
  }
  static const LspJson& At(const LspJson& object, const char* key) {
    static const LspJson kNothing;
    if (!object.is_object()) return kNothing;
    const auto found = object.find(key);
    return found == object.end() ? kNothing : *found;
  }
  // A line or a column: in LSP a whole number from 0 to 2^31 - 1.
  static std::optional<int64_t> Number(const LspJson& object, const char* key) {
    const LspJson& value = At(object, key);
    if (!value.is_number()) return std::nullopt;
    const auto number = value.get<double>();
    if (number < 0 || number > std::numeric_limits<int32_t>::max()) return std::nullopt;
    if (number != std::floor(number)) return std::nullopt;
    return static_cast<int64_t>(number);
  }

  LspJson Handle(const std::string& method, const LspJson& p, bool asks, std::string* problem) {
    if (method == "initialize") {
      const LspJson& encodings = At(At(At(p, "capabilities"), "general"), "positionEncodings");
      if (encodings.is_array())
        utf8_ = std::find(encodings.begin(), encodings.end(), "utf-8") != encodings.end();
      return {{"capabilities",
               {{"textDocumentSync", {{"openClose", true}, {"change", 2}}},
                {"positionEncoding", utf8_ ? "utf-8" : "utf-16"},
                {"inlineCompletionProvider", true}}},
              {"serverInfo", {{"name", "pawl"}}}};
    }
    if (method == "shutdown") {
      shutdown_ = true;
      return nullptr;
    }
    const std::string uri = Text(At(p, "textDocument"), "uri");
    if (method == "textDocument/didOpen") {
      if (uri.empty()) return nullptr;
      if (documents_.size() >= kMostDocuments && !documents_.contains(uri)) {
        documents_.erase(std::ranges::min_element(
            documents_, {}, [](const auto& entry) { return entry.second.used; }));
      }
      Document& document = documents_[uri];
      document = {.text = Text(At(p, "textDocument"), "text"),
                  .language = Text(At(p, "textDocument"), "languageId"),
                  .used = ++uses_};
      // The language server reads while nobody waits for it.
      const std::optional<monitors::Language> language = LanguageOf(document, uri);
      if (loaded_.server != nullptr && language) {
        loaded_.server->Show(*language, PathOf(uri), document.text);
      }
      return nullptr;
    }
    if (method == "textDocument/didClose") {
      documents_.erase(uri);
      return nullptr;
    }
    if (method == "textDocument/didChange") {
      Change(uri, At(p, "contentChanges"), problem);
      // Nothing answers a notification. What the editor shows is not known any more.
      if (!problem->empty()) {
        documents_.erase(uri);
        LogError("textDocument/didChange: " + *problem + "; closed: " + uri);
      }
      return nullptr;
    }
    if (method == "textDocument/inlineCompletion") return Complete(uri, p, problem);
    if (asks) *problem = "method";
    return nullptr;
  }

  struct Document {
    std::string text;
    std::string language;
    uint64_t used = 0;  // the latest has the greatest
  };
  static std::optional<monitors::Language> LanguageOf(const Document& document,
                                                      const std::string& uri) {
    const auto named = monitors::LanguageNamed(document.language);
    return named ? named : monitors::LanguageOfFile(uri);
  }

  // nullopt, with the problem: it is no position.
  std::optional<size_t> Byte(const std::string& text, const LspJson& position, const char* name,
                             std::string* problem) const {
    for (const char* part : {"line", "character"}) {
      if (Number(position, part)) continue;
      *problem = fmt::format("{}: {} must be a whole number from 0 to 2147483647", name, part);
      return std::nullopt;
    }
    return ByteOf(text, *Number(position, "line"), *Number(position, "character"), utf8_);
  }
  // The bytes of a range, empty where its end stands before its start.
  std::optional<std::pair<size_t, size_t> > Bytes(const std::string& text, const LspJson& range,
                                                  std::string* problem) const {
    const std::optional<size_t> from = Byte(text, At(range, "start"), "range.start", problem);
    const std::optional<size_t> to =
        from ? Byte(text, At(range, "end"), "range.end", problem) : std::nullopt;
    if (!to) return std::nullopt;
    return std::pair(*from, std::max(*from, *to));
  }

  void Change(const std::string& uri, const LspJson& changes, std::string* problem) {
    const auto document = documents_.find(uri);
    if (document == documents_.end() || !changes.is_array()) return;
    document->second.used = ++uses_;
    for (const LspJson& change : changes) {
      std::string& text = document->second.text;
      const LspJson& range = At(change, "range");
      if (range.is_null()) {
        text = Text(change, "text");
        continue;
      }
      const auto bytes = Bytes(text, range, problem);
      if (!bytes) return;
      text.replace(bytes->first, bytes->second - bytes->first, Text(change, "text"));
    }
  }

  LspJson Complete(const std::string& uri, const LspJson& p, std::string* problem) {
    const auto document = documents_.find(uri);
    if (document == documents_.end()) {
      *problem = "no such document is open: " + uri;
      return nullptr;
    }
    document->second.used = ++uses_;
    const std::string& text = document->second.text;
    const std::optional<size_t> cursor = Byte(text, At(p, "position"), "position", problem);
    if (!cursor) return nullptr;
    size_t at = *cursor, behind = *cursor;
    completion::CompletionRequest request;
    LspJson range = nullptr;
    const LspJson& selected = At(At(p, "context"), "selectedCompletionInfo");
    if (selected.is_object()) {
      // The item's text stands in place of its range, and the completion goes on from there.
      range = At(selected, "range");
      const auto bytes = Bytes(text, range, problem);
      if (!bytes) return nullptr;
      std::tie(at, behind) = *bytes;
      request.must_begin = Text(selected, "text");
    }
    request.prefix = text.substr(0, at);
    request.suffix = text.substr(behind);
    request.suffix_aware = true;
    request.must_parse = true;
    request.language = LanguageOf(document->second, uri);
    request.file = PathOf(uri);
    request.repo = flags_.monitored.repo;
    request.cache = MonitorFlags::CacheFolder();
    request.monitors = flags_.monitored.monitors;
    request.use_monitors = !flags_.no_monitors;
    request.max_tokens = flags_.max_tokens;
    request.max_prompt_tokens = flags_.max_prompt_tokens;
    Result<completion::CompletionResult> done = loaded_.completer->Complete(request);
    if (!done.ok()) {
      *problem = done.error().ToString();
      return nullptr;
    }
    for (const std::string& limit : done->limits) {
      if (told_.insert(limit).second) Note(kLsp, "note: " + limit + "; the rest is not known");
    }
    LspJson items = LspJson::array();
    const bool extends =
        done->text.starts_with(request.must_begin) && done->text.size() > request.must_begin.size();
    if (!done->text.empty() && done->parses && (request.must_begin.empty() || extends)) {
      LspJson item = {{"insertText", done->text}};
      if (!range.is_null()) item["range"] = range;
      items.push_back(std::move(item));
    }
    return {{"items", std::move(items)}};
  }

  std::optional<std::string> Receive() const {
    size_t length = 0;
    bool measured = false;
    std::string line;
    for (;;) {
      const int c = std::getchar();
      if (c == EOF) {
        if (!shutdown_) Note(kLsp, "the input ends without shutdown");
        return std::nullopt;
      }
      if (c != '\n') {
        line += static_cast<char>(c);
        if (line.size() > 4096) {
          Note(kLsp, "a header of a message has more than 4096 bytes");
          return std::nullopt;
        }
        continue;
      }
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty()) break;
      std::string name = line.substr(0, line.find(':'));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char ch) { return std::tolower(ch); });
      if (name == "content-length") {
        const size_t first = line.find_first_not_of(" \t", name.size() + 1);
        const char* const digits = line.c_str() + std::min(first, line.size());
        const char* const end = line.c_str() + line.size();
        const auto [stop, error] = std::from_chars(digits, end, length);
        measured = error == std::errc() && stop == end;
        if (!measured) {
          Note(kLsp, "Content-Length must be a number of bytes: " + line.substr(0, 100));
          return std::nullopt;
        }
      }
      line.clear();
    }
    if (!measured) {
      Note(kLsp, "a message has no Content-Length");
      return std::nullopt;
    }
    if (length > kMaxMessage) {
      Note(kLsp, fmt::format("a message has {} bytes; the limit is {}", length, kMaxMessage));
      return std::nullopt;
    }
    std::string message(length, '\0');
    if (std::fread(message.data(), 1, length, stdin) != length) {
      Note(kLsp, "the input ends inside a message");
      return std::nullopt;
    }
    return message;
  }
  static void LogError(const std::string& message) {
    constexpr int kError = 1;
    Send({{"jsonrpc", "2.0"},
          {"method", "window/logMessage"},
          {"params", {{"type", kError}, {"message", message}}}});
  }
  static void Send(const LspJson& message) {
    const std::string text = message.dump(-1, ' ', false, LspJson::error_handler_t::replace);
    Print(fmt::format("Content-Length: {}\r\n\r\n{}", text.size(), text));
    (void)FlushOutput();
    std::fflush(stdout);
  }

  const LspFlags& flags_;
  LoadedCompleter& loaded_;
  std::map<std::string, Document> documents_;
  uint64_t uses_ = 0;
  std::set<std::string> told_;  // notes that were written
  bool utf8_ = false;
  bool shutdown_ = false;
};

int Run(const LspFlags& flags) {
  if (Status status = flags.monitored.Check(); !status.ok()) return Fail(kLsp, status.error());
  Result<LoadedCompleter> loaded = flags.completer.Load(kLsp, flags.monitored);
  if (!loaded.ok()) return Fail(kLsp, loaded.error());
  return Server(flags, *loaded).Serve();
}

#endif

}  // namespace

void AddLsp(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kLsp, "A language server on stdin and stdout: inline completion under the monitors");
  auto flags = std::make_shared<LspFlags>();
  flags->completer.AddTo(command);
  flags->monitored.AddTo(command);
  command->add_flag("--no-monitors", flags->no_monitors, "The model alone");
  CountOption(command, "--max-tokens", flags->max_tokens, 1, 4096, "Longest completion");
  CountOption(command, "--max-prompt-tokens", flags->max_prompt_tokens, 16, 1 << 20,
              "Most tokens of the text around the cursor that the model reads");
  command->footer(
      "Exit codes: 0 done; 2 bad input or usage.\n"
      "Example:\n  pawl lsp --repo . --model models/tiny-code");
  command->callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace pawl::cli
