// No value of these formats has white space, so each run of other characters is looked at alone,
// and only where it has a character that the format needs.
#include "schemas/read/source_formats.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/base/source_text.h"

namespace pawl::schema {
namespace {

struct ListedFormat {
  std::string_view name;
  char32_t needed;  // in each value
};
constexpr std::array<ListedFormat, 9> kListedFormats = {{{"email", U'@'},
                                                         {"idn-email", U'@'},
                                                         {"uri", U':'},
                                                         {"iri", U':'},
                                                         {"hostname", U'.'},
                                                         {"idn-hostname", U'.'},
                                                         {"ipv4", U'.'},
                                                         {"ipv6", U':'},
                                                         {"uuid", U'-'}}};
constexpr size_t kLongestListed = 2048;
constexpr size_t kMostStepsOfText = 64, kMostSteps = 1 << 20;

const ListedFormat* ListedFormatOf(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kListedFormats, [&](const ListedFormat& one) { return one.name == name; });
  return found == kListedFormats.end() ? nullptr : found;
}

bool IsWordCode(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') ||
         c == U'_' || (c >= 0xC0 && c < 0x2000);
}

// Where the regex's longest match that is no part of a longer word ends; 0: nowhere.
size_t LongestMatch(std::u32string_view run, size_t begin, RegexArena& arena, ReId regex,
                    size_t& steps) {
  size_t longest = 0;
  const size_t most = std::min(run.size(), begin + kLongestListed);
  for (size_t at = begin; at < most; ++at) {
    ++steps;
    regex = arena.Derive(regex, run[at]);
    if (regex == RegexArena::kNothing) break;
    const bool border = at + 1 == run.size() || !IsWordCode(run[at]) || !IsWordCode(run[at + 1]);
    if (border && arena.Nullable(regex)) longest = at + 1;
  }
  return longest;
}

bool EndsSentence(std::u32string_view value) {
  const char32_t last = value.back();
  const char32_t open = last == U')' ? U'(' : last == U']' ? U'[' : U'\0';
  if (open != U'\0') return value.find(open) == std::u32string_view::npos;
  return std::u32string_view(U".,;:!?'\"").find(last) != std::u32string_view::npos;
}

bool IsMeant(std::u32string_view value, std::string_view format) {
  if (format != "uri" && format != "iri") return true;
  if (value.find(U"://") != std::u32string_view::npos) return true;
  return std::ranges::any_of(
      std::array<std::u32string_view, 4>{U"mailto:", U"urn:", U"tel:", U"data:"},
      [&](std::u32string_view scheme) { return value.starts_with(scheme); });
}

}  // namespace

bool HasFormatsIn(std::string_view format) { return ListedFormatOf(format) != nullptr; }

std::vector<SourceValue<std::u32string>> FormatsIn(std::u32string_view text,
                                                   std::string_view format, RegexArena& arena,
                                                   ReId regex) {
  std::vector<SourceValue<std::u32string>> out;
  const char32_t needed = ListedFormatOf(format)->needed;
  const auto ends_run = [](char32_t c) {
    return c == U' ' || c == U'<' || c == U'>' || c == kTextBorderCode;
  };
  size_t steps = 0;
  const size_t most_steps = kMostSteps + kMostStepsOfText * text.size();
  for (size_t first = 0; first < text.size() && steps < most_steps; ++first) {
    size_t last = first;
    while (last < text.size() && !ends_run(text[last])) ++last;
    const std::u32string_view run = text.substr(first, last - first);
    const size_t needs = run.rfind(needed);
    for (size_t at = 0; needs != std::u32string_view::npos && at <= needs; ++at) {
      if (steps >= most_steps) break;
      if (at > 0 && IsWordCode(run[at]) && IsWordCode(run[at - 1])) continue;
      if (std::u32string_view(U"'\"`({[").find(run[at]) != std::u32string_view::npos) continue;
      size_t end = LongestMatch(run, at, arena, regex, steps);
      while (end > at && EndsSentence(run.substr(at, end - at))) --end;
      if (end <= at) continue;
      const std::u32string_view value = run.substr(at, end - at);
      const bool fits = value.find(needed) != std::u32string_view::npos && IsMeant(value, format) &&
                        LongestMatch(value, 0, arena, regex, steps) == value.size();
      if (!fits) continue;
      out.push_back({std::u32string(value), first + at, first + end});
      at = end - 1;
    }
    first = last;
  }
  return out;
}

}  // namespace pawl::schema
