// The protocol is LSP 3.17, with textDocument/inlineCompletion of 3.18. A list of names has what
// the monitors allow, in the order of the model's probabilities; documentation is sent with the
// list, or when the client asks for an item, as the client has said. An inline completion is the
// model's text: an item that the editor has selected in its own list is a hard prefix.
#ifdef PAWL_HAVE_MONITORS
#include "src/cli/lsp_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

constexpr const char* kLspCommand = "lsp";
constexpr size_t kSentLists = 4;
constexpr size_t kMostChangedFiles = 10'000;
constexpr int kLogError = 1, kLogInfo = 3, kLogLog = 4;

// CompletionItemKind of the protocol. What is behind 18 not all clients know.
int KindOfItem(monitors::NameDetail::Kind kind, const std::set<int>& known) {
  using DK = monitors::NameDetail::Kind;
  constexpr int kEnumMember = 20, kConstant = 21;
  switch (kind) {
    case DK::kMethod:
      return 2;
    case DK::kFunction:
      return 3;
    case DK::kConstructor:
      return 4;
    case DK::kField:
      return 5;
    case DK::kVariable:
      return 6;
    case DK::kClass:
      return 7;
    case DK::kInterface:
      return 8;
    case DK::kModule:
      return 9;
    case DK::kProperty:
      return 10;
    case DK::kEnum:
      return 13;
    case DK::kKeyword:
      return 14;
    case DK::kEnumMember:
      return known.contains(kEnumMember) ? kEnumMember : 13;
    case DK::kConstant:
      return known.contains(kConstant) ? kConstant : 6;
    case DK::kUnknown:
      return 1;
  }
  return 1;
}

bool Lists(const LspJson& list, std::string_view text) {
  return list.is_array() && std::ranges::any_of(list, [&](const LspJson& one) {
           return one.is_string() && one.get_ref<const std::string&>() == text;
         });
}

bool True(const LspJson& value) { return value.is_boolean() && value.get<bool>(); }

}  // namespace

int EditorServer::Serve() {
  for (;;) {
    const LspWire::Message message = wire_.Next();
    if (message.kind == LspWire::Kind::kEnd) {
      if (!message.problem.empty()) {
        Note(kLspCommand, message.problem);
        return kExitBadInput;
      }
      if (!shutdown_) Note(kLspCommand, "the input ends without shutdown");
      return shutdown_ ? kExitOk : kExitBadInput;
    }
    if (message.kind == LspWire::Kind::kBroken) {
      wire_.SendError(nullptr, kLspParseError, "is no JSON, or nested more than 500 deep");
      continue;
    }
    const LspJson& json = message.json;
    if (message.kind == LspWire::Kind::kWrong) {
      const LspJson& id = LspAt(json, "id");
      const bool whole = id.is_string() || id.is_number_integer();
      wire_.SendError(whole ? id : LspJson(nullptr), kLspInvalidRequest, message.problem);
      continue;
    }
    const std::string method = LspText(json, "method");
    if (method == "exit") {
      if (!shutdown_) Note(kLspCommand, "exit came without shutdown");
      return shutdown_ ? kExitOk : kExitBadInput;
    }
    if (method.empty() && (json.contains("result") || json.contains("error"))) {
      ClientAnswered(json);
      continue;
    }
    const bool asks = json.contains("id");
    const LspJson parameters = json.contains("params") ? json["params"] : LspJson::object();
    Answer answer;
    const bool early = !initialized_ && method != "initialize" && method != "shutdown";
    if (initialized_ && method == "initialize") {
      answer = {.code = kLspInvalidRequest, .problem = "initialize comes once"};
    } else if (early) {
      answer = {.code = kLspNotInitialized, .problem = "initialize has to come first"};
    } else if (shutdown_ && asks) {
      answer = {.code = kLspInvalidRequest, .problem = "shutdown has come"};
    } else {
      answer = Handle(method, parameters, asks);
    }
    if (!asks) continue;
    if (answer.code != 0) {
      wire_.SendError(json["id"], answer.code, answer.problem);
    } else {
      wire_.Send({{"jsonrpc", "2.0"}, {"id", json["id"]}, {"result", std::move(answer.result)}});
    }
  }
}

EditorServer::Answer EditorServer::Handle(const std::string& method, const LspJson& p, bool asks) {
  if (method == "initialize") return Initialize(p);
  if (method == "initialized") {
    Initialized();
    return {};
  }
  if (method == "shutdown") {
    shutdown_ = true;
    return {};
  }
  const std::string uri = LspText(LspAt(p, "textDocument"), "uri");
  if (method == "textDocument/didOpen") {
    Opened(LspAt(p, "textDocument"));
    return {};
  }
  if (method == "textDocument/didClose") {
    documents_.Close(uri);
    return {};
  }
  if (method == "textDocument/didChange") {
    Changed(uri, p);
    return {};
  }
  if (method == "textDocument/didSave") {
    FilesChanged(LspJson::array({{{"uri", uri}}}));
    return {};
  }
  if (method == "workspace/didChangeWatchedFiles") {
    FilesChanged(LspAt(p, "changes"));
    return {};
  }
  try {
    if (method == "textDocument/inlineCompletion") return Complete(uri, p);
    if (method == "textDocument/completion") return List(uri, p);
    if (method == "completionItem/resolve") return Resolve(p);
  } catch (const Stopped&) {
    return {.code = kLspCancelled, .problem = "the request was cancelled"};
  }
  if (!asks) return {};
  return {.code = kLspMethodNotFound, .problem = "there is no method " + method};
}

EditorServer::Answer EditorServer::Initialize(const LspJson& p) {
  using completion::ColumnUnit;
  initialized_ = true;
  const LspJson& capabilities = LspAt(p, "capabilities");
  const LspJson& encodings = LspAt(LspAt(capabilities, "general"), "positionEncodings");
  ColumnUnit unit = ColumnUnit::kUtf16;
  const char* name = "utf-16";
  if (Lists(encodings, "utf-8")) {
    unit = ColumnUnit::kUtf8;
    name = "utf-8";
  } else if (Lists(encodings, "utf-32") && !Lists(encodings, "utf-16")) {
    unit = ColumnUnit::kUtf32;
    name = "utf-32";
  }
  documents_.SetUnit(unit);
  const LspJson& completion = LspAt(LspAt(capabilities, "textDocument"), "completion");
  const LspJson& item = LspAt(completion, "completionItem");
  client_.documents_on_resolve =
      Lists(LspAt(LspAt(item, "resolveSupport"), "properties"), "documentation");
  client_.insert_replace = True(LspAt(item, "insertReplaceSupport"));
  client_.preselect = True(LspAt(item, "preselectSupport"));
  const LspJson& kinds = LspAt(LspAt(completion, "completionItemKind"), "valueSet");
  for (size_t i = 0; kinds.is_array() && i < std::min<size_t>(kinds.size(), 100); ++i) {
    if (kinds[i].is_number_integer()) client_.kinds.insert(kinds[i].get<int>());
  }
  client_.progress = True(LspAt(LspAt(capabilities, "window"), "workDoneProgress"));
  client_.watches = True(LspAt(LspAt(LspAt(capabilities, "workspace"), "didChangeWatchedFiles"),
                               "dynamicRegistration"));
  LspJson triggers = LspJson::array({"."});
  if (loaded_.server != nullptr) triggers.push_back(">");
  return {.result = {{"capabilities",
                      {{"textDocumentSync",
                        {{"openClose", true}, {"change", 2}, {"save", {{"includeText", false}}}}},
                       {"positionEncoding", name},
                       {"completionProvider",
                        {{"triggerCharacters", triggers}, {"resolveProvider", true}}},
                       {"inlineCompletionProvider", true}}},
                     {"serverInfo", {{"name", "pawl"}, {"version", PAWL_VERSION}}}}};
}

void EditorServer::Initialized() {
  if (client_.watches) {
    const LspJson watchers = {{{"globPattern", "**/*.{java,ts,tsx,mts,cts,py,pyi}"}},
                              {{"globPattern", "**/{tsconfig,package}.json"}}};
    wire_.Send({{"jsonrpc", "2.0"},
                {"id", "pawl-files"},
                {"method", "client/registerCapability"},
                {"params",
                 {{"registrations",
                   {{{"id", "pawl-files"},
                     {"method", "workspace/didChangeWatchedFiles"},
                     {"registerOptions", {{"watchers", watchers}}}}}}}}});
  }
  if (!options_.no_monitors) indexing_.Start(client_.progress);
}

void EditorServer::ClientAnswered(const LspJson& message) {
  if (LspText(message, "id") == LspIndexing::kRequest)
    indexing_.Answered(!message.contains("error"));
}

void EditorServer::Opened(const LspJson& document) {
  const std::string uri = LspText(document, "uri");
  if (uri.empty() || !LspAt(document, "text").is_string()) {
    return Log(kLogError, "textDocument/didOpen: uri and text must be strings");
  }
  const LspJson& version = LspAt(document, "version");
  documents_.Open(
      uri, LspText(document, "languageId"), LspText(document, "text"),
      version.is_number_integer() ? std::optional(version.get<int64_t>()) : std::nullopt);
  const LspDocument* const opened = documents_.Find(uri);
  // The language server reads while no one waits for it.
  const std::optional<monitors::Language> language =
      opened != nullptr ? LanguageOf(*opened, uri) : std::nullopt;
  if (loaded_.server != nullptr && language)
    loaded_.server->Show(*language, PathOfUri(uri), opened->text);
}

void EditorServer::Changed(const std::string& uri, const LspJson& p) {
  std::string problem;
  documents_.Change(uri, LspAt(LspAt(p, "textDocument"), "version"), LspAt(p, "contentChanges"),
                    &problem);
  // Nothing answers a notification.
  if (!problem.empty()) Log(kLogError, "textDocument/didChange: " + problem + ": " + uri);
}

void EditorServer::FilesChanged(const LspJson& changes) {
  std::vector<std::string> files;
  for (size_t i = 0; changes.is_array() && i < std::min(changes.size(), kMostChangedFiles); ++i) {
    const std::string uri = LspText(changes[i], "uri");
    if (uri.starts_with("file://")) files.push_back(PathOfUri(uri));
  }
  if (!files.empty()) loaded_.completer->FilesChanged(files);
}

Result<EditorServer::Place> EditorServer::PlaceAt(const std::string& uri, const LspJson& p) {
  Place place;
  place.document = documents_.Find(uri);
  if (place.document == nullptr)
    return Error{ErrorCode::kInvalid, "no such document is open: " + uri, ""};
  if (!place.document->lost.empty()) {
    return Error{ErrorCode::kInvalid,
                 "what the editor shows is not known: didChange was not valid (" +
                     place.document->lost + "); send the whole text: " + uri,
                 ""};
  }
  const std::string& text = place.document->text;
  std::string problem;
  const std::optional<size_t> cursor =
      documents_.Byte(text, LspAt(p, "position"), "position", &problem);
  if (!cursor) return Error{ErrorCode::kInvalid, problem, ""};
  place.cursor = *cursor;
  completion::CompletionRequest& request = place.request;
  request.prefix = text.substr(0, place.cursor);
  request.suffix = text.substr(place.cursor);
  request.suffix_aware = true;
  request.language = LanguageOf(*place.document, uri);
  request.file = PathOfUri(uri);
  // The index of a repository that is being read is not waited for.
  const bool waits = request.language == monitors::Language::kJava && indexing_.running();
  request.repo = waits ? "" : options_.monitored.repo;
  request.cache = MonitorFlags::CacheFolder();
  request.java_home = MonitorFlags::JavaHome();
  request.monitors = options_.monitored.monitors;
  request.use_monitors = !options_.no_monitors;
  request.max_tokens = options_.max_tokens;
  request.max_prompt_tokens = options_.max_prompt_tokens;
  request.stop = wire_.stop();
  return place;
}

EditorServer::Answer EditorServer::Complete(const std::string& uri, const LspJson& p) {
  Result<Place> place = PlaceAt(uri, p);
  if (!place.ok()) return Wrong(place.error().ToString());
  const std::string& text = place->document->text;
  completion::CompletionRequest& request = place->request;
  LspJson range = nullptr;
  const LspJson& selected = LspAt(LspAt(p, "context"), "selectedCompletionInfo");
  if (selected.is_object()) {
    // The item's text stands in place of its range, and the completion goes on from there.
    range = LspAt(selected, "range");
    std::string problem;
    const auto bytes = documents_.Bytes(text, range, &problem);
    if (!bytes) return Wrong(problem);
    request.prefix = text.substr(0, bytes->first);
    request.suffix = text.substr(bytes->second);
    request.must_begin = LspText(selected, "text");
  }
  request.must_parse = true;
  Result<completion::CompletionResult> done = loaded_.completer->Complete(request);
  if (wire_.stop()->load()) throw Stopped();
  if (!done.ok()) return Wrong(done.error().ToString());
  TellLimits(done->limits);
  LspJson items = LspJson::array();
  const bool extends =
      done->text.starts_with(request.must_begin) && done->text.size() > request.must_begin.size();
  std::string why;
  if (done->text.empty()) {
    why = "the model ends the text here";
  } else if (!done->parses) {
    why = "the file would not parse with what the model writes";
  } else if (!request.must_begin.empty() && !extends) {
    why = "nothing goes on behind the selected item";
  } else {
    LspJson item = {{"insertText", done->text}};
    if (!range.is_null()) item["range"] = range;
    items.push_back(std::move(item));
  }
  Answer answer{.result = {{"items", std::move(items)}}};
  if (!why.empty()) {
    answer.result["pawl"] = {{"why", why}};
    TellEmpty(uri, LspAt(p, "position"), why, false);
  }
  return answer;
}

EditorServer::Answer EditorServer::List(const std::string& uri, const LspJson& p) {
  const Result<Place> place = PlaceAt(uri, p);
  if (!place.ok()) return Wrong(place.error().ToString());
  completion::NameListOptions options;
  options.most = static_cast<size_t>(options_.max_items);
  options.stop = wire_.stop();
  const bool indexing = indexing_.running();
  Result<completion::NameList> list = loaded_.completer->Names(place->request, options);
  if (wire_.stop()->load()) throw Stopped();
  if (!list.ok()) return Wrong(list.error().ToString());
  TellLimits(list->limits);
  Sent sent{.number = ++lists_};
  LspJson items = LspJson::array();
  for (size_t i = 0; i < list->names.size(); ++i) {
    items.push_back(Item(*place, *list, i));
    sent.documentation.push_back(std::move(list->names[i].detail.documentation));
  }
  sent_.push_back(std::move(sent));
  if (sent_.size() > kSentLists) sent_.pop_front();
  Answer answer{.result = {{"isIncomplete", list->open || list->cut || indexing},
                           {"items", std::move(items)}}};
  if (!list->why.empty()) answer.result["pawl"] = {{"why", list->why}};
  if (list->names.empty()) {
    const std::string why = list->why.empty() ? "no name may stand here" : list->why;
    constexpr int kInvoked = 1;
    TellEmpty(uri, LspAt(p, "position"), why,
              LspNumber(LspAt(p, "context"), "triggerKind").value_or(kInvoked) == kInvoked);
  }
  return answer;
}

LspJson EditorServer::Item(const Place& place, const completion::NameList& list,
                           size_t number) const {
  const completion::ListedName& name = list.names[number];
  const std::string& text = place.document->text;
  size_t end = place.cursor;
  while (end < text.size() && monitors::NameByte(text[end])) ++end;
  const LspJson insert = documents_.Range(text, place.cursor - list.begun, place.cursor);
  LspJson edit = {{"newText", name.name}};
  if (client_.insert_replace) {
    edit["insert"] = insert;
    edit["replace"] = documents_.Range(text, place.cursor - list.begun, end);
  } else {
    edit["range"] = insert;
  }
  LspJson item = {
      {"label", name.name},
      {"kind", KindOfItem(name.detail.kind, client_.kinds)},
      {"sortText", fmt::format("{:05}", number)},
      {"textEdit", std::move(edit)},
      {"data", {{"list", lists_}, {"item", number}, {"probability", name.probability}}}};
  if (!name.detail.detail.empty()) item["detail"] = name.detail.detail;
  if (!name.detail.documentation.empty() && !client_.documents_on_resolve)
    item["documentation"] = name.detail.documentation;
  constexpr double kSure = 0.5;
  if (number == 0 && client_.preselect && name.probability > kSure) item["preselect"] = true;
  return item;
}

EditorServer::Answer EditorServer::Resolve(LspJson item) const {
  if (!item.is_object()) return Wrong("the item must be an object");
  const auto list = LspNumber(LspAt(item, "data"), "list");
  const auto number = LspNumber(LspAt(item, "data"), "item");
  if (!list || !number) return Wrong("data: list and item must be those of a list of this server");
  for (const Sent& sent : sent_) {
    if (static_cast<uint64_t>(*list) != sent.number) continue;
    if (static_cast<size_t>(*number) >= sent.documentation.size())
      return Wrong("data: the list has no such item");
    const std::string& documentation = sent.documentation[static_cast<size_t>(*number)];
    if (!documentation.empty()) item["documentation"] = documentation;
  }
  // Of an older list nothing is known any more: the item is as it was.
  return {.result = std::move(item)};
}

void EditorServer::TellEmpty(const std::string& uri, const LspJson& position,
                             const std::string& why, bool asked_for) {
  Log(asked_for ? kLogInfo : kLogLog,
      fmt::format("no completion at {}:{}:{}: {}", PathOfUri(uri),
                  LspNumber(position, "line").value_or(0) + 1,
                  LspNumber(position, "character").value_or(0) + 1, why));
}

void EditorServer::TellLimits(const std::vector<std::string>& limits) {
  for (const std::string& limit : limits) {
    if (told_.insert(limit).second) Note(kLspCommand, "note: " + limit + "; the rest is not known");
  }
}

void EditorServer::Log(int type, const std::string& message) {
  wire_.Send({{"jsonrpc", "2.0"},
              {"method", "window/logMessage"},
              {"params", {{"type", type}, {"message", message}}}});
}

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
