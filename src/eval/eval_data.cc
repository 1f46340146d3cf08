// Reading the texts of an evaluation. A line that is wrong is an error, not a text less: what is
// measured must not depend on what could be read.
#include "src/eval/eval_data.h"

#include <algorithm>
#include <optional>

#include "src/base/file.h"

namespace pawl::eval {
namespace {

bool Fits(const json::Value& line, const EvalFilter& filter) {
  return std::ranges::all_of(filter.where, [&](const auto& wanted) {
    const json::Value* member = line.Find(wanted.first);
    if (member == nullptr) return false;
    const bool text = member->type == json::Type::kString;
    return (text ? member->text : json::Dump(*member)) == wanted.second;
  });
}

Result<std::optional<EvalText>> ReadLine(std::string_view text, const EvalFilter& filter) {
  Result<json::Value> line = json::Parse(text);
  if (!line.ok()) return line.error();
  const auto wrong = [](const char* message) { return Error{ErrorCode::kInvalid, message, ""}; };
  if (line->type != json::Type::kObject) {
    return wrong("must be an object with \"text\" and \"record\"");
  }
  if (!Fits(*line, filter)) return std::optional<EvalText>();
  EvalText out;
  const json::Value* given = line->Find("text");
  if (given == nullptr || given->type != json::Type::kString) {
    return wrong("must have a string \"text\"");
  }
  out.text = given->text;
  const json::Value* record = nullptr;
  for (const char* name : {"record", "expected", "output"}) {
    if (record == nullptr) record = line->Find(name);
  }
  if (record == nullptr) return wrong("must have a \"record\": what is right");
  out.record = *record;
  if (const json::Value* schema = line->Find("schema")) out.schema = json::Dump(*schema);
  if (const json::Value* id = line->Find("id")) {
    out.id = id->type == json::Type::kString ? id->text : json::Dump(*id);
  }
  return std::optional<EvalText>(std::move(out));
}

}  // namespace

Result<std::vector<EvalText>> ReadEvalTexts(std::string_view lines, const EvalFilter& filter) {
  std::vector<EvalText> out;
  int number = 0;
  while (!lines.empty() && (filter.most == 0 || out.size() < filter.most)) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<std::optional<EvalText>> read = ReadLine(line, filter);
    if (!read.ok()) return InFile("line " + std::to_string(number), read.error());
    if (!read->has_value()) continue;
    (*read)->line = number;
    out.push_back(**std::move(read));
  }
  if (out.empty()) {
    return Error{ErrorCode::kInvalid,
                 filter.where.empty() ? "has no texts" : "has no texts that fit --where", ""};
  }
  return out;
}

bool HeldOut(size_t index) { return index % 3 == 2; }

}  // namespace pawl::eval
