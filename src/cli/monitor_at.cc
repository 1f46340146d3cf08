// The same question that a list of an editor asks (src/completion/name_list.h), without a model, so
// the names come in the order of the alphabet; in Python those that begin with "_" come last.
#ifdef PAWL_HAVE_MONITORS
#include "src/cli/monitor_at.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/completion/completion.h"
#include "src/completion/editor_text.h"

namespace pawl::cli {
namespace {

const char* KindText(monitors::NameDetail::Kind kind) {
  using DK = monitors::NameDetail::Kind;
  switch (kind) {
    case DK::kMethod:
      return "method";
    case DK::kFunction:
      return "function";
    case DK::kConstructor:
      return "constructor";
    case DK::kField:
      return "field";
    case DK::kVariable:
      return "variable";
    case DK::kClass:
      return "class";
    case DK::kInterface:
      return "interface";
    case DK::kModule:
      return "module";
    case DK::kProperty:
      return "property";
    case DK::kEnum:
      return "enum";
    case DK::kEnumMember:
      return "enum member";
    case DK::kConstant:
      return "constant";
    case DK::kKeyword:
      return "keyword";
    case DK::kUnknown:
      return "name";
  }
  return "name";
}

// "6:3" -> line 5, column 2.
Result<completion::EditorPosition> PositionOf(const std::string& at) {
  const auto number = [&](std::string_view digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  const size_t colon = at.find(':');
  const int64_t line = number(std::string_view(at).substr(0, colon));
  const int64_t column =
      colon == std::string::npos ? 0 : number(std::string_view(at).substr(colon + 1));
  if (line < 1 || column < 1 || line > INT32_MAX || column > INT32_MAX) {
    return Error{ErrorCode::kInvalid, "must be LINE:COL, both from 1, not \"" + at + "\"", "--at"};
  }
  return completion::EditorPosition{.line = line - 1, .character = column - 1};
}

}  // namespace

Result<nlohmann::ordered_json> PrintNamesAt(const std::string& file, const std::string& text,
                                            monitors::Language language, const std::string& at,
                                            const MonitorFlags& flags,
                                            const std::shared_ptr<const Vocabulary>& vocabulary,
                                            const std::shared_ptr<monitors::LspServer>& server) {
  const Result<completion::EditorPosition> position = PositionOf(at);
  if (!position.ok()) return position.error();
  const size_t byte = completion::ByteAt(text, *position, completion::ColumnUnit::kUtf8);
  if (completion::PositionAt(text, byte, completion::ColumnUnit::kUtf8) != *position) {
    return Error{ErrorCode::kInvalid, file + " has no place " + at, "--at"};
  }
  completion::CompletionPlanner planner(vocabulary, server);
  completion::CompletionRequest request;
  request.prefix = text.substr(0, byte);
  request.suffix = text.substr(byte);
  request.suffix_aware = true;
  request.language = language;
  request.file = file;
  request.repo = flags.repo;
  request.cache = MonitorFlags::CacheFolder();
  request.java_home = MonitorFlags::JavaHome();
  request.monitors = flags.monitors;
  Result<completion::PlaceNames> place = planner.NamesAt(request);
  if (!place.ok()) return InFile("--" + place.error().place, place.error());
  if (language == monitors::Language::kPython)
    std::ranges::stable_sort(place->names, {}, completion::PrivacyOf);
  const std::string count =
      fmt::format("{} {}", place->names.size(), place->names.size() == 1 ? "name" : "names");
  std::string head = count;
  if (place->open) {
    head = "any name (" + place->why + "); known: " + count;
  } else if (place->names.empty()) {
    head = "no name: " + place->why;
  }
  Print(fmt::format("{}:{}: {}\n", file, at, head));
  nlohmann::ordered_json entry = {
      {"name", file}, {"at", at}, {"open", place->open}, {"why", place->why}};
  entry["names"] = nlohmann::ordered_json::array();
  const std::vector<monitors::NameDetail> details = place->Details(place->names);
  for (size_t i = 0; i < place->names.size(); ++i) {
    const monitors::NameDetail& detail = details[i];
    entry["names"].push_back({{"name", place->names[i]},
                              {"kind", KindText(detail.kind)},
                              {"detail", detail.detail},
                              {"documentation", detail.documentation}});
    Print(
        fmt::format("  {:<24} {:<12} {}\n", place->names[i], KindText(detail.kind), detail.detail));
  }
  return entry;
}

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
