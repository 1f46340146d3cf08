// Only files that the listing of the folder found are ever read, so no URI leads out of it.
#include "src/cli/documents.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"

namespace pawl::cli {

namespace fs = std::filesystem;

namespace {
constexpr size_t kMaxFiles = 10'000;

// RFC 3986: a scheme, a colon, and no white space or control characters.
bool IsAbsoluteUri(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto in_scheme = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && letter(text[0]) &&
         std::ranges::all_of(text.substr(0, colon), in_scheme) &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' '; });
}

// The path that a URI's path stands for (RFC 3986, section 2.1); nullopt where an escape is broken,
// or stands for a slash, which would come to part names that the URI does not part.
std::optional<std::string> DecodePath(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out.push_back(path[i]);
      continue;
    }
    if (path.size() - i < 3) return std::nullopt;
    unsigned value = 0;
    const char* end = path.data() + i + 3;
    if (std::from_chars(path.data() + i + 1, end, value, 16).ptr != end) return std::nullopt;
    if (value == '/') return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

size_t MaxBytes() { return static_cast<size_t>(JsonSchemaOptions().max_schema_bytes); }
}  // namespace

Result<std::shared_ptr<const DocumentFolder>> DocumentFolder::Open(const std::string& folder,
                                                                   const std::string& base) {
  if (!IsAbsoluteUri(base)) {
    return Error{ErrorCode::kInvalid, "must be a URI such as http://localhost:1234/",
                 "--ref-base " + json::Quote(base)};
  }
  const std::string place = "--ref-dir " + folder;
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != ".json" || !it->is_regular_file(error)) continue;
    files.push_back(it->path());
    if (files.size() > kMaxFiles) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(kMaxFiles) + " JSON files",
                   place};
    }
  }
  if (error) return Error{ErrorCode::kIo, error.message(), place};
  std::sort(files.begin(), files.end());
  auto out = std::make_shared<DocumentFolder>();
  out->folder_ = folder;
  out->base_ = base.back() == '/' ? base : base + "/";
  for (const fs::path& file : files)
    out->file_at_.emplace(file.lexically_relative(folder).generic_string(), file.string());
  // Among equal identifiers the first file in order of names counts.
  for (const fs::path& file : files) {
    // What is too large or no JSON is an error only for who refers to it.
    const auto text = ReadFile(file.string(), MaxBytes());
    if (!text.ok() && text.error().code == ErrorCode::kLimit) continue;
    if (!text.ok()) return Error{ErrorCode::kIo, text.error().ToString(), place};
    const auto document = json::Parse(*text);
    if (!document.ok()) continue;
    for (const char* name : {"$id", "id"}) {
      const json::Value* id = document->Find(name);
      if (id != nullptr && id->type == json::Type::kString)
        out->file_of_.emplace(id->text.substr(0, id->text.find('#')), file.string());
    }
  }
  return std::shared_ptr<const DocumentFolder>(std::move(out));
}

Result<std::string> DocumentFolder::Find(std::string_view uri) const {
  if (uri.starts_with(base_)) {
    const std::string_view written = uri.substr(base_.size());
    const std::optional<std::string> path = DecodePath(written);
    auto it = path.has_value() ? file_at_.find(*path) : file_at_.end();
    // A name with a percent sign that is not escaped as it should be.
    if (it == file_at_.end()) it = file_at_.find(written);
    if (it != file_at_.end()) return ReadFile(it->second, MaxBytes());
  }
  const auto it = file_of_.find(uri);
  if (it != file_of_.end()) return ReadFile(it->second, MaxBytes());
  return Error{ErrorCode::kIo, "no file in " + folder_ + " has this identifier or path", ""};
}

}  // namespace pawl::cli
