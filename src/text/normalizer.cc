// A list of steps, flattened when it is read and run one after another. Patterns run over UTF-16
// units as the reference library's do, and are mapped back to bytes.
#include "src/text/normalizer.h"

#include <algorithm>

#include "src/base/stop_scope.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {
namespace {

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string Strip(std::string_view text, bool left, bool right) {
  std::vector<char32_t> units;
  DecodeUnits(text, units);
  const auto is_space = [](char32_t unit) {
    const auto spaces = UnicodeProperty("White_Space");
    return std::any_of(spaces.begin(), spaces.end(),
                       [unit](const CodepointRange& r) { return r.lo <= unit && unit <= r.hi; });
  };
  StopSteps steps;
  if (left) {
    size_t i = 0;
    for (; i < units.size() && is_space(units[i]); ++i) {
      steps.Step();
      text.remove_prefix(UnitLength(units[i]));
    }
    units.erase(units.begin(), units.begin() + static_cast<ptrdiff_t>(i));
  }
  if (right) {
    for (; !units.empty() && is_space(units.back()); units.pop_back()) {
      steps.Step();
      text.remove_suffix(UnitLength(units.back()));
    }
  }
  return std::string(text);
}

}  // namespace

SplitRegex LoadPattern(const JsonReader& node) {
  node.OnlyMembers({"String", "Regex"});
  const JsonReader literal = node["String"], regex = node["Regex"];
  if (literal.present()) {
    if (regex.present()) node.Fail("both String and Regex");
    if (literal.String().empty()) literal.Unsupported("an empty pattern");
    return SplitRegex::Literal(literal.String());
  }
  Result<SplitRegex> compiled = SplitRegex::Compile(regex.String());
  if (compiled.ok()) return std::move(*compiled);
  regex.Fail("in the pattern, " + compiled.error().place + ": " + compiled.error().message,
             compiled.error().code);
  return {};
}

std::string ReplaceMatches(std::string_view text, const SplitRegex& pattern,
                           std::string_view content) {
  std::vector<char32_t> units;
  DecodeUnits(text, units);
  std::vector<SplitRegex::Match> matches;
  pattern.FindAll(units, matches);
  std::string out;
  out.reserve(text.size());
  size_t unit = 0, byte = 0;
  StopSteps steps;
  const auto advance = [&](size_t to) {
    const size_t from = byte;
    for (; unit < to; steps.Step()) byte += UnitLength(units[unit++]);
    return text.substr(from, byte - from);
  };
  for (const SplitRegex::Match& match : matches) {
    out.append(advance(match.begin));
    advance(match.end);
    out.append(content);
  }
  out.append(text.substr(byte));
  return out;
}

TextNormalizer TextNormalizer::Load(const JsonReader& node) {
  TextNormalizer normalizer;
  if (!node.present()) return normalizer;
  ForEachStep(node, "normalizers",
              [&](const JsonReader& step, const std::string& type) { normalizer.Add(step, type); });
  return normalizer;
}

void TextNormalizer::Add(const JsonReader& node, const std::string& type) {
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    node.OnlyMembers({"type"});
    steps_.push_back({.kind = Kind::kUnicode,
                      .form = type == "NFC"    ? NormalizationForm::kNfc
                              : type == "NFD"  ? NormalizationForm::kNfd
                              : type == "NFKC" ? NormalizationForm::kNfkc
                                               : NormalizationForm::kNfkd});
  } else if (type == "Lowercase") {
    node.OnlyMembers({"type"});
    steps_.push_back({.kind = Kind::kLowercase});
  } else if (type == "Prepend") {
    node.OnlyMembers({"type", "prepend"});
    steps_.push_back({.kind = Kind::kPrepend, .content = node["prepend"].String()});
  } else if (type == "Replace") {
    node.OnlyMembers({"type", "pattern", "content"});
    steps_.push_back({.kind = Kind::kReplace,
                      .content = node["content"].String(),
                      .pattern = LoadPattern(node["pattern"])});
  } else if (type == "Strip") {
    node.OnlyMembers({"type", "strip_left", "strip_right"});
    steps_.push_back({.kind = Kind::kStrip,
                      .left = node["strip_left"].Bool(),
                      .right = node["strip_right"].Bool()});
  } else {
    node["type"].Unsupported("normalizer " + json::Quote(type));
  }
}

std::string TextNormalizer::Apply(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kUnicode:
        if (!IsAscii(out)) out = NormalizeUnicode(out, step.form);
        break;
      case Kind::kLowercase:
        out = LowercaseUnicode(out);
        break;
      case Kind::kPrepend:
        if (!out.empty()) out.insert(0, step.content);
        break;
      case Kind::kReplace:
        out = ReplaceMatches(out, step.pattern, step.content);
        break;
      case Kind::kStrip:
        out = Strip(out, step.left, step.right);
        break;
    }
  }
  return out;
}

}  // namespace pawl
