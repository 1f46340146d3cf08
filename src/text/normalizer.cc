// A normalizer is a list of steps, flattened when it is read and run one after another. Patterns
// run over UTF-16 units as the reference library's do, and are mapped back to bytes.
#include "src/text/normalizer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {

// Normalization after UAX #15: decompose every code point fully (the tables already hold the
// recursive result), put runs of combining marks into canonical order, and for the composed forms
// combine each mark with the last starter unless a mark between them blocks it. Hangul syllables
// are computed (The Unicode Standard, section 3.12).
//
// The text is worked on in segments: a segment ends before a code point of class 0 that cannot
// combine with what precedes it, so memory stays small; a segment of ASCII needs no work at all.

namespace {

struct Mapping {
  char32_t from;
  uint16_t offset;  // into kMappingPool
  uint16_t length;
};
struct CombiningRange {
  char32_t lo, hi;
  uint8_t combining_class;
};
struct Composite {
  char32_t first, second, composed;
};

#include "src/text/normalization_tables.inc"

constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

std::span<const char32_t> Find(std::span<const Mapping> table, char32_t c) {
  const auto found = std::lower_bound(table.begin(), table.end(), c,
                                      [](const Mapping& m, char32_t key) { return m.from < key; });
  if (found == table.end() || found->from != c) return {};
  return std::span<const char32_t>(kMappingPool).subspan(found->offset, found->length);
}

int CombiningClass(char32_t c) {
  if (c < 0x300) return 0;
  const auto* found =
      std::upper_bound(std::begin(kCombining), std::end(kCombining), c,
                       [](char32_t key, const CombiningRange& r) { return key < r.lo; });
  if (found == std::begin(kCombining)) return 0;
  --found;
  return c <= found->hi ? found->combining_class : 0;
}

// The primary composite of the pair, 0 when there is none.
char32_t Compose(char32_t a, char32_t b) {
  if (a >= kLBase && a < kLBase + kLCount && b >= kVBase && b < kVBase + kVCount) {
    return kSBase + ((a - kLBase) * kVCount + (b - kVBase)) * kTCount;
  }
  if (a >= kSBase && a < kSBase + kSCount && (a - kSBase) % kTCount == 0 && b > kTBase &&
      b < kTBase + kTCount) {
    return a + (b - kTBase);
  }
  const auto* found = std::lower_bound(
      std::begin(kComposites), std::end(kComposites), std::pair(a, b),
      [](const Composite& c, const auto& key) { return std::pair(c.first, c.second) < key; });
  if (found == std::end(kComposites) || found->first != a || found->second != b) return 0;
  return found->composed;
}

// Whether a starter can be the second half of a composite.
bool ComposesWithPrevious(char32_t c) {
  if (c < kVBase) {
    return c >= kStarterSeconds[0] &&
           std::binary_search(std::begin(kStarterSeconds), std::end(kStarterSeconds), c);
  }
  return c < kTBase + kTCount ||
         std::binary_search(std::begin(kStarterSeconds), std::end(kStarterSeconds), c);
}

class Normalizer {
 public:
  Normalizer(NormalizationForm form, std::string& out)
      : compatible_(form == NormalizationForm::kNfkc || form == NormalizationForm::kNfkd),
        compose_(form == NormalizationForm::kNfc || form == NormalizationForm::kNfkc),
        out_(out) {}

  void Add(char32_t c) {
    if (c >= kSBase && c < kSBase + kSCount) {
      const char32_t s = c - kSBase;
      Push(kLBase + s / (kVCount * kTCount));
      Push(kVBase + s % (kVCount * kTCount) / kTCount);
      if (s % kTCount != 0) Push(kTBase + s % kTCount);
      return;
    }
    if (c >= 0xA0) {
      std::span<const char32_t> mapping;
      if (compatible_) mapping = Find(kCompatibility, c);
      if (mapping.empty()) mapping = Find(kCanonical, c);
      if (!mapping.empty()) {
        for (const char32_t part : mapping) Push(part);
        return;
      }
    }
    Push(c);
  }

  // Writes what is pending; nothing that follows will combine with it.
  void Flush() {
    if (pending_.size() == 1) {
      AppendUtf8(pending_[0].codepoint, out_);
      pending_.clear();
      return;
    }
    // Canonical order: stable within runs of non-zero classes.
    for (size_t i = 0; i < pending_.size();) {
      size_t j = i + 1;
      if (pending_[i].combining_class != 0) {
        while (j < pending_.size() && pending_[j].combining_class != 0) ++j;
        std::stable_sort(
            pending_.begin() + static_cast<ptrdiff_t>(i),
            pending_.begin() + static_cast<ptrdiff_t>(j),
            [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
      }
      i = j;
    }
    if (compose_) ComposePending();
    for (const Mark& mark : pending_) AppendUtf8(mark.codepoint, out_);
    pending_.clear();
  }

 private:
  struct Mark {
    char32_t codepoint;
    int combining_class;
  };

  void Push(char32_t c) {
    const int combining_class = CombiningClass(c);
    if (combining_class == 0 && !pending_.empty() && !(compose_ && ComposesWithPrevious(c)))
      Flush();
    pending_.push_back({c, combining_class});
  }

  void ComposePending() {
    StopSteps steps;
    size_t kept = 0;  // pending_[0, kept) is the result so far
    size_t starter = SIZE_MAX;
    int last_class = -1;  // class of the last code point kept after the starter; -1: none
    for (size_t i = 0; i < pending_.size(); ++i) {
      steps.Step();
      const Mark mark = pending_[i];
      if (starter != SIZE_MAX && last_class < mark.combining_class) {
        const char32_t composed = Compose(pending_[starter].codepoint, mark.codepoint);
        if (composed != 0) {
          pending_[starter].codepoint = composed;
          continue;
        }
      }
      if (mark.combining_class == 0) {
        starter = kept;
        last_class = -1;
      } else {
        last_class = mark.combining_class;
      }
      pending_[kept++] = mark;
    }
    pending_.resize(kept);
  }

  const bool compatible_;
  const bool compose_;
  std::string& out_;
  std::vector<Mark> pending_;
};

}  // namespace

std::string NormalizeUnicode(std::string_view text, NormalizationForm form) {
  std::string out;
  out.reserve(text.size());
  Normalizer normalizer(form, out);
  StopSteps steps;
  for (size_t i = 0; i < text.size();) {
    steps.Step();
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    if (d.valid) {
      normalizer.Add(d.codepoint);
    } else {
      normalizer.Flush();
      out.push_back(text[i]);
    }
    i += static_cast<size_t>(d.length);
  }
  normalizer.Flush();
  return out;
}

std::string LowercaseUnicode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  StopSteps steps;
  for (size_t i = 0; i < text.size();) {
    steps.Step();
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    if (!d.valid) {
      out.push_back(text[i]);
    } else if (const auto mapping = Find(kLowercase, d.codepoint); !mapping.empty()) {
      for (const char32_t c : mapping) AppendUtf8(c, out);
    } else {
      AppendUtf8(d.codepoint, out);
    }
    i += static_cast<size_t>(d.length);
  }
  return out;
}

std::span<const CodepointRange> PunctuationRanges() { return kPunctuation; }

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
