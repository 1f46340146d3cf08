// Almost every pre-tokenizer is a split at the matches of a pattern with a rule for where the
// matches go
// ("behavior"), so all of them are brought to that form; Metaspace and ByteLevel may also put a
// character in front. The byte-level alphabet itself is never written out: words stay raw bytes,
// see BpeModel.
#include "src/text/pre_tokenizer.h"

#include <algorithm>
#include <cstdio>

#include "src/base/stop_steps.h"
#include "src/base/utf8.h"
#include "src/text/normalizer.h"

namespace pawl {
namespace {

// What "use_regex" of ByteLevel stands for: the pattern published with GPT-2.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

PreTokenizer PreTokenizer::Load(const JsonNode& node) {
  PreTokenizer out;
  if (node.present()) out.Add(node, 0);
  return out;
}

bool PreTokenizer::removes() const {
  return std::ranges::any_of(steps_,
                             [](const Step& step) { return step.behavior == Behavior::kRemoved; });
}

PreTokenizer::Behavior PreTokenizer::LoadBehavior(const JsonNode& node) {
  const std::string& name = node.String();
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  node.Unsupported("behavior " + json::Quote(name));
  return Behavior::kIsolated;
}

void PreTokenizer::AddSplit(std::string_view pattern, Behavior behavior, const JsonNode& node) {
  Result<SplitRegex> compiled = SplitRegex::Compile(pattern);
  if (!compiled.ok()) return node.Fail(ErrorCode::kInternal, compiled.error().ToString());
  steps_.push_back({.pattern = std::move(*compiled), .behavior = behavior});
}

void PreTokenizer::Add(const JsonNode& node, int depth) {
  if (depth > kMaxNesting) return node.Fail(ErrorCode::kLimit, "nested too deeply");
  if (byte_level_) return node.Unsupported("a pre-tokenizer after ByteLevel");
  const std::string& type = node.Member("type").String();
  if (type == "Sequence") {
    node.OnlyMembers({"type", "pretokenizers"});
    const JsonNode list = node.Member("pretokenizers");
    for (size_t i = 0, n = list.ArraySize(); i < n; ++i) Add(list.Item(i), depth + 1);
  } else if (type == "ByteLevel") {
    node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (node.Member("add_prefix_space").Bool()) {
      steps_.push_back({.kind = Kind::kPrefixSpace, .replacement = " "});
    }
    if (node.Member("use_regex").BoolOr(true))
      AddSplit(kByteLevelPattern, Behavior::kIsolated, node);
    byte_level_ = true;
  } else if (type == "Split") {
    node.OnlyMembers({"type", "pattern", "behavior", "invert"});
    steps_.push_back({.pattern = LoadPattern(node.Member("pattern")),
                      .behavior = LoadBehavior(node.Member("behavior")),
                      .invert = node.Member("invert").Bool()});
  } else if (type == "Metaspace") {
    AddMetaspace(node);
  } else if (type == "Digits") {
    node.OnlyMembers({"type", "individual_digits"});
    const bool single = node.Member("individual_digits").Bool();
    AddSplit("\\p{N}", single ? Behavior::kIsolated : Behavior::kContiguous, node);
  } else if (type == "Punctuation") {
    node.OnlyMembers({"type", "behavior"});
    const JsonNode behavior = node.Member("behavior");
    std::string pattern = R"([!-/:-@\[-`{-~)";
    for (const CodepointRange& range : PunctuationRanges()) {
      char text[32];
      std::snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.lo),
                    static_cast<unsigned>(range.hi));
      pattern += text;
    }
    AddSplit(pattern + "]", behavior.present() ? LoadBehavior(behavior) : Behavior::kIsolated,
             node);
  } else if (type == "Whitespace") {
    // \w+|[^\w\s]+ with the word characters of UTS #18: this one is not matched by Oniguruma.
    node.OnlyMembers({"type"});
    const std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
    AddSplit("[" + word + "]+|[^\\s" + word + "]+", Behavior::kRemoved, node);
    steps_.back().invert = true;
  } else if (type == "WhitespaceSplit") {
    node.OnlyMembers({"type"});
    AddSplit("\\s", Behavior::kRemoved, node);
  } else if (type == "CharDelimiterSplit") {
    node.OnlyMembers({"type", "delimiter"});
    const std::string& delimiter = node.Member("delimiter").String();
    if (delimiter.empty())
      node.Member("delimiter").Fail(ErrorCode::kInvalid, "must be one character");
    steps_.push_back({.pattern = SplitRegex::Literal(delimiter), .behavior = Behavior::kRemoved});
  } else {
    node.Member("type").Unsupported("pre-tokenizer " + json::Quote(type));
  }
}

void PreTokenizer::AddMetaspace(const JsonNode& node) {
  node.OnlyMembers(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Step step{.kind = Kind::kMetaspace, .replacement = node.Member("replacement").String()};
  if (step.replacement.empty())
    node.Member("replacement").Fail(ErrorCode::kInvalid, "must be one character");
  const JsonNode scheme = node.Member("prepend_scheme");
  const std::string name = scheme.StringOr("always");
  if (name == "never" || !node.Member("add_prefix_space").BoolOr(true))
    step.scheme = Scheme::kNever;
  else if (name == "first")
    step.scheme = Scheme::kFirst;
  else if (name != "always")
    scheme.Unsupported("prepend scheme " + json::Quote(name));
  const SplitRegex pattern = SplitRegex::Literal(step.replacement);
  steps_.push_back(std::move(step));
  if (node.Member("split").BoolOr(true)) {
    steps_.push_back({.pattern = pattern, .behavior = Behavior::kMergedWithNext});
  }
}

void PreTokenizer::Split(const Step& step, const Piece& piece, Scratch& scratch,
                         std::vector<Piece>& out) {
  auto& units = scratch.units;
  auto& matches = scratch.matches;
  auto& parts = scratch.parts;
  units.clear();
  matches.clear();
  parts.clear();
  DecodeUnits(piece.text, units);
  step.pattern.FindAll(units, matches);

  // The whole text as matches and what lies between them.
  size_t unit = 0, byte = 0;
  StopSteps steps;
  const auto add = [&](size_t to, bool is_match) {
    const size_t from = byte;
    for (; unit < to; steps.Step()) byte += UnitLength(units[unit++]);
    parts.push_back({from, byte, is_match != step.invert});
  };
  for (const SplitRegex::Match& match : matches) {
    if (match.begin > unit) add(match.begin, false);
    add(match.end, true);
  }
  if (unit < units.size()) add(units.size(), false);

  // Merging keeps the parts that go on; a merged part no longer counts as a match of its own.
  size_t kept = 0;
  switch (step.behavior) {
    case Behavior::kIsolated:
      kept = parts.size();
      break;
    case Behavior::kRemoved:
      for (const auto& part : parts) {
        if (!part.is_match) parts[kept++] = part;
      }
      break;
    case Behavior::kContiguous:
    case Behavior::kMergedWithPrevious: {
      const bool contiguous = step.behavior == Behavior::kContiguous;
      bool previous_match = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto part = parts[i];
        const bool merge =
            contiguous ? part.is_match == previous_match : part.is_match && !previous_match;
        if (merge && kept > 0)
          parts[kept - 1].end = part.end;
        else
          parts[kept++] = part;
        previous_match = part.is_match;
      }
      break;
    }
    case Behavior::kMergedWithNext: {
      std::reverse(parts.begin(), parts.end());
      bool next_match = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto part = parts[i];
        if (part.is_match && !next_match && kept > 0)
          parts[kept - 1].begin = part.begin;
        else
          parts[kept++] = part;
        next_match = part.is_match;
      }
      std::reverse(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(kept));
      break;
    }
  }
  for (size_t i = 0; i < kept; ++i) {
    steps.Step();
    if (parts[i].begin == parts[i].end) continue;
    out.push_back({piece.text.substr(parts[i].begin, parts[i].end - parts[i].begin),
                   piece.at_start && parts[i].begin == 0});
  }
}

void PreTokenizer::Apply(std::vector<Piece>& pieces, PieceStore& store) const {
  Scratch scratch;
  std::vector<Piece> next;
  StopSteps steps;
  for (const Step& step : steps_) {
    if (step.kind == Kind::kSplit) {
      next.clear();
      for (const Piece& piece : pieces) {
        steps.Step();
        Split(step, piece, scratch, next);
      }
      pieces.swap(next);
      continue;
    }
    for (Piece& piece : pieces) {
      std::string text;
      if (step.kind == Kind::kMetaspace) {
        for (const char c : piece.text) {
          steps.Step();
          if (c == ' ')
            text += step.replacement;
          else
            text.push_back(c);
        }
      } else {
        text = piece.text;
      }
      const bool wanted =
          step.scheme == Scheme::kAlways || (step.scheme == Scheme::kFirst && piece.at_start);
      if (wanted && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
      store.push_back(std::move(text));
      piece.text = store.back();
    }
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.text.empty(); });
}

}  // namespace pawl
