// A prefix, texts after gaps, words and a regex, a line each, and then a grammar in EBNF: what is
// made of them (gaps, words that must occur, intersections, complements, spans of a text) is
// refused with a reason or walks soundly, and a text is in it exactly when the plain grammars say
// so.
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "src/base/random.h"
#include "src/base/utf8.h"
#include "tests/fuzz/fuzz_util.h"

namespace {

using namespace pawl;

bool Accepts(const Grammar& grammar, std::string_view text) {
  const std::optional<State> end = grammar.Start().Advance(text);
  return end.has_value() && end->accepting();
}

bool IsUtf8(std::string_view text) { return FindInvalidUtf8(text) == std::string_view::npos; }

std::vector<std::string> Split(std::string_view line, size_t most) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < most && line.find('\t') != line.npos) {
    parts.emplace_back(line.substr(0, line.find('\t')));
    line.remove_prefix(line.find('\t') + 1);
  }
  parts.emplace_back(line);
  return parts;
}

class Checks {
 public:
  explicit Checks(std::string_view input) : input_(input) {}

  void AddSample(std::string text) {
    constexpr size_t kLongest = 200;
    if (text.size() <= kLongest) samples_.push_back(std::move(text));
  }
  void Require(bool holds, const std::string& what, std::string_view text = {}) const {
    if (!holds) fuzz::Require(false, (what + ": '" + std::string(text) + "'").c_str(), input_);
  }
  size_t Draw(size_t below) { return Philox4x32(seed_, 1, draws_++).word[0] % below; }
  // A place where a text may be cut.
  size_t Cut(std::string_view text, size_t from = 0) {
    size_t at = from + Draw(text.size() - from + 1);
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  }
  std::string Walk(const Grammar& grammar) {
    constexpr int kSteps = 10;
    return fuzz::RequireSoundWalk(grammar, seed_ + draws_++, kSteps);
  }

  // The grammar has the text where `expected` says so, and no other; not made: it would have none
  // of them. Returns a text of it, where one was found.
  std::optional<std::string> Compare(const Result<Grammar>& made, const char* what,
                                     const std::function<bool(std::string_view)>& expected) {
    if (!made.ok()) {
      fuzz::RequireGoodError(made.error(), input_);
      if (made.error().code != ErrorCode::kUnsatisfiable) return std::nullopt;
      for (const std::string& sample : samples_)
        Require(!expected(sample), what + std::string(", refused, but has"), sample);
      return std::nullopt;
    }
    for (const std::string& sample : samples_) {
      Require(Accepts(*made, sample) == expected(sample), what + std::string(", wrong about"),
              sample);
    }
    const std::string text = Walk(*made);
    if (!Accepts(*made, text)) return std::nullopt;  // no completion was found
    Require(expected(text), what + std::string(", which has not"), text);
    return text;
  }

  // One gap: membership of the whole. Several: filled one after another, each next one can be
  // filled exactly when the output fits.
  void Gaps(const Grammar& grammar, const Infilling& infilling) {
    const Result<Grammar> gap = Infill(grammar, infilling);
    if (!IsUtf8(infilling.prefix) || !std::ranges::all_of(infilling.after, IsUtf8)) {
      Require(!gap.ok(), "a gap in what is no text");
      return;
    }
    if (infilling.after.size() == 1) {
      Compare(gap, "a gap", [&](std::string_view text) {
        return Accepts(grammar, infilling.prefix + std::string(text) + infilling.after[0]);
      });
      return;
    }
    bool all_known = true;  // no limit was met
    const std::optional<std::string> output = Compare(gap, "gaps", [&](std::string_view text) {
      Infilling next = infilling;
      next.Fill(text);
      const bool fits = gap.ok() && Accepts(*gap, text);
      // A text that cuts a character in two is none that can stand in a prefix.
      if (!IsUtf8(text)) return fits;
      const Result<Grammar> rest = Infill(grammar, next);
      if (rest.ok() || rest.error().code == ErrorCode::kUnsatisfiable) return rest.ok();
      Require(rest.error().code != ErrorCode::kInvalid, "a filled gap is invalid", text);
      all_known = false;
      return fits;
    });
    if (!output || !all_known) return;
    Infilling next = infilling;
    if (next.Fill(*output)) Gaps(grammar, next);
  }

  // Cut out of a text of the grammar, every gap has what was there.
  void CutGaps(const Grammar& grammar, std::string_view text) {
    std::array<size_t, 5> cuts;
    for (size_t i = 0; i < cuts.size(); ++i) cuts[i] = Cut(text, i == 0 ? 0 : cuts[i - 1]);
    const auto part = [&](size_t i) {
      return std::string(
          text.substr(cuts[i], i + 1 < cuts.size() ? cuts[i + 1] - cuts[i] : text.npos));
    };
    Infilling infilling{std::string(text.substr(0, cuts[0])), {part(1), part(3) + part(4)}};
    if (Draw(2) == 0) infilling.after = {part(1) + part(2) + part(3) + part(4)};
    bool more = true;
    for (size_t gap = 0; more; gap += 2) {
      const Result<Grammar> made = Infill(grammar, infilling);
      if (!made.ok()) {
        Require(
            made.error().code == ErrorCode::kUnsupported || made.error().code == ErrorCode::kLimit,
            "a gap that can be filled is refused", text);
        return;
      }
      Require(Accepts(*made, part(gap)), "a gap refuses what was there", text);
      more = infilling.Fill(part(gap));
    }
    Require(infilling.prefix == text, "gaps that are filled make another text", text);
  }

  void Words(const Grammar& grammar, const std::vector<std::string>& words) {
    Compare(RequireWords(grammar, words), "words", [&](std::string_view text) {
      return Accepts(grammar, text) && std::ranges::all_of(words, [&](const std::string& word) {
               return text.find(word) != text.npos;
             });
    });
  }

  // The intersection of the two, whichever stands first.
  Result<Grammar> Both(const Grammar& a, const Grammar& b, const char* what) {
    const bool turned = Draw(2) == 0;
    Result<Grammar> both = turned ? Intersect(b, a) : Intersect(a, b);
    Compare(both, what,
            [&](std::string_view text) { return Accepts(a, text) && Accepts(b, text); });
    return both;
  }

  Result<Grammar> Others(const Grammar& grammar) {
    Result<Grammar> others = Complement(grammar);
    Compare(others, "a complement",
            [&](std::string_view text) { return IsUtf8(text) && !Accepts(grammar, text); });
    return others;
  }

  Result<Grammar> Spans(const Compiler& compiler, const std::string& text, bool whole_words) {
    Result<Grammar> span = compiler.CompileSubstring(text, whole_words);
    const auto space = [&](size_t at) {
      return std::isspace(static_cast<unsigned char>(text[at])) != 0;
    };
    const auto digit = [&](size_t at) {
      return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    const auto word = [&](size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
    };
    const auto mark = [&](size_t at) {
      return text[at] == '.' || text[at] == ',' || text[at] == '\'';
    };
    const auto inside = [&](size_t at) {  // a word or a number
      if (at == 0 || at == text.size()) return false;
      if (word(at - 1) && word(at)) return true;
      return (digit(at - 1) && mark(at) && digit(at + 1)) ||
             (at > 1 && digit(at - 2) && mark(at - 1) && digit(at));
    };
    const auto whole = [&](size_t begin, size_t end) {
      return begin == end || !(inside(begin) || inside(end) || space(begin) || space(end - 1));
    };
    const bool ascii = std::ranges::all_of(text, [](char c) { return c > 0; });
    if (whole_words && !ascii) return span;  // what a word is elsewhere: `kind` does not know
    Compare(span, whole_words ? "spans of words" : "spans", [&](std::string_view part) {
      if (!IsUtf8(part)) return false;
      for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) {
        if (!whole_words || whole(at, at + part.size())) return true;
      }
      return false;
    });
    return span;
  }

 private:
  const std::string_view input_;
  const uint64_t seed_ = fuzz::HashOf(input_);
  uint64_t draws_ = 0;
  std::vector<std::string> samples_ = {"", "a"};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::string_view rest = input;
  std::array<std::string, 4> lines;
  for (std::string& line : lines) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) return 0;
    line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  if (rest.find("Token") != rest.npos)
    return 0;  // texts, and walks over bytes, have no tokens by number
  const auto& [prefix, suffixes, word_list, pattern] = lines;
  const Infilling infilling{prefix, Split(suffixes, 3)};
  const std::vector<std::string> words = Split(word_list, 3);
  const Compiler compiler(fuzz::Bytes());
  const Result<Grammar> grammar = compiler.CompileGrammar(rest, GrammarLanguage::kEbnf);
  if (!grammar.ok()) return 0;  // ebnf_fuzz looks at these

  Checks checks(input);
  const std::string text = checks.Walk(*grammar);
  const size_t from = checks.Cut(text);
  const size_t to = checks.Cut(text, from);
  checks.AddSample(text);
  checks.AddSample(text.substr(from, to - from));
  checks.AddSample(text.substr(0, from) + text.substr(to));
  for (const std::string& line : lines) checks.AddSample(line);
  for (const std::string& word : words) checks.AddSample(word);

  checks.Gaps(*grammar, infilling);
  if (Accepts(*grammar, text)) checks.CutGaps(*grammar, text);
  checks.Words(*grammar, words);

  // Regular languages: a regex, the spans of a line, and what is made of them.
  std::vector<Grammar> regular;
  const Result<Grammar> regex = compiler.CompileRegex(pattern);  // regex_fuzz looks at errors
  if (regex.ok()) {
    checks.AddSample(checks.Walk(*regex));
    regular.push_back(*regex);
    const Result<Grammar> others = checks.Others(*regex);
    if (others.ok()) {
      regular.push_back(*others);
      const Result<Grammar> back = checks.Others(*others);
      if (back.ok()) std::ignore = checks.Both(*regex, *back, "an intersection with itself");
      std::ignore = checks.Both(*regex, *others, "an intersection with the complement");
    }
  }
  const Result<Grammar> span =
      checks.Spans(compiler, lines[checks.Draw(lines.size())], checks.Draw(2) == 0);
  if (span.ok()) {
    regular.push_back(*span);
    if (regex.ok())
      std::ignore = checks.Both(*regex, *span, "an intersection of a regex and spans");
  }
  if (regular.empty()) return 0;
  const Grammar& other = regular[checks.Draw(regular.size())];
  if (checks.Draw(2) == 0) checks.Gaps(other, infilling);
  const Result<Grammar> both = checks.Both(*grammar, other, "an intersection");
  if (!both.ok()) return 0;
  if (checks.Draw(2) == 0) checks.Words(*both, words);
  const std::string common = checks.Walk(*both);
  if (Accepts(*both, common)) checks.CutGaps(*both, common);
  return 0;
}
