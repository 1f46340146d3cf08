// When an answer counts.
//
//   early    A server that has not read the file yet guesses: clangd lists the words of the text,
//            others nothing. So nothing is asked before the server has published diagnostics of
//            the file or ended its work on it.
//   late     A question has a time limit. Its answer, when it comes, belongs to no question.
//   partial  isIncomplete means that names are missing. Pyright says it of every list; there the
//            type decides.
//   guessed  An item of kind Text is a word of the text: then none of the list is known. Python's
//            servers list what they know of `A | Unknown`, or of a class with __getattr__: the type
//            at the cursor must say nothing of the kind. A server that does not tell the type is
//            never certain.
//   empty    Nothing is known.
//
// A server that ends or writes nonsense is started again, after a pause that doubles.
#include "plugins/monitors/lsp/server.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "src/base/os/processes.h"

namespace pawl::monitors {

// C++: the text is read once with the scanner; for each bracket that is open at its end it is known
// what stands before it, back to the statement's beginning. A "{" whose head has `template`,
// `auto` or `requires` makes types depend on what is not known yet; one whose head has `class`,
// `struct` or `union` is a type that is not finished.

namespace {

std::string_view TrimmedEnd(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' ||
                           text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

bool CertainCpp(std::string_view text, bool whole) {
  Scan scan(Language::kCpp);
  struct Open {
    size_t head;  // where the statement before the bracket begins
    size_t at;
  };
  std::vector<Open> open;
  size_t statement = 0;
  std::vector<size_t> outer;  // statements around
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t before = scan.depth();
    const bool code = scan.in_code();
    scan.Add(text[i]);
    if (scan.depth() > before) {
      open.push_back({statement, i});
      outer.push_back(statement);
      if (text[i] == '{') statement = i + 1;
    } else if (scan.depth() < before && !open.empty()) {
      statement = text[i] == '}' ? i + 1 : outer.back();
      open.pop_back();
      outer.pop_back();
    } else if (code && text[i] == ';' && scan.bracket() != '(') {
      statement = i + 1;
    }
  }
  if (!scan.in_code()) return false;
  // The statement at the cursor itself may be a generic lambda, or a directive.
  const std::string_view now = text.substr(statement);
  if (HasWord(now, "template") || HasWord(now, "define")) return false;
  for (const Open& bracket : open) {
    const std::string_view head = text.substr(bracket.head, bracket.at - bracket.head);
    if (text[bracket.at] != '{') continue;
    for (const char* word : {"template", "auto", "requires", "concept"}) {
      if (HasWord(head, word)) return false;
    }
    if (whole) continue;
    const bool call = head.find(')') != std::string_view::npos;
    for (const char* word : {"class", "struct", "union"}) {
      if (!call && HasWord(head, word)) return false;
    }
  }
  return true;
}

size_t IndentOf(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? line.size() : first;
}

// The name before the "." at the end, empty when that is no name alone.
std::string_view Receiver(std::string_view text) {
  text = TrimmedEnd(text);
  if (text.empty()) return {};
  text.remove_suffix(1);
  size_t start = text.size();
  while (start > 0 && NameByte(text[start - 1])) --start;
  if (start > 0 && text[start - 1] == '.') return {};
  return text.substr(start);
}

}  // namespace

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !NameByte(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !NameByte(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

bool BehindMember(Language language, std::string_view text) {
  if (text.size() < 2) return false;
  const bool arrow = language == Language::kCpp && text.ends_with("->");
  if (!arrow && text.back() != '.') return false;
  text.remove_suffix(arrow ? 2 : 1);
  text = TrimmedEnd(text);
  if (text.empty()) return false;
  const char last = text.back();
  if (!NameByte(last) && last != ')' && last != ']' && last != '"' && last != '\'') return false;
  size_t start = text.size();
  while (start > 0 && NameByte(text[start - 1])) --start;
  // "1.": the point of a number. "from .": where modules are searched.
  return start == text.size() || NameStart(text[start]);
}

bool CertainPlace(Language language, std::string_view text, bool whole) {
  if (language == Language::kCpp) return CertainCpp(text, whole);
  if (language != Language::kPython) return true;
  const std::string_view receiver = Receiver(text);
  if (receiver == "self" || receiver == "cls") return false;
  const size_t line = text.rfind('\n') + 1;
  const std::string_view now = text.substr(line);
  const std::string_view code = now.substr(IndentOf(now));
  // Modules, and attributes that come into being when they are written.
  return !code.starts_with("import ") && !code.starts_with("from ");
}

std::vector<std::string> AlsoPossible(Language language, std::string_view text) {
  if (language != Language::kCpp) return {};
  constexpr std::string_view kBeforeTypes[] = {"define",    "class",     "struct",  "union",
                                               "namespace", "public",    "private", "protected",
                                               "using",     "namespace", "typename"};
  std::set<std::string_view> names = {"template", "operator"};
  std::string_view before;
  for (size_t at = 0; at < text.size();) {
    if (!NameStart(text[at])) {
      const char c = text[at++];
      if (c != ' ' && c != '\t') before = {};
      continue;
    }
    size_t end = at;
    while (end < text.size() && NameByte(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    const bool type = std::find(std::begin(kBeforeTypes), std::end(kBeforeTypes), before) !=
                      std::end(kBeforeTypes);
    if (type || text.substr(end).starts_with("::")) names.insert(name);
    before = name;
    at = end;
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> EnclosingClasses(std::string_view text) {
  std::vector<std::string> names;
  size_t least = std::string_view::npos;
  for (size_t end = text.size();;) {
    const size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin, end - begin);
    const size_t indent = IndentOf(line);
    const std::string_view code = line.substr(indent);
    if (!code.empty() && code[0] != '#' && (indent < least || end == text.size())) {
      if (code.starts_with("class ") && indent < least && end != text.size()) {
        size_t stop = 6;
        while (stop < code.size() && NameByte(code[stop])) ++stop;
        names.emplace_back(code.substr(6, stop - 6));
      }
      least = std::min(least, indent);
    }
    if (begin == 0) return names;
    end = begin - 1;
  }
}

namespace {

using Json = nlohmann::json;

constexpr size_t kCacheBytes = size_t{8} << 20;
constexpr size_t kMostDocuments = 64;
constexpr int kText = 1, kKeyword = 14, kSnippet = 15, kFile = 17, kFolder = 19;

LspClock::time_point After(double seconds) {
  return LspClock::now() + std::chrono::duration_cast<LspClock::duration>(
                               std::chrono::duration<double>(std::clamp(seconds, 0.0, 3600.0)));
}

const Json& At(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string Text(const Json& object, const char* key) {
  const Json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string UriOf(const std::string& path) {
  std::string uri = "file://";
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '.' ||
                       c == '-' || c == '_' || c == '~';
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += kDigits[static_cast<unsigned char>(c) >> 4];
      uri += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  return uri;
}

// Line and column in UTF-16 units.
Json PositionOf(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  int64_t units = 0;
  for (size_t i = newline == std::string_view::npos ? 0 : newline + 1; i < at; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xC0) != 0x80) units += c >= 0xF0 ? 2 : 1;
  }
  return {{"line", line}, {"character", units}};
}

std::string IdOf(Language language) {
  return language == Language::kCpp ? "cpp" : LanguageName(language);
}

// clangd's own limit on results would make lists partial.
std::string Completed(std::string command) {
  const size_t end = std::min(command.find(' '), command.size());
  const size_t slash = command.rfind('/', end == 0 ? 0 : end - 1);
  const std::string program = command.substr(slash == std::string::npos ? 0 : slash + 1,
                                             end - (slash == std::string::npos ? 0 : slash + 1));
  if (program.starts_with("clangd") && command.find("--limit-results") == std::string::npos) {
    command += " --limit-results=0 --header-insertion=never";
  }
  return command;
}

}  // namespace

LspServer::LspServer(LspSetting setting) : setting_(std::move(setting)) {
  std::error_code error;
  const std::string root = setting_.root.empty() ? "." : setting_.root;
  root_ = std::filesystem::absolute(root, error).lexically_normal().string();
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

LspServer::~LspServer() = default;

LspCounts LspServer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void LspServer::Drop() {
  if (process_ != nullptr) ++counts_.failures;
  process_.reset();
  initialized_ = false;
  documents_.clear();
  const uint64_t doublings = std::min<uint64_t>(counts_.failures, 8);
  not_before_ = After(0.05 * static_cast<double>(uint64_t{1} << doublings));
}

void LspServer::Notify(const char* method, Json params, LspClock::time_point deadline) {
  (void)process_->Send({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}},
                       deadline);
}

// What the server says or asks while we wait for something else.
void LspServer::Handle(const Json& message, LspClock::time_point deadline) {
  const std::string method = Text(message, "method");
  if (method.empty()) return;  // an answer that is not awaited any more
  const Json& params = At(message, "params");
  if (message.contains("id")) {
    Json result;
    if (method == "workspace/configuration") {
      result = Json::array();
      const Json& items = At(params, "items");
      for (size_t i = 0; i < items.size(); ++i) result.push_back(nullptr);
    } else if (method == "workspace/workspaceFolders") {
      result = Json::array({{{"uri", UriOf(root_)}, {"name", "root"}}});
    }
    (void)process_->Send({{"jsonrpc", "2.0"}, {"id", message["id"]}, {"result", result}}, deadline);
    return;
  }
  if (method == "textDocument/publishDiagnostics") {
    const auto document = documents_.find(Text(params, "uri"));
    if (document != documents_.end()) document->second.read = true;
  }
}

std::optional<Json> LspServer::Request(const char* method, Json params,
                                       LspClock::time_point deadline) {
  const int64_t id = next_id_++;
  if (!process_->Send(
          {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}},
          deadline)) {
    return std::nullopt;
  }
  while (auto message = process_->Receive(deadline)) {
    const Json& answered = At(*message, "id");
    const bool ours = !message->contains("method") && answered.is_number_integer() &&
                      answered.get<int64_t>() == id;
    if (!ours) {
      Handle(*message, deadline);
      continue;
    }
    if (message->contains("error")) return std::nullopt;
    return At(*message, "result");
  }
  if (!process_->dead()) Notify("$/cancelRequest", {{"id", id}}, After(0.01));
  return std::nullopt;
}

bool LspServer::Initialize(LspClock::time_point deadline) {
  const Json completion = {
      {"completionItem", {{"snippetSupport", false}, {"insertReplaceSupport", false}}},
      {"contextSupport", true}};
  const Json capabilities = {{"general", {{"positionEncodings", {"utf-16"}}}},
                             {"workspace", {{"configuration", true}, {"workspaceFolders", true}}},
                             {"textDocument",
                              {{"completion", completion},
                               {"hover", {{"contentFormat", {"plaintext"}}}},
                               {"publishDiagnostics", {{"versionSupport", true}}},
                               {"synchronization", Json::object()}}}};
  const std::optional<Json> result =
      Request("initialize",
              {{"processId", os::ThisProcess()},
               {"rootUri", UriOf(root_)},
               {"rootPath", root_},
               {"workspaceFolders", {{{"uri", UriOf(root_)}, {"name", "root"}}}},
               {"capabilities", capabilities}},
              deadline);
  if (!result) return false;
  const std::string name = Text(At(*result, "serverInfo"), "name") + " " + setting_.command;
  always_partial_ = name.find("pyright") != std::string::npos;
  Notify("initialized", Json::object(), deadline);
  initialized_ = true;
  return !process_->dead();
}

// Whether there is a server that can be asked.
bool LspServer::Ready(LspClock::time_point deadline) {
  if (process_ != nullptr && process_->dead()) Drop();
  if (process_ == nullptr) {
    if (LspClock::now() < not_before_) return false;
    auto started = LspProcess::Start(Completed(setting_.command));
    ++counts_.starts;
    if (!started.ok()) {
      ++counts_.failures;
      Drop();
      return false;
    }
    process_ = *std::move(started);
  }
  if (initialized_) return true;
  // The first answer takes its time, whatever a question may take.
  if (Initialize(std::max(deadline, After(setting_.start_seconds)))) return true;
  Drop();
  return false;
}

std::string LspServer::Update(Language language, const std::string& file, std::string text,
                              LspClock::time_point deadline) {
  std::string path = file;
  if (path.empty()) {
    path = language == Language::kPython ? "pawl_unnamed.py"
           : language == Language::kJava ? "PawlUnnamed.java"
           : language == Language::kCpp  ? "pawl_unnamed.cc"
                                         : "pawl_unnamed.ts";
  }
  if (!path.starts_with("/")) path = root_ + "/" + path;
  const std::string uri = UriOf(std::filesystem::path(path).lexically_normal().string());
  const auto found = documents_.find(uri);
  if (found != documents_.end()) {
    Document& document = found->second;
    if (document.text == text) return uri;
    ++document.version;
    Notify("textDocument/didChange",
           {{"textDocument", {{"uri", uri}, {"version", document.version}}},
            {"contentChanges", {{{"text", text}}}}},
           deadline);
    document.text = std::move(text);
    return uri;
  }
  if (documents_.size() >= kMostDocuments) {
    const auto oldest = documents_.begin();
    Notify("textDocument/didClose", {{"textDocument", {{"uri", oldest->first}}}}, deadline);
    documents_.erase(oldest);
  }
  Notify("textDocument/didOpen",
         {{"textDocument",
           {{"uri", uri}, {"languageId", IdOf(language)}, {"version", 1}, {"text", text}}}},
         deadline);
  documents_[uri] = Document{IdOf(language), 1, std::move(text)};
  return uri;
}

bool LspServer::WaitUntilRead(const std::string& uri, LspClock::time_point deadline) {
  for (;;) {
    const auto document = documents_.find(uri);
    if (document == documents_.end()) return false;
    if (document->second.read) return true;
    const auto message = process_->Receive(deadline);
    if (!message) return false;
    Handle(*message, deadline);
  }
}

void LspServer::Show(Language language, const std::string& file, std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto deadline = After(setting_.limit_seconds);
  if (Ready(deadline)) (void)Update(language, file, std::string(text), deadline);
}

std::shared_ptr<const Completions> LspServer::Ask(const LspQuestion& question) {
  if (!CertainPlace(question.language, question.text, !question.suffix.empty())) return nullptr;
  const std::lock_guard lock(mutex_);
  std::string key = std::string(question.file) + '\n';
  key.append(question.text).append(1, '\0').append(question.suffix);
  ++counts_.asked;
  if (const auto found = cached_.find(key); found != cached_.end()) {
    ++counts_.cached;
    cache_.splice(cache_.begin(), cache_, found->second);
    return found->second->second;
  }
  const auto failed = [&](uint64_t& why) -> std::shared_ptr<const Completions> {
    if (process_ != nullptr && process_->dead()) {
      Drop();
    } else {
      ++why;
    }
    return nullptr;
  };
  const bool first = process_ == nullptr && counts_.starts == 0;
  auto deadline = After(setting_.limit_seconds);
  if (!Ready(deadline)) return nullptr;
  std::string whole(question.text);
  whole += question.suffix.empty() ? "\n" : question.suffix;
  const Json position = PositionOf(whole, question.text.size());
  deadline = After(setting_.limit_seconds);
  const std::string uri = Update(question.language, question.file, std::move(whole), deadline);
  // Reading a file for the first time may take longer than a question.
  const double patience = first ? setting_.start_seconds : setting_.read_seconds;
  if (!WaitUntilRead(uri, std::max(deadline, After(patience)))) return failed(counts_.early);
  deadline = After(setting_.limit_seconds);
  const Json document = {{"uri", uri}};
  const std::optional<Json> result = Request(
      "textDocument/completion",
      {{"textDocument", document}, {"position", position}, {"context", {{"triggerKind", 1}}}},
      deadline);
  if (!result) return failed(counts_.late);
  std::shared_ptr<const Completions> names = Answer(question, *result, uri, position, deadline);
  if (process_->dead()) return failed(counts_.late);
  if (names != nullptr) ++counts_.known;
  Remember(key, names);
  return names;
}

void LspServer::Remember(const std::string& key, std::shared_ptr<const Completions> names) {
  const auto size = [](const Cached& entry) {
    size_t bytes = 2 * entry.first.size() + 200;
    if (entry.second == nullptr) return bytes;
    for (const std::string& name : entry.second->names) bytes += name.size() + 32;
    return bytes;
  };
  cache_.emplace_front(key, std::move(names));
  cached_[key] = cache_.begin();
  cache_bytes_ += size(cache_.front());
  while (cache_bytes_ > kCacheBytes && cache_.size() > 1) {
    cache_bytes_ -= size(cache_.back());
    cached_.erase(cache_.back().first);
    cache_.pop_back();
  }
}

std::shared_ptr<const Completions> LspServer::Answer(const LspQuestion& question,
                                                     const Json& result, const std::string& uri,
                                                     const Json& position,
                                                     LspClock::time_point deadline) {
  const Json& items = result.is_array() ? result : At(result, "items");
  const Json& incomplete = At(result, "isIncomplete");
  if (incomplete.is_boolean() && incomplete.get<bool>() && !always_partial_) {
    ++counts_.partial;
    return nullptr;
  }
  std::set<std::string> names;
  for (const Json& item : items) {
    const Json& number = At(item, "kind");
    const int kind = number.is_number_integer() ? number.get<int>() : 0;
    if (kind == kText) {
      ++counts_.guessed;
      return nullptr;
    }
    if (kind == kKeyword || kind == kSnippet || kind == kFile || kind == kFolder) continue;
    // It would change what is written already, "." into "->" for example.
    const Json& edits = At(item, "additionalTextEdits");
    if (edits.is_array() && !edits.empty()) continue;
    std::string text = Text(At(item, "textEdit"), "newText");
    if (text.empty()) text = Text(item, "insertText");
    if (text.empty()) text = Text(item, "filterText");
    if (text.empty()) text = Text(item, "label");
    text.erase(0, text.find_first_not_of(" \t"));
    size_t end = 0;
    while (end < text.size() && NameByte(text[end])) ++end;
    if (end > 0 && NameStart(text[0])) names.insert(text.substr(0, end));
  }
  if (names.empty()) {
    ++counts_.empty;
    return nullptr;
  }
  if (question.language == Language::kPython) {
    if (names.contains("__getattr__") || !CertainOfType(question, uri, position, deadline)) {
      ++counts_.guessed;
      return nullptr;
    }
  }
  for (std::string& word : AlsoPossible(question.language, question.text)) {
    names.insert(std::move(word));
  }
  auto completions = std::make_shared<Completions>();
  completions->names.assign(names.begin(), names.end());
  return completions;
}

// What the server says of the expression before the "." when one points at it.
bool LspServer::CertainOfType(const LspQuestion& question, const std::string& uri,
                              const Json& position, LspClock::time_point deadline) {
  Json at = position;
  at["character"] = std::max<int64_t>(0, at["character"].get<int64_t>() - 2);
  const std::optional<Json> hover =
      Request("textDocument/hover", {{"textDocument", {{"uri", uri}}}, {"position", at}}, deadline);
  if (!hover) return false;
  const Json& contents = At(*hover, "contents");
  std::string text;
  if (contents.is_string()) text = contents.get<std::string>();
  if (contents.is_object()) text = Text(contents, "value");
  if (contents.is_array()) {
    for (const Json& part : contents) {
      text += part.is_string() ? part.get<std::string>() : Text(part, "value");
      text += "\n";
    }
  }
  text = text.substr(0, text.find("\n\n"));  // what follows is documentation
  if (text.empty()) return false;
  for (const char* word : {"Unknown", "Any", "Self", "Module"}) {
    if (HasWord(text, word)) return false;
  }
  // Types that the cursor stands in have members that are not written yet.
  if (question.suffix.empty()) {
    for (const std::string& name : EnclosingClasses(question.text)) {
      if (HasWord(text, name)) return false;
    }
  }
  return true;
}

namespace {

class LspMonitor : public Monitor {
 public:
  LspMonitor(std::shared_ptr<LspServer> server, Language language, std::string file)
      : server_(std::move(server)), language_(language), file_(std::move(file)) {}
  const char* name() const override { return "lsp"; }
  bool Triggered(const Cursor& c) const override {
    return NameStart(c.next) && BehindMember(language_, c.text);
  }
  Verdict Ask(const Cursor& c, Analysis&) const override {
    Verdict verdict;
    verdict.names =
        server_->Ask({.language = language_, .file = file_, .text = c.text, .suffix = c.suffix});
    return verdict;
  }

 private:
  const std::shared_ptr<LspServer> server_;
  const Language language_;
  const std::string file_;
};

}  // namespace

std::unique_ptr<Monitor> MakeLspMonitor(std::shared_ptr<LspServer> server, Language language,
                                        std::string file) {
  return std::make_unique<LspMonitor>(std::move(server), language, std::move(file));
}

}  // namespace pawl::monitors
