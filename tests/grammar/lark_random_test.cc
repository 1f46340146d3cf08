// Random grammars and chunks against the slow recogniser.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/languages/substring_regex.h"
#include "src/base/utf8.h"
#include "tests/grammar/lark_test_util.h"

namespace pawl {
namespace {

TEST(Lark, SubstringsOfRandomChunks) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::u32string> chunks(random() % 8);
    for (std::u32string& chunk : chunks) {
      chunk.resize(random() % 3);
      for (char32_t& c : chunk) c = U'a' + random() % 2;
    }
    std::set<std::u32string> runs = {U""};
    for (size_t i = 0; i < chunks.size(); ++i) {
      std::u32string run;
      for (size_t k = i; k < chunks.size(); ++k) runs.insert(run += chunks[k]);
    }
    RegexArena arena;
    const ReId id = SubstringRegex(arena, chunks);
    std::vector<std::u32string> texts = {U""};
    for (size_t i = 0; i < texts.size(); ++i) {
      ReId rest = id;
      for (const char32_t c : texts[i]) rest = arena.Derive(rest, c);
      EXPECT_EQ(arena.Nullable(rest), runs.contains(texts[i])) << EncodeCodepoints(texts[i]);
      if (texts[i].size() < 6) {
        texts.push_back(texts[i] + U'a');
        texts.push_back(texts[i] + U'b');
      }
    }
  }
}

TEST(Lark, LongSubstring) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 200'000) {
    for (size_t i = 1 + random() % 9; i > 0; --i) text += static_cast<char>('a' + random() % 26);
    text += random() % 7 == 0 ? ", " : " ";
  }
  GrammarIr ir = Read("start: %regex { \"substring_words\": \"" + text + "\" }");
  ReId rest = ir.expr(ir.rule(ir.root()).body).index;
  const size_t begin = text.find(' ', 1000) + 1;
  for (const char c : text.substr(begin, text.find(' ', begin + 500) - begin)) {
    rest = ir.arena().Derive(rest, static_cast<char32_t>(c));
  }
  EXPECT_TRUE(ir.arena().Nullable(rest));
  for (const char c : std::string_view("XXX")) {
    rest = ir.arena().Derive(rest, static_cast<char32_t>(c));
  }
  EXPECT_EQ(rest, RegexArena::kNothing);
}

// Random grammars without terminals that overlap oddly are written in Lark and read back: the
// language must be that of the tree they were made from.
class RandomGrammar {
 public:
  explicit RandomGrammar(uint32_t seed) : random_(seed) {}

  std::string Make(GrammarIr& expected) {
    std::string text;
    const uint32_t rules = 1 + random_() % 3;
    for (uint32_t i = 0; i < rules; ++i) ids_.push_back(expected.AddRule("r"));
    for (uint32_t i = 0; i < rules; ++i) {
      std::string body;
      const GrammarIr::ExprId expr = Choice(expected, 3, body);
      expected.Define(ids_[i], expr);
      text += (i == 0 ? std::string("start") : "r" + std::to_string(i)) + ": " + body + "\n";
    }
    expected.SetRoot(ids_[0]);
    return text;
  }

 private:
  GrammarIr::ExprId Choice(GrammarIr& ir, int depth, std::string& text) {
    std::vector<GrammarIr::ExprId> alternatives;
    const uint32_t count = 1 + random_() % 3;
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) text += random_() % 2 == 0 ? " | " : "\n  | ";
      std::vector<GrammarIr::ExprId> parts;
      for (uint32_t k = random_() % 4; k > 0; --k) parts.push_back(Part(ir, depth, text));
      alternatives.push_back(ir.Sequence(parts));
    }
    return ir.Choice(alternatives);
  }
  GrammarIr::ExprId Part(GrammarIr& ir, int depth, std::string& text) {
    GrammarIr::ExprId atom = GrammarIr::kEmpty;
    const uint32_t kind = random_() % 6;
    if (kind == 0 && depth > 0) {
      text += "(";
      atom = Choice(ir, depth - 1, text);
      text += ")";
    } else if (kind == 1 && depth > 0) {
      text += "[";
      atom = ir.Optional(Choice(ir, depth - 1, text));
      text += "]";
    } else if (kind == 2) {
      const uint32_t rule = random_() % ids_.size();
      text += rule == 0 ? "start" : "r" + std::to_string(rule);
      atom = ir.Call(ids_[rule]);
    } else if (kind == 3) {
      text += "/[ab]c?/";
      RegexArena& arena = ir.arena();
      atom = ir.Regex(
          arena.Concat(arena.Set(CodepointSet::Of('a', 'b')), arena.Optional(arena.Char('c'))));
    } else {
      const std::string letter(1, static_cast<char>('a' + random_() % 3));
      text += "\"" + letter + "\"";
      atom = ir.Literal(letter);
    }
    switch (random_() % 8) {
      case 0:
        text += "*";
        atom = ir.Repeat(atom, 0, GrammarIr::kUnbounded);
        break;
      case 1:
        text += "+";
        atom = ir.Repeat(atom, 1, GrammarIr::kUnbounded);
        break;
      case 2:
        text += "?";
        atom = ir.Optional(atom);
        break;
      case 3:
        text += "{1,2}";
        atom = ir.Repeat(atom, 1, 2);
        break;
      case 4:
        text += "~2";
        atom = ir.Repeat(atom, 2, 2);
        break;
      default:
        break;
    }
    text += " ";
    return atom;
  }

  std::mt19937 random_;
  std::vector<GrammarIr::RuleId> ids_;
};

TEST(Lark, RandomGrammars) {
  const std::vector<std::string> texts = TextsUpTo(4, "abc");
  int accepted = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    GrammarIr expected;
    const std::string grammar = RandomGrammar(seed).Make(expected);
    GrammarIr actual = Read(grammar);
    ASSERT_NE(actual.root(), GrammarIr::kNoRule) << grammar;
    CfgReference want(expected), have(actual);
    for (const std::string& text : texts) {
      const bool in = want.Accepts(text);
      accepted += in ? 1 : 0;
      ASSERT_EQ(have.Accepts(text), in) << grammar << "\n" << text;
    }
  }
  EXPECT_GT(accepted, 1000);
}

// With %ignore, a text fits exactly when it does without its blanks, as long as no blank stands
// first, and none behind what cannot go on.
TEST(Lark, RandomGrammarsWithIgnoredText) {
  const std::vector<std::string> texts = TextsUpTo(4, "ab ");
  for (uint32_t seed = 0; seed < 100; ++seed) {
    GrammarIr expected;
    std::string grammar = RandomGrammar(seed).Make(expected);
    // One character a terminal, so that blanks may stand between any two characters.
    for (size_t at; (at = grammar.find("/[ab]c?/")) != std::string::npos;) {
      grammar.replace(at, 8, "/[ab]/");
    }
    GrammarIr plain = Read(grammar);
    GrammarIr ignoring = Read(grammar + "%ignore \" \"\n");
    GrammarIr initial = Read(grammar + "%ignore \" \"\n%llguidance {\"allow_initial_skip\":true}");
    CfgReference want(plain), have(ignoring), leading(initial);
    for (const std::string& text : texts) {
      std::string bare;
      for (const char c : text) {
        if (c != ' ') bare += c;
      }
      const bool in = want.Accepts(bare);
      const bool have_it = have.Accepts(text);
      if (!in) {
        ASSERT_FALSE(have_it) << grammar << "\n'" << text << "'";
        ASSERT_FALSE(leading.Accepts(text)) << grammar << "\n'" << text << "'";
      } else if (!text.starts_with(' ')) {
        if (!text.ends_with(' ')) {
          ASSERT_TRUE(have_it) << grammar << "\n'" << text << "'";
        }
        ASSERT_EQ(have_it, leading.Accepts(text)) << grammar << "\n'" << text << "'";
      } else {
        ASSERT_FALSE(have_it) << grammar << "\n'" << text << "'";
        if (!text.ends_with(' ')) {
          ASSERT_TRUE(leading.Accepts(text)) << grammar << "\n'" << text << "'";
        }
      }
    }
  }
}

}  // namespace
}  // namespace pawl
