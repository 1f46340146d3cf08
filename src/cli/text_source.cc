// A row of a table (RFC 4180) goes on over the ends of lines inside quotes. Its first row has the
// names of the columns: "text" is the text, the others are members as those of a line of JSON.
#include "src/cli/text_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/file.h"
#include "src/base/utf8.h"
#include "src/engine/loaded_model.h"
#include "src/input/csv.h"

namespace pawl::cli {
namespace {

// Reads a JSON string, or an object with one under "text". An object without one has its members.
Status ReadTextLine(std::string_view line, TextEntry& out) {
  if (Status status = CheckExtractText(line); !status.ok()) return status;
  Result<json::Value> value = json::Parse(line);
  if (!value.ok()) return value.error();
  out.more = std::move(value->members);
  const auto found = std::ranges::find(out.more, "text", &json::Member::first);
  const json::Value& text = found == out.more.end() ? *value : found->second;
  if (text.type != json::Type::kString) {
    return Error{ErrorCode::kInvalid, "must be a JSON string, or an object with a string \"text\"",
                 ""};
  }
  out.text = text.text;
  if (found != out.more.end()) out.more.erase(found);
  if (Status status = CheckExtractText(out.text); !status.ok()) {
    return InFile("text", status.error());
  }
  return {};
}

class JsonLines : public TextSource {
 public:
  explicit JsonLines(LineReader reader) : reader_(std::move(reader)) {}

  Result<std::optional<TextEntry>> Next() override {
    const Result<std::optional<std::string>> line = reader_.Next();
    if (!line.ok()) return line.error();
    if (!line->has_value()) return std::optional<TextEntry>();
    TextEntry out;
    out.status = ReadTextLine(**line, out);
    end_ += static_cast<int64_t>((*line)->size()) + 1;
    out.end = end_;
    return std::optional(std::move(out));
  }
  Result<bool> Ready() override { return reader_.Ready(); }

 private:
  LineReader reader_;
  int64_t end_ = 0;
};

class TableRows : public TextSource {
 public:
  TableRows(LineReader reader, std::string name)
      : reader_(std::move(reader)), name_(std::move(name)) {}

  Result<std::optional<TextEntry>> Next() override {
    if (names_.empty()) {
      Result<std::optional<std::vector<std::string>>> head = Row();
      if (!head.ok()) return head.error();
      if (head->has_value()) names_ = **std::move(head);
      if (!names_.empty() && names_[0].starts_with("\xEF\xBB\xBF")) names_[0].erase(0, 3);
      if (std::ranges::find(names_, "text") == names_.end()) {
        return Error{ErrorCode::kInvalid, "the first row names no column \"text\"", name_};
      }
      for (const std::string& name : names_) {
        if (std::ranges::count(names_, name) == 1) continue;
        return Error{ErrorCode::kInvalid, "the first row names two columns " + json::Quote(name),
                     name_};
      }
    }
    Result<std::optional<std::vector<std::string>>> row = Row();
    if (!row.ok()) return row.error();
    if (!row->has_value()) return std::optional<TextEntry>();
    TextEntry out;
    out.end = end_;
    if ((*row)->size() != names_.size()) {
      out.status = Error{
          ErrorCode::kInvalid,
          "has " + std::to_string((*row)->size()) + " fields, not " + std::to_string(names_.size()),
          ""};
      return std::optional(std::move(out));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      std::string& field = (**row)[i];
      if (Status status = CheckUtf8(field); !status.ok() && out.status.ok()) {
        out.status = InFile(names_[i], status.error());
      }
      if (names_[i] == "text") {
        out.text = std::move(field);
        continue;
      }
      json::Value value;
      value.type = json::Type::kString;
      value.text = std::move(field);
      out.more.emplace_back(names_[i], std::move(value));
    }
    const Status text = CheckExtractText(out.text);
    if (out.status.ok() && !text.ok()) out.status = InFile("text", text.error());
    return std::optional(std::move(out));
  }
  // A row may go on over many lines; one of them is there.
  Result<bool> Ready() override { return reader_.Ready(); }

 private:
  // nullopt after the last one. Empty lines are no rows.
  Result<std::optional<std::vector<std::string>>> Row() {
    CsvRow row;
    ++row_;
    const auto at_row = [&](Error error) {
      error.place = "row " + std::to_string(row_) + (error.place.empty() ? "" : ": ") + error.place;
      return InFile(name_, error);
    };
    for (;;) {
      const Result<std::optional<std::string>> line = reader_.Next();
      if (!line.ok()) return line.error();
      if (!line->has_value()) {
        if (row.open()) return at_row({ErrorCode::kInvalid, "ends inside quotes", ""});
        return std::optional<std::vector<std::string>>();
      }
      end_ += static_cast<int64_t>((*line)->size()) + 1;
      if (!row.open() && (*line)->find_first_not_of("\r") == std::string::npos) continue;
      if (Status status = row.Add(**line); !status.ok()) return at_row(status.error());
      if (row.size() > kMaxFileBytes) {
        return at_row({ErrorCode::kLimit, "has more bytes than a text may have", ""});
      }
      if (!row.open()) return std::optional(row.Take());
    }
  }

  LineReader reader_;
  const std::string name_;
  std::vector<std::string> names_;
  int64_t row_ = 0;  // the one with the names is 1
  int64_t end_ = 0;
};

}  // namespace

Result<std::unique_ptr<TextSource>> TextSource::Open(const std::string& path, InputFormat format) {
  Result<LineReader> reader = LineReader::Open(path);
  if (!reader.ok()) return reader.error();
  std::unique_ptr<TextSource> out;
  if (format == InputFormat::kCsv) {
    out = std::make_unique<TableRows>(*std::move(reader), path == "-" ? "standard input" : path);
  } else {
    out = std::make_unique<JsonLines>(*std::move(reader));
  }
  std::error_code error;
  if (path != "-" && std::filesystem::is_regular_file(path, error)) {
    const auto size = std::filesystem::file_size(path, error);
    if (!error) out->bytes_ = static_cast<int64_t>(size);
  }
  return out;
}

}  // namespace pawl::cli
