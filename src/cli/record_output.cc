// A file is written answer by answer, so what a killed run leaves is whole but for the end of its
// last answer. A run that goes on cuts that off and counts the rest. Rows of a table are those of
// RFC 4180: a field with a comma, a quote or an end of a line stands in quotes.
#include "src/cli/record_output.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/file.h"
#include "src/base/os/files.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string Cell(const json::Value* value) {
  if (value == nullptr || value->type == json::Type::kNull) return "";
  return Field(value->type == json::Type::kString ? value->text : json::Dump(*value));
}

const json::Value* MemberOf(const std::vector<json::Member>& members, const std::string& name) {
  for (const json::Member& member : members) {
    if (member.first == name) return &member.second;
  }
  return nullptr;
}

// Whole lines, those inside quotes aside, and where the last one ends.
std::pair<int64_t, size_t> CountLines(const std::string& text, bool table) {
  int64_t lines = 0;
  size_t end = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (table && text[i] == '"') quoted = !quoted;
    if (text[i] != '\n' || quoted) continue;
    ++lines;
    end = i + 1;
  }
  return {lines, end};
}

}  // namespace

Result<RecordOutput> RecordOutput::Open(const RecordOutputOptions& options) {
  RecordOutput out;
  if (options.file.empty()) return out;
  out.name_ = options.file;
  out.table_ = options.file.ends_with(".csv");
  out.keep_ = options.keep;
  out.keys_ = options.keys;
  if (!out.table_ && !options.file.ends_with(".jsonl")) {
    return Error{ErrorCode::kInvalid,
                 "must be the name of a .jsonl or .csv file, not " + json::Quote(options.file),
                 "--output"};
  }
  size_t kept = 0;
  if (options.resume && os::Exists(options.file)) {
    const Result<std::string> there = ReadFile(options.file);
    if (!there.ok()) return there.error();
    std::tie(out.done_, kept) = CountLines(*there, out.table_);
    if (out.table_ && out.done_ > 0) --out.done_;  // the names of the columns
  }
  out.file_.reset(std::fopen(options.file.c_str(), kept > 0 ? "r+" : "w"));
  const bool placed = out.file_ != nullptr && os::Truncate(::fileno(out.file_.get()), kept) &&
                      std::fseek(out.file_.get(), 0, SEEK_END) == 0;
  if (!placed) {
    return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
                 options.file};
  }
  if (out.table_ && kept == 0) {
    std::string names;
    for (const auto* const list : {&out.keep_, &out.keys_}) {
      for (const std::string& name : *list) names += Field(name) + ",";
    }
    std::fputs((names + "error\n").c_str(), out.file_.get());
  }
  return out;
}

std::string RecordOutput::RowOf(const RecordAnswer& answer) const {
  const Result<json::Value> record = json::Parse(answer.record);
  std::string row;
  for (const std::string& name : keep_) row += Cell(MemberOf(answer.kept, name)) + ",";
  for (const std::string& key : keys_) {
    row += Cell(record.ok() ? record->Find(key) : nullptr) + ",";
  }
  return row + Field(answer.error);
}

Status RecordOutput::Write(const RecordAnswer& answer) {
  if (file_ == nullptr) {
    Print(answer.line + "\n");
    return {};
  }
  const std::string line = (table_ ? RowOf(answer) : answer.line) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
      std::fflush(file_.get()) == 0) {
    return {};
  }
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno), name_};
}

}  // namespace pawl::cli
