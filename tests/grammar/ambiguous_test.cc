// Grammars that have many readings: their work does not grow with the text where that can be
// had, and has a limit elsewhere; what they accept is what the slow recogniser accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/grammar_access.h"
#include "grammar/languages/ebnf.h"
#include "grammar/masks/machine_masks.h"
#include "pawl/grammar.h"
#include "src/base/file.h"
#include "tests/allowed_time.h"
#include "tests/grammar/cfg_random.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/grammar/mask_oracle.h"
#include "tests/source_dir.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

using RuleId = GrammarIr::RuleId;

std::shared_ptr<const Vocabulary> TextTokens() {
  static const auto vocabulary =
      VocabularyOf(Letters(' ', '~',
                           {"\n", "ab", "a+", "+a", "a*b", ")+", "((", "aa", "if ", "else ", "x;",
                            "if x ", "aaaa", " * ", "a * b", "a * b;", "12", "+1"}));
  return vocabulary;
}

std::shared_ptr<CfgMachine> MachineOf(std::string_view text, const CfgLimits& limits = {}) {
  auto ir = ReadEbnf(text, {});
  EXPECT_TRUE(ir.ok()) << ir.error().ToString();
  auto machine = CfgMachine::Create(*ir, *TextTokens(), limits);
  EXPECT_TRUE(machine.ok()) << machine.error().ToString();
  return *machine;
}

// The steps that each token of a text takes, and the mask behind it.
std::vector<uint64_t> Work(CfgMachine& machine, const std::vector<std::string>& tokens) {
  std::vector<uint64_t> work;
  Machine::Key key = machine.Start();
  std::vector<uint32_t> words(static_cast<size_t>(TextTokens()->mask_words()));
  for (const std::string& token : tokens) {
    const uint64_t before = machine.work();
    for (const char byte : token) key = machine.Step(key, static_cast<uint8_t>(byte));
    EXPECT_NE(key, Machine::kDead) << "token " << work.size();
    if (key == Machine::kDead) break;
    machine.Masks(*TextTokens())->Fill(key, words.data());
    work.push_back(machine.work() - before);
  }
  return work;
}

uint64_t Most(const std::vector<uint64_t>& work, size_t begin, size_t end) {
  return *std::max_element(work.begin() + static_cast<std::ptrdiff_t>(begin),
                           work.begin() + static_cast<std::ptrdiff_t>(end));
}

// `next(i)`: token i of a text.
template <typename Next>
void ExpectSteadyWork(std::string_view grammar, const Next& next) {
  SCOPED_TRACE(grammar);
  const auto machine = MachineOf(grammar);
  std::vector<std::string> tokens;
  for (size_t i = 0; i < 2020; ++i) tokens.push_back(next(i));
  const double begin = ProcessorSeconds();
  const std::vector<uint64_t> work = Work(*machine, tokens);
  EXPECT_LT(ProcessorSeconds() - begin, AllowedSeconds(2));
  ASSERT_EQ(work.size(), tokens.size());
  EXPECT_LE(Most(work, 1980, 2020), 3 * Most(work, 80, 120));
}

constexpr const char* kExpressions =
    "root ::= e\ne ::= e \"+\" e | e \"*\" e | e e | \"(\" e \")\" | [a-z]+ | \"\"\n";

// Each token is where none has been before, so nothing is known: the work of a new place.
TEST(AmbiguousTest, WorkDoesNotGrowWithTheText) {
  const std::vector<std::string> pieces = {"a", "+", "b", "*", "ab", "a+", "(", "a", ")+", "x"};
  ExpectSteadyWork(kExpressions, [&](size_t i) { return pieces[i % pieces.size()]; });
  ExpectSteadyWork("root ::= s\ns ::= s s s | s s | \"a\" | \"\"\n",
                   [](size_t i) { return i % 3 == 0 ? "aa" : "a"; });
  ExpectSteadyWork("root ::= s\ns ::= s s s | s s | \"a\"\n", [](size_t) { return "a"; });
  ExpectSteadyWork("root ::= s\ns ::= \"if x \" s | \"if x \" s \"else \" s | \"x;\" | \"x\"\n",
                   [](size_t) { return "if x "; });
  ExpectSteadyWork(
      "root ::= s+\ns ::= \"if x \" s | \"if x \" s \"else \" s | \"x;\"\n", [](size_t i) {
        static const std::vector<std::string> text = {"if x ", "if x ", "x;", "else ", "x;"};
        return text[i % text.size()];
      });
  ExpectSteadyWork(
      "root ::= stmt+\nstmt ::= decl | expr \";\" | \"{\" stmt* \"}\"\ndecl ::= type declarator "
      "\";\"\ntype ::= id | type \" * \"\ndeclarator ::= \" * \"* id | declarator \"(\" decls "
      "\")\"\ndecls ::= \"\" | decls \",\" type declarator\nexpr ::= expr \" * \" expr | expr "
      "\"+\" "
      "expr | expr \"(\" expr \")\" | \"(\" expr \")\" | \"(\" type \")\" expr | id\nid ::= "
      "[a-z]+\n",
      [](size_t i) {
        static const std::vector<std::string> text = {"a", " * ", "b", ";", "a * b;"};
        return text[i % text.size()];
      });
  // What has to come behind grows here, but not the ways to read it.
  ExpectSteadyWork("root ::= a\na ::= b a \"x\" | \"c\"\nb ::= \"\" | \"b\"\n",
                   [](size_t) { return "b"; });
}

// At the same depth of brackets the work is that of a place near the start.
TEST(AmbiguousTest, WorkDoesNotGrowWithTheTextInBrackets) {
  std::mt19937 random(5);
  std::vector<int> depth;
  ExpectSteadyWork(kExpressions, [&](size_t) {
    const int at = depth.empty() ? 0 : depth.back();
    const auto pick = random() % 6;
    std::string token = pick == 0 ? "a" : pick == 1 ? "+" : pick == 2 ? "*" : pick == 3 ? "ab" : "";
    if (token.empty()) token = at < 4 && (at == 0 || random() % 2 == 0) ? "(" : ")";
    depth.push_back(at + (token == "(" ? 1 : token == ")" ? -1 : 0));
    return token;
  });
  // Twice as deep takes twice as long, not four times.
  const auto down = [&](size_t count) {
    const auto machine = MachineOf(kExpressions);
    const std::vector<uint64_t> work = Work(*machine, std::vector<std::string>(count, "("));
    uint64_t sum = 0;
    for (const uint64_t steps : work) sum += steps;
    return sum;
  };
  EXPECT_LT(down(2000), down(1000) * 23 / 10);
}

// Rules that call themselves on the left, on the right, in the middle, and around nothing.
void MakeAmbiguous(GrammarIr& ir, std::mt19937& random) {
  const auto pick = [&](size_t n) { return random() % n; };
  std::vector<RuleId> rules;
  const size_t count = 1 + pick(3);
  for (size_t i = 0; i < count; ++i) rules.push_back(ir.AddRule("r" + std::to_string(i)));
  for (const RuleId rule : rules) {
    std::vector<GrammarIr::ExprId> choices;
    const size_t alternatives = 2 + pick(3);
    for (size_t a = 0; a < alternatives; ++a) {
      std::vector<GrammarIr::ExprId> sequence;
      const size_t length = pick(5) == 0 ? 0 : 1 + pick(3);
      for (size_t i = 0; i < length; ++i) {
        const size_t kind = pick(5);
        if (kind < 2) {
          sequence.push_back(ir.Literal(std::string(1, static_cast<char>('a' + pick(2)))));
        } else {
          sequence.push_back(ir.Call(kind == 2 ? rules[pick(count)] : rule));
        }
      }
      choices.push_back(ir.Sequence(sequence));
    }
    choices.push_back(ir.Literal(pick(3) == 0 ? "" : pick(2) == 0 ? "a" : "b"));
    ir.Define(rule, ir.Choice(choices));
  }
  ir.SetRoot(rules[0]);
}

// Texts are walked to their end in one machine, one after the other, so that places of one text
// take over what was found at places of others.
TEST(AmbiguousTest, AcceptsWhatTheReferenceAccepts) {
  int accepted = 0, refused = 0;
  for (uint32_t seed = 0; seed < 1200; ++seed) {
    std::mt19937 random(seed);
    GrammarIr ir;
    MakeAmbiguous(ir, random);
    auto machine = CfgMachine::Create(ir, *Tokens());
    if (!machine.ok()) continue;
    CfgReference reference(ir);
    const Grammar grammar(*machine, Tokens());
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (size_t n = random() % 11; n > 0; --n) text += static_cast<char>('a' + random() % 2);
      const bool expected = reference.Accepts(text);
      ++(expected ? accepted : refused);
      ASSERT_EQ(Accepts(grammar, text), expected) << "seed " << seed << " text \"" << text << '"';
    }
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
}

// Walks by tokens that the mask allows. Returns how many states had reached the limit.
int WalkAndCheck(const Grammar& grammar, CfgMachine& machine, std::mt19937& random, int steps,
                 const std::string& name) {
  int limited = 0;
  State state = grammar.Start();
  std::string text;
  for (int step = 0; step < steps; ++step) {
    const std::string where = name + " after \"" + text + '"';
    const std::vector<TokenId> allowed = AllowedTokens(state, *Tokens(), where);
    const auto completion = state.Completion();
    EXPECT_TRUE(completion) << where;
    if (!completion) return limited;
    const auto tokens = state.CompletionTokens();
    EXPECT_TRUE(tokens) << where;
    State end = state;
    for (const TokenId token : tokens.value_or(std::vector<TokenId>())) {
      const auto next = end.Advance(token);
      EXPECT_TRUE(next) << where << " token " << token << " of the completion";
      if (!next) return limited;
      end = *next;
    }
    EXPECT_TRUE(end.accepting()) << where;
    if (!GrammarAccess::LimitNote(state).empty()) {
      ++limited;
      // Each token is one of the beginning of the completion.
      std::string rest;
      for (const OutputPiece& piece : *completion) rest += piece.bytes;
      for (const TokenId token : allowed)
        EXPECT_TRUE(rest.starts_with(Tokens()->bytes(token))) << where << ", token " << token;
      EXPECT_EQ(allowed.empty(), rest.empty()) << where;
    }
    if (allowed.empty()) break;
    const TokenId token = allowed[random() % allowed.size()];
    text += Tokens()->bytes(token);
    state = *state.Advance(token);
  }
  EXPECT_GT(machine.work(), 0u);
  return limited;
}

TEST(AmbiguousTest, MasksAreWhatTryingEveryTokenSays) {
  for (uint32_t seed = 0; seed < 250; ++seed) {
    std::mt19937 random(seed + 1000);
    GrammarIr ir;
    MakeAmbiguous(ir, random);
    auto machine = CfgMachine::Create(ir, *Tokens());
    if (!machine.ok()) continue;
    EXPECT_EQ(WalkAndCheck(Grammar(*machine, Tokens()), **machine, random, 20,
                           "seed " + std::to_string(seed)),
              0);
  }
}

TEST(AmbiguousTest, BeyondTheLimitOnlyTheShortestCompletionFollows) {
  int limited = 0, walks = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed + 2000);
    GrammarIr ir;
    if (seed % 2 == 0) {
      MakeAmbiguous(ir, random);
    } else {
      MakeRandom(ir, random);
    }
    auto machine = CfgMachine::Create(ir, *Tokens(),
                                      {.mask_steps = 20 + random() % 300, .crowd = random() % 4});
    if (!machine.ok()) continue;
    const int found = WalkAndCheck(Grammar(*machine, Tokens()), **machine, random, 20,
                                   "seed " + std::to_string(seed));
    limited += found;
    walks += found > 0 ? 1 : 0;
  }
  EXPECT_GT(limited, 60);
  EXPECT_GT(walks, 20);
}

// Both readings of each letter stay: the first half, and the second.
constexpr const char* kMirrored =
    "root ::= s\ns ::= \"a\" s \"a\" | \"b\" s \"b\" | \"ab\" s \"a\" | \"\"\n";

// After how many tokens a text of letters a reaches the limit; -1: not at all.
int ReachesLimit(CfgMachine& machine, int most, std::string* note = nullptr) {
  Machine::Key key = machine.Start();
  for (int i = 0; i < most; ++i) {
    key = machine.Step(key, 'a');
    const Machine::Key at = machine.AtToken(key, *TextTokens());
    if (at == key) continue;
    if (note != nullptr) *note = machine.LimitNote(key);
    EXPECT_EQ(machine.LimitNote(at), machine.LimitNote(key));
    return i + 1;
  }
  return -1;
}

TEST(AmbiguousTest, TheLimitNamesTheRule) {
  const auto machine = MachineOf(kMirrored, {.mask_steps = 5000, .crowd = 8});
  std::string note;
  EXPECT_GT(ReachesLimit(*machine, 2000, &note), 20);
  EXPECT_EQ(note,
            "rule \"s\" can be read in too many ways here (more than 5000 steps for one mask), so "
            "the output was closed in the shortest form");
}

// What was asked before changes nothing.
TEST(AmbiguousTest, TheLimitDependsOnTheTextAlone) {
  const CfgLimits limits = {.mask_steps = 5000, .crowd = 8};
  const int first = ReachesLimit(*MachineOf(kMirrored, limits), 2000);
  ASSERT_GT(first, 0);
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    const auto machine = MachineOf(kMirrored, limits);
    const Grammar grammar(machine, TextTokens());
    for (int walk = 0; walk < 5; ++walk) {
      State state = grammar.Start();
      for (int i = 0; i < 60; ++i) {
        const auto next = state.Advance(random() % 3 == 0 ? "b" : "a");
        if (!next) break;
        state = *next;
        if (i % 7 == 0) (void)state.mask();
      }
    }
    EXPECT_EQ(ReachesLimit(*machine, 2000), first);
  }
}

// Up to the mask that reaches the limit, and that one included.
TEST(AmbiguousTest, NoMaskTakesManyMoreStepsThanTheLimit) {
  constexpr uint64_t kSteps = 20'000;
  const auto machine = MachineOf(kMirrored, {.mask_steps = kSteps, .crowd = 64});
  const Grammar grammar(machine, TextTokens());
  State state = grammar.Start();
  constexpr TokenId kA = 'a' - ' ';
  bool limited = false;
  for (int i = 0; i < 4000 && !limited; ++i) {
    const uint64_t before = machine->work();
    const auto mask = state.mask();
    ASSERT_LT(machine->work() - before, 3 * kSteps) << "token " << i;
    limited = !GrammarAccess::LimitNote(state).empty();
    if (limited) break;
    ASSERT_TRUE(mask->Allows(kA)) << "token " << i;
    state = *state.Advance(kA);
  }
  EXPECT_TRUE(limited);
}

bool Crowded(CfgMachine& machine, Machine::Key key) {
  const auto state = Machine::FrameOf(key);
  bool crowded = machine.continuations().Crowded(machine.fresh(state));
  for (const CfgMachine::Thread& thread : machine.threads(state))
    crowded |= machine.continuations().Crowded(thread.then);
  return crowded;
}

// No state of the example grammars is crowded, so none has a limit: those of their samples, and
// those of random texts.
TEST(AmbiguousTest, ExampleGrammarsHaveNoCrowdedStates) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(SourceDir()) / "grammar/examples";
  int grammars = 0, samples = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string kind = file.path().extension().string(), stem = file.path().stem().string();
    if (kind != ".ebnf" && kind != ".gbnf") continue;
    const std::string text = *ReadFile(file.path().string());
    auto ir = kind == ".ebnf" ? ReadEbnf(text, {}) : ReadGbnf(text, {});
    ASSERT_TRUE(ir.ok()) << stem;
    auto machine = CfgMachine::Create(*ir, *TextTokens());
    ASSERT_TRUE(machine.ok()) << stem;
    ++grammars;
    for (const auto& sample : fs::directory_iterator(folder / "samples")) {
      if (!sample.path().filename().string().starts_with(stem + ".accept.")) continue;
      ++samples;
      Machine::Key key = (*machine)->Start();
      const std::string content = *ReadFile(sample.path().string());
      for (const char byte : content) {
        key = (*machine)->Step(key, static_cast<uint8_t>(byte));
        ASSERT_NE(key, Machine::kDead) << sample.path();
        ASSERT_FALSE(Crowded(**machine, key)) << sample.path();
      }
    }
    std::mt19937 random(7);
    for (int walk = 0; walk < 20; ++walk) {
      Machine::Key key = (*machine)->Start();
      for (int i = 0; i < 300; ++i) {
        std::vector<Machine::Key> next;
        for (int c = '\n'; c <= '~'; ++c) {
          const Machine::Key after = (*machine)->Step(key, static_cast<uint8_t>(c));
          if (after != Machine::kDead) next.push_back(after);
        }
        if (next.empty()) break;
        key = next[random() % next.size()];
        ASSERT_FALSE(Crowded(**machine, key)) << stem;
      }
    }
  }
  EXPECT_GE(grammars, 5);
  EXPECT_GE(samples, 10);
}

// 100,000 tokens of a grammar that has one reading: no state is crowded, and the steps of a token
// are those of the first ones.
TEST(AmbiguousTest, LongOutputsOfUnambiguousGrammarsReachNoLimit) {
  const auto machine = MachineOf(
      "root ::= sum\nsum ::= product | sum \"+\" product\nproduct ::= atom | product \"*\" "
      "atom\natom ::= [a-z0-9]+ | \"(\" sum \")\" | list\nlist ::= \"[\" \"]\" | \"[\" items "
      "\"]\"\nitems ::= sum | items \",\" sum\n");
  std::vector<std::string> tokens;
  std::mt19937 random(11);
  std::vector<char> open;
  bool operand = true;
  while (tokens.size() < 100'000) {
    const auto pick = random() % 10;
    if (operand && pick < 3 && open.size() < 30) {
      tokens.emplace_back(pick == 0 ? "[" : "(");
      open.push_back(pick == 0 ? ']' : ')');
    } else if (operand) {
      tokens.emplace_back(pick == 9 ? "aaaa" : "12");
      operand = false;
    } else if (!open.empty() && pick < 4) {
      tokens.emplace_back(1, open.back());
      open.pop_back();
    } else {
      tokens.emplace_back(pick == 9 && !open.empty() && open.back() == ']' ? ","
                          : pick < 7                                       ? "+"
                                                                           : "*");
      operand = true;
    }
  }
  const std::vector<uint64_t> work = Work(*machine, tokens);
  ASSERT_EQ(work.size(), tokens.size());
  EXPECT_LE(Most(work, 10'000, 100'000), 3 * Most(work, 0, 1'000));
  EXPECT_LT(Most(work, 0, 100'000), CfgLimits().mask_steps / 100);
  Machine::Key key = machine->Start();
  for (const std::string& token : tokens) {
    for (const char byte : token) key = machine->Step(key, static_cast<uint8_t>(byte));
    ASSERT_FALSE(Crowded(*machine, key));
  }
}

}  // namespace
}  // namespace pawl
