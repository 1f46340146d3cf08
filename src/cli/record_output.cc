// A file is written answer by answer, so what a killed run leaves is whole but for the end of its
// last answer. A run that goes on cuts that off and counts the rest, which has to be its own: the
// file stays as it is until the first answer is written. Rows of a table are those of
// RFC 4180: a field with a comma, a quote or an end of a line stands in quotes.
#include "src/cli/record_output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

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

// The fields of a row; 0 where a quote stays open.
size_t FieldsOf(const std::string& row) {
  bool quoted = false;
  size_t fields = 1;
  for (const char c : row) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++fields;
  }
  return quoted ? 0 : fields;
}

// What stands in the fields of a row that is whole.
std::vector<std::string> CellsOf(const std::string& row) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"') {
      if (quoted && i + 1 < row.size() && row[i + 1] == '"')
        out.back() += row[++i];
      else
        quoted = !quoted;
    } else if (row[i] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += row[i];
    }
  }
  return out;
}

// A line of `{"error": ...}` for the text of this number.
bool IsErrorLine(const json::Value& line, int64_t number) {
  const json::Value* const error = line.Find("error");
  const json::Value* const of = error == nullptr ? nullptr : error->Find("line");
  return of != nullptr && of->text == std::to_string(number) && error->Find("message") != nullptr;
}

// What is wrong with a line of JSON as the answer of this number; empty: nothing.
std::string ProblemOfLine(const std::string& text, int64_t number,
                          const RecordOutputOptions& options) {
  Result<json::Value> line = json::Parse(text);
  if (!line.ok()) return "it is not JSON: " + line.error().ToString();
  if (IsErrorLine(*line, number)) return "";
  const json::Value* record = &*line;
  if (options.details) {
    const json::Value* const index = line->Find("index");
    record = line->Find("record");
    if (record == nullptr || index == nullptr) return "it is no line of --details";
    if (index->text != std::to_string(number - 1)) {
      return "its index is " + json::Dump(*index) + ", not " + std::to_string(number - 1);
    }
  }
  json::Value own = *record;
  std::erase_if(own.members, [&](const json::Member& member) {
    return std::ranges::find(options.keep, member.first) != options.keep.end();
  });
  const Status fits = options.check ? options.check(own) : Status();
  return fits.ok() ? "" : fits.error().ToString();
}

}  // namespace

bool IsMemberOfDetails(std::string_view name) {
  static constexpr std::string_view kOwn[] = {
      "index",    "record",       "reasoning", "spans",         "byte_spans",    "probability",
      "surprise", "alternatives", "conflicts", "chunks",        "file_spans",    "boxes",
      "error",    "closed",       "closed_by", "finish_reason", "prompt_tokens", "output_tokens"};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

Result<RecordOutput> RecordOutput::Open(const RecordOutputOptions& options) {
  RecordOutput out;
  if (options.file.empty()) return out;
  out.name_ = options.file;
  out.table_ = options.file.ends_with(".csv");
  out.keep_ = options.keep;
  out.keys_ = options.keys;
  out.options_ = options;
  if (!out.table_ && !options.file.ends_with(".jsonl")) {
    return Error{ErrorCode::kInvalid,
                 "must be the name of a .jsonl or .csv file, not " + json::Quote(options.file),
                 "--output"};
  }
  const bool goes_on = options.resume && os::Exists(options.file);
  if (goes_on) {
    if (Status status = out.ReadDone(options); !status.ok()) return status.error();
  }
  out.file_.reset(std::fopen(options.file.c_str(), goes_on ? "r+" : "w"));
  if (out.file_ == nullptr) {
    return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
                 options.file};
  }
  out.begun_ = false;
  if (goes_on) return out;
  if (Status status = out.Begin(); !status.ok()) return status.error();
  return out;
}

std::string RecordOutput::HeaderOf() const {
  std::string names;
  for (const auto* const list : {&keep_, &keys_}) {
    for (const std::string& name : *list) names += Field(name) + ",";
  }
  return names + "error";
}

// What a killed run leaves of its last answer.
Status RecordOutput::CheckTail(const std::string& tail, const RecordOutputOptions& options) const {
  if (tail.empty()) return {};
  const std::string header = HeaderOf() + "\n";
  const bool object = options.details || !options.keys.empty();
  const bool good = !table_      ? !object || tail[0] == '{'
                    : kept_ == 0 ? header.starts_with(tail)
                                 : FieldsOf(tail) <= keep_.size() + keys_.size() + 1;
  if (good) return {};
  return Error{ErrorCode::kInvalid, "is no part of an answer of this run",
               name_ + ": line " + std::to_string(next_line_)};
}

Result<AnswerReader> AnswerReader::Open(const std::string& name, bool table) {
  AnswerReader out;
  out.name_ = name;
  out.table_ = table;
  out.file_.reset(std::fopen(name.c_str(), "r"));
  if (out.file_ != nullptr) return out;
  return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno), name};
}

Result<std::optional<std::string>> AnswerReader::Next() {
  constexpr size_t kBlock = size_t{64} << 10;
  std::string answer;
  line_ = next_;
  for (;;) {
    if (at_ == block_.size()) {
      block_.resize(kBlock);
      block_.resize(std::fread(block_.data(), 1, kBlock, file_.get()));
      at_ = 0;
      if (block_.empty()) break;
    }
    const size_t end = std::min(block_.find('\n', at_), block_.size() - 1) + 1;
    answer.append(block_, at_, end - at_);
    at_ = end;
    if (answer.back() != '\n') continue;
    ++next_;
    if (table_ && FieldsOf(answer) == 0) continue;
    bytes_ += static_cast<int64_t>(answer.size());
    answer.pop_back();
    return std::optional<std::string>(std::move(answer));
  }
  if (std::ferror(file_.get()) != 0)
    return Error{ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno), name_};
  tail_ = std::move(answer);
  return std::optional<std::string>();
}

Error RecordOutput::NotOfThisRun(const std::string& problem, int64_t line) const {
  return {ErrorCode::kInvalid,
          "is no answer of this run: " + problem +
              "; name another --output, or start again without --resume",
          name_ + ": line " + std::to_string(line)};
}

Status RecordOutput::ReadDone(const RecordOutputOptions& options) {
  Result<AnswerReader> reader = AnswerReader::Open(name_, table_);
  if (!reader.ok()) return reader.error();
  for (;;) {
    const Result<std::optional<std::string>> answer = reader->Next();
    if (!answer.ok()) return answer.error();
    next_line_ = reader->line();
    if (!*answer) break;
    const bool header = table_ && kept_ == 0;
    kept_ = reader->bytes();
    std::string problem;
    if (!table_) {
      problem = ProblemOfLine(**answer, ++done_, options);
    } else if (header) {
      if (**answer != HeaderOf())
        problem = "its columns are " + **answer + ", those of this run " + HeaderOf();
    } else {
      ++done_;
      const size_t fields = FieldsOf(**answer);
      if (fields != keep_.size() + keys_.size() + 1)
        problem = "it has " + std::to_string(fields) + " fields";
    }
    if (!problem.empty()) return NotOfThisRun(problem, reader->line());
  }
  return CheckTail(reader->tail(), options);
}

std::string RecordOutput::ProblemOfRow(const std::string& row, const std::string& text,
                                       const std::vector<json::Member>& more) const {
  const std::vector<std::string> cells = CellsOf(row);
  size_t at = 0;
  for (const std::string& name : keep_) {
    const json::Value* const value = MemberOf(more, name);
    const std::string right = CellsOf(Cell(value))[0];
    if (cells[at] != right)
      return name + " is " + json::Quote(cells[at]) + ", in its text " + json::Quote(right);
    ++at;
  }
  if (!options_.check_cell || !cells.back().empty()) return "";
  for (const std::string& key : keys_) {
    const std::string& cell = cells[at++];
    if (cell.empty()) continue;
    const Status copied = options_.check_cell(key, cell, text);
    if (!copied.ok()) return copied.error().ToString();
  }
  return "";
}

std::string RecordOutput::ProblemOfLineOf(const std::string& line, const std::string& text,
                                          const std::vector<json::Member>& more) const {
  Result<json::Value> answer = json::Parse(line);
  if (!answer.ok()) return "it is not JSON: " + answer.error().ToString();
  const bool error = answer->Find("error") != nullptr && answer->Find("error")->Find("line");
  const bool details = options_.details && !error;
  json::Value record = *answer;
  if (details && answer->Find("record") != nullptr) record = *answer->Find("record");
  const auto differs = [](const json::Value* is, const json::Value* right) {
    const std::string none = "not there";
    const std::string one = is == nullptr ? none : json::Dump(*is);
    const std::string two = right == nullptr ? none : json::Dump(*right);
    return one == two ? "" : "is " + one + ", in its text " + two;
  };
  for (const std::string& name : keep_) {
    if (record.type != json::Type::kObject) break;
    const std::string how = differs(record.Find(name), MemberOf(more, name));
    if (!how.empty()) return name + " " + how;
  }
  for (const json::Member& one : more) {
    if (!details || IsMemberOfDetails(one.first)) continue;
    const std::string how = differs(answer->Find(one.first), &one.second);
    if (!how.empty()) return one.first + " " + how;
  }
  if (error || !options_.check_text) return "";
  std::erase_if(record.members, [&](const json::Member& member) {
    return std::ranges::find(keep_, member.first) != keep_.end();
  });
  const Status fits = options_.check_text(record, text);
  return fits.ok() ? "" : fits.error().ToString();
}

Status RecordOutput::CheckDone(const std::string& text, const std::vector<json::Member>& more) {
  if (!again_) {
    Result<AnswerReader> reader = AnswerReader::Open(name_, table_);
    if (!reader.ok()) return reader.error();
    again_ = *std::move(reader);
    if (table_) {
      if (const auto header = again_->Next(); !header.ok()) return header.error();
    }
  }
  const Result<std::optional<std::string>> answer = again_->Next();
  if (!answer.ok()) return answer.error();
  if (!*answer) return Error{ErrorCode::kIo, "was changed by another program", name_};
  const std::string problem =
      table_ ? ProblemOfRow(**answer, text, more) : ProblemOfLineOf(**answer, text, more);
  if (problem.empty()) return {};
  return NotOfThisRun(problem, again_->line());
}

Status RecordOutput::CheckTexts(int64_t texts) const {
  if (texts >= done_) return {};
  return Error{ErrorCode::kInvalid,
               "has answers for " + std::to_string(done_) + " texts, but there " +
                   (texts == 1 ? "is 1" : "are " + std::to_string(texts)) +
                   "; name another --output, or start again without --resume",
               name_};
}

Status RecordOutput::Begin() {
  if (begun_) return {};
  begun_ = true;
  const bool placed = os::Truncate(::fileno(file_.get()), static_cast<uint64_t>(kept_)) &&
                      std::fseek(file_.get(), 0, SEEK_END) == 0;
  const std::string header = table_ && kept_ == 0 ? HeaderOf() + "\n" : "";
  if (placed && std::fputs(header.c_str(), file_.get()) >= 0) return {};
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno), name_};
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
  if (Status status = Begin(); !status.ok()) return status;
  const std::string line = (table_ ? RowOf(answer) : answer.line) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
      std::fflush(file_.get()) == 0) {
    return {};
  }
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno), name_};
}

}  // namespace pawl::cli
