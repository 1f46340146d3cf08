// An edit replaces the bytes of a range. A change without a range is the whole text.
#ifdef PAWL_HAVE_MONITORS
#include "src/cli/lsp_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

namespace pawl::cli {

std::string PathOfUri(const std::string& uri) {
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

std::optional<monitors::Language> LanguageOf(const LspDocument& document, const std::string& uri) {
  const auto named = monitors::LanguageNamed(document.language);
  return named ? named : monitors::LanguageOfFile(uri);
}

void LspDocuments::Open(const std::string& uri, std::string language, std::string text,
                        std::optional<int64_t> version) {
  Close(uri);
  bytes_ += text.size();
  documents_[uri] = {.text = std::move(text),
                     .language = std::move(language),
                     .used = ++uses_,
                     .version = version};
  MakeRoom(uri);
}

void LspDocuments::Close(const std::string& uri) {
  const auto found = documents_.find(uri);
  if (found == documents_.end()) return;
  bytes_ -= found->second.text.size();
  documents_.erase(found);
}

LspDocument* LspDocuments::Find(const std::string& uri) {
  const auto found = documents_.find(uri);
  if (found == documents_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second;
}

void LspDocuments::MakeRoom(const std::string& kept) {
  while (documents_.size() > 1 && (documents_.size() > kMostDocuments || bytes_ > kMostBytes)) {
    const auto oldest = std::ranges::min_element(
        documents_, {}, [](const auto& entry) { return entry.second.used; });
    if (oldest->first == kept) return;
    bytes_ -= oldest->second.text.size();
    documents_.erase(oldest);
  }
}

namespace {

// A change without a range.
bool IsWhole(const LspJson& change) {
  return change.is_object() && LspAt(change, "range").is_null() &&
         LspAt(change, "text").is_string();
}

}  // namespace

void LspDocuments::Apply(std::string& text, const LspJson& change, bool lost,
                         std::string* problem) const {
  const LspJson& with = LspAt(change, "text");
  if (!with.is_string()) {
    *problem = "text must be a string";
    return;
  }
  const auto& replacement = with.get_ref<const std::string&>();
  const bool whole = LspAt(change, "range").is_null();
  if (!whole && lost) {
    *problem = "the whole text has to come first, since an earlier change was not valid";
    return;
  }
  size_t from = 0, to = text.size();
  if (!whole) {
    const auto bytes = Bytes(text, LspAt(change, "range"), problem);
    if (!bytes) return;
    std::tie(from, to) = *bytes;
  }
  const size_t size = text.size() - (to - from) + replacement.size();
  if (size > kMostOfOne) {
    *problem = fmt::format("the document has {} bytes; the limit is {}", size, kMostOfOne);
    return;
  }
  text.replace(from, to - from, replacement);
}

void LspDocuments::Change(const std::string& uri, const LspJson& version, const LspJson& changes,
                          std::string* problem) {
  LspDocument* const document = Find(uri);
  if (document == nullptr) {
    *problem = "no such document is open";
    return;
  }
  if (!version.is_null() && !version.is_number_integer()) {
    *problem = "textDocument.version must be a whole number";
  } else if (version.is_number_integer() && document->version &&
             version.get<int64_t>() < *document->version) {
    // What came late is in the text already, or never was.
    *problem = fmt::format("version {} is older than {}; not applied", version.get<int64_t>(),
                           *document->version);
    return;
  }
  if (problem->empty() && !changes.is_array()) *problem = "contentChanges must be a list";
  // A whole text makes the changes before it, and what was lost, irrelevant.
  size_t first = changes.is_array() ? changes.size() : 0;
  while (first > 0 && !IsWhole(changes[first - 1])) --first;
  const bool lost = !document->lost.empty() && first == 0;
  std::string text = first > 0 || document->text.empty() ? std::string() : document->text;
  for (size_t i = first > 0 ? first - 1 : 0; problem->empty() && i < changes.size(); ++i) {
    Apply(text, changes[i], lost, problem);
    if (!problem->empty()) *problem = fmt::format("contentChanges[{}]: {}", i, *problem);
  }
  if (!problem->empty()) {
    document->lost = *problem;
    return;
  }
  if (changes.empty()) return;
  bytes_ += text.size() - document->text.size();
  document->text = std::move(text);
  document->lost.clear();
  if (version.is_number_integer()) document->version = version.get<int64_t>();
  MakeRoom(uri);
}

std::optional<size_t> LspDocuments::Byte(const std::string& text, const LspJson& position,
                                         const char* name, std::string* problem) const {
  for (const char* part : {"line", "character"}) {
    if (LspNumber(position, part)) continue;
    *problem = fmt::format("{}: {} must be a whole number from 0 to 2147483647", name, part);
    return std::nullopt;
  }
  return completion::ByteAt(
      text, {.line = *LspNumber(position, "line"), .character = *LspNumber(position, "character")},
      unit_);
}

std::optional<std::pair<size_t, size_t>> LspDocuments::Bytes(const std::string& text,
                                                             const LspJson& range,
                                                             std::string* problem) const {
  const std::optional<size_t> from = Byte(text, LspAt(range, "start"), "range.start", problem);
  const std::optional<size_t> to =
      from ? Byte(text, LspAt(range, "end"), "range.end", problem) : std::nullopt;
  if (!to) return std::nullopt;
  return std::pair(std::min(*from, *to), std::max(*from, *to));
}

LspJson LspDocuments::Range(const std::string& text, size_t from, size_t to) const {
  const auto position = [&](size_t byte) -> LspJson {
    const completion::EditorPosition at = completion::PositionAt(text, byte, unit_);
    return {{"line", at.line}, {"character", at.character}};
  };
  return {{"start", position(from)}, {"end", position(to)}};
}

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
