// Almost every pre-tokenizer is a split at the matches of a pattern with a rule for where the
// matches go
// ("behavior"), so all of them are brought to that form; Metaspace and ByteLevel may also put a
// character in front. The byte-level alphabet itself is never written out: words stay raw bytes,
// see BpeModel. A step behind ByteLevel is matched against the character of the alphabet that
// stands for each byte, so that a cut may fall within a character of the text.
#include "src/text/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/text/normalizer.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {

inline constexpr int kNoScript = -1;
// A number for the script of a unit (src/text/split_regex.h); kNoScript for a space, bytes that
// are not UTF-8, and characters younger than Unicode 9.0. Hiragana and Katakana count as Han.
int ScriptForSplitting(char32_t unit);

// Scripts: a binary search in a table of ranges. The table is that of Hugging Face's library,
// because a vocabulary was trained on the words that its version of Unicode cuts; see
// scripts/gen_script_table.py.

namespace {

struct ScriptRange {
  char32_t first, last;
  int16_t script;
};

#include "src/text/unicode_scripts.inc"

}  // namespace

int ScriptForSplitting(char32_t unit) {
  const auto* range = std::upper_bound(
      std::begin(kScriptRanges), std::end(kScriptRanges), unit,
      [](char32_t value, const ScriptRange& candidate) { return value < candidate.first; });
  if (range == std::begin(kScriptRanges)) return kNoScript;
  --range;
  return unit <= range->last ? range->script : kNoScript;
}

namespace {

// What "use_regex" of ByteLevel stands for: the pattern published with GPT-2.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr int64_t kMaxFixedLength = 100'000;  // characters; as many repetitions has a pattern

}  // namespace

PreTokenizer PreTokenizer::Load(const JsonReader& node) {
  PreTokenizer out;
  if (!node.present()) return out;
  ForEachStep(node, "pretokenizers",
              [&](const JsonReader& step, const std::string& type) { out.Add(step, type); });
  return out;
}

bool PreTokenizer::removes() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    return step.behavior == Behavior::kRemoved || step.kind == Kind::kScripts;
  });
}

PreTokenizer::Behavior PreTokenizer::LoadBehavior(const JsonReader& node) {
  const std::string& name = node.String();
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  node.Unsupported("behavior " + json::Quote(name));
  return Behavior::kIsolated;
}

void PreTokenizer::AddSplit(std::string_view pattern, Behavior behavior, const JsonReader& node) {
  Result<SplitRegex> compiled = SplitRegex::Compile(pattern);
  if (!compiled.ok()) return node.Fail(compiled.error().ToString(), ErrorCode::kInternal);
  steps_.push_back({.pattern = std::move(*compiled), .behavior = behavior});
}

void PreTokenizer::AddByteLevel(const JsonReader& node) {
  node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (node["add_prefix_space"].Bool()) {
    steps_.push_back({.kind = Kind::kPrefixSpace, .replacement = " "});
  }
  if (node["use_regex"].Bool(true)) {
    AddSplit(kByteLevelPattern, Behavior::kIsolated, node);
  }
  byte_level_ = true;
}

void PreTokenizer::AddPunctuation(Behavior behavior, const JsonReader& node) {
  std::string pattern = R"([!-/:-@\[-`{-~)";
  for (const CodepointRange& range : PunctuationRanges()) {
    char text[32];
    std::snprintf(text, sizeof text, "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.lo),
                  static_cast<unsigned>(range.hi));
    pattern += text;
  }
  AddSplit(pattern + "]", behavior, node);
}

void PreTokenizer::AddFixedLength(const JsonReader& node) {
  node.OnlyMembers({"type", "length"});
  const int64_t characters = node["length"].Whole(1, kMaxFixedLength);
  if (!node.ok()) return;
  AddSplit("[\\s\\S]{1," + std::to_string(characters) + "}", Behavior::kIsolated, node);
}

void PreTokenizer::Add(const JsonReader& node, const std::string& type) {
  const size_t before = steps_.size();
  const bool on_alphabet = byte_level_;
  if (on_alphabet && (type == "ByteLevel" || type == "Metaspace")) {
    return node["type"].Unsupported("pre-tokenizer " + json::Quote(type) + " after ByteLevel");
  }
  if (type == "ByteLevel") {
    AddByteLevel(node);
  } else if (type == "Split") {
    node.OnlyMembers({"type", "pattern", "behavior", "invert"});
    steps_.push_back({.pattern = LoadPattern(node["pattern"]),
                      .behavior = LoadBehavior(node["behavior"]),
                      .invert = node["invert"].Bool()});
  } else if (type == "Metaspace") {
    AddMetaspace(node);
  } else if (type == "Digits") {
    node.OnlyMembers({"type", "individual_digits"});
    const bool single = node["individual_digits"].Bool();
    AddSplit("\\p{N}", single ? Behavior::kIsolated : Behavior::kContiguous, node);
  } else if (type == "Punctuation") {
    node.OnlyMembers({"type", "behavior"});
    const JsonReader behavior = node["behavior"];
    AddPunctuation(behavior.present() ? LoadBehavior(behavior) : Behavior::kIsolated, node);
  } else if (type == "Whitespace") {
    // \w+|[^\w\s]+ with the word characters of UTS #18: this one is not matched by Oniguruma.
    node.OnlyMembers({"type"});
    const std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
    AddSplit("[" + word + "]+|[^\\s" + word + "]+", Behavior::kRemoved, node);
    steps_.back().invert = true;
  } else if (type == "WhitespaceSplit") {
    node.OnlyMembers({"type"});
    AddSplit("\\s", Behavior::kRemoved, node);
  } else if (type == "BertPreTokenizer") {
    node.OnlyMembers({"type"});
    AddSplit("\\s", Behavior::kRemoved, node);
    AddPunctuation(Behavior::kIsolated, node);
  } else if (type == "FixedLength") {
    AddFixedLength(node);
  } else if (type == "UnicodeScripts") {
    node.OnlyMembers({"type"});
    steps_.push_back({.kind = Kind::kScripts});
  } else if (type == "CharDelimiterSplit") {
    node.OnlyMembers({"type", "delimiter"});
    const std::string& delimiter = node["delimiter"].String();
    if (delimiter.empty()) node["delimiter"].Fail("must be one character");
    steps_.push_back({.pattern = SplitRegex::Literal(delimiter), .behavior = Behavior::kRemoved});
  } else {
    node["type"].Unsupported("pre-tokenizer " + json::Quote(type));
  }
  for (size_t i = before; i < steps_.size(); ++i) steps_[i].on_alphabet = on_alphabet;
}

void PreTokenizer::AddMetaspace(const JsonReader& node) {
  node.OnlyMembers(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Step step{.kind = Kind::kMetaspace, .replacement = node["replacement"].String()};
  if (step.replacement.empty()) node["replacement"].Fail("must be one character");
  const JsonReader scheme = node["prepend_scheme"];
  const std::string name = scheme.String("always");
  if (name == "never" || !node["add_prefix_space"].Bool(true))
    step.scheme = Scheme::kNever;
  else if (name == "first")
    step.scheme = Scheme::kFirst;
  else if (name != "always")
    scheme.Unsupported("prepend scheme " + json::Quote(name));
  const SplitRegex pattern = SplitRegex::Literal(step.replacement);
  steps_.push_back(std::move(step));
  if (node["split"].Bool(true)) {
    steps_.push_back({.pattern = pattern, .behavior = Behavior::kMergedWithNext});
  }
}

void PreTokenizer::Decode(const Step& step, std::string_view text, std::vector<char32_t>& units) {
  units.clear();
  if (!step.on_alphabet) return DecodeUnits(text, units);
  StopSteps steps;
  for (const char c : text) {
    steps.Step();
    units.push_back(ByteToAlphabet(static_cast<unsigned char>(c)));
  }
}

// The rule of Hugging Face's library: a word begins where the script changes. Characters of no
// script (a space, and what that library's tables do not have) belong to the word before them; at
// the start of the text they belong to none.
template <typename Emit>
void PreTokenizer::SplitScripts(const Step& step, const Piece& piece, std::vector<char32_t>& units,
                                const Emit& emit) {
  Decode(step, piece.text, units);
  StopSteps steps;
  size_t begin = 0, byte = 0;
  int last = kNoScript;
  const auto flush = [&] {
    if (last == kNoScript || begin == byte) return;
    emit(Piece{piece.text.substr(begin, byte - begin), piece.at_start && begin == 0});
  };
  for (const char32_t unit : units) {
    steps.Step();
    const int script = ScriptForSplitting(unit);
    if (script != kNoScript && script != last) {
      flush();
      begin = byte;
      last = script;
    }
    byte += step.on_alphabet ? 1 : UnitLength(unit);
  }
  flush();
}

// Cuts `piece` into parts and gives each to `emit` as soon as no later match can change it: only
// the last part waits. `units` is memory that calls reuse.
template <typename Emit>
void PreTokenizer::Split(const Step& step, const Piece& piece, std::vector<char32_t>& units,
                         const Emit& emit) {
  struct Part {
    size_t begin, end;  // bytes
    bool is_match;      // of what was joined last
  };
  Decode(step, piece.text, units);
  StopSteps steps;
  std::optional<Part> waiting;
  const auto flush = [&] {
    if (!waiting || waiting->begin == waiting->end) return;
    emit(Piece{piece.text.substr(waiting->begin, waiting->end - waiting->begin),
               piece.at_start && waiting->begin == 0});
  };
  // The whole text as matches and what lies between them.
  size_t unit = 0, byte = 0;
  const auto add = [&](size_t to, bool is_match) {
    const size_t from = byte;
    for (; unit < to; steps.Step(), ++unit) byte += step.on_alphabet ? 1 : UnitLength(units[unit]);
    const Part part{from, byte, is_match != step.invert};
    if (step.behavior == Behavior::kRemoved && part.is_match) return;
    bool joins = false;
    if (waiting) {
      const bool previous = waiting->is_match;
      joins = step.behavior == Behavior::kContiguous           ? part.is_match == previous
              : step.behavior == Behavior::kMergedWithPrevious ? part.is_match && !previous
              : step.behavior == Behavior::kMergedWithNext     ? previous && !part.is_match
                                                               : false;
    }
    if (joins) {
      waiting = Part{waiting->begin, part.end, part.is_match};
    } else {
      flush();
      waiting = part;
    }
  };
  step.pattern.ForEach(units, [&](const SplitRegex::Match& match) {
    if (match.begin > unit) add(match.begin, false);
    add(match.end, true);
  });
  if (unit < units.size()) add(units.size(), false);
  flush();
}

// Depth first: a word is taken before the next one is cut, so that a text of megabytes needs no
// list of its words.
void PreTokenizer::Run(size_t depth, const Piece& piece, Scratch& scratch,
                       const std::function<void(const Piece&)>& take) const {
  if (depth == steps_.size()) {
    if (!piece.text.empty()) take(piece);
    return;
  }
  const Step& step = steps_[depth];
  if (step.kind == Kind::kSplit) {
    Split(step, piece, scratch[depth],
          [&](const Piece& part) { Run(depth + 1, part, scratch, take); });
    return;
  }
  if (step.kind == Kind::kScripts) {
    SplitScripts(step, piece, scratch[depth],
                 [&](const Piece& part) { Run(depth + 1, part, scratch, take); });
    return;
  }
  std::string text;
  StopSteps steps;
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
  Run(depth + 1, {text, piece.at_start}, scratch, take);
}

void PreTokenizer::Apply(const Piece& piece, const std::function<void(const Piece&)>& take) const {
  Scratch scratch(steps_.size());
  Run(0, piece, scratch, take);
}

}  // namespace pawl
