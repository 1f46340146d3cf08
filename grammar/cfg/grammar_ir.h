// The form that all grammar languages are read into (GrammarIr), rules that are made on demand
// (OpenRules), and grammars as parts of others (ImportIr).
//
// GrammarIr: a context-free grammar over bytes and tokens, the one form that every grammar language
// (EBNF, GBNF, Lark, structural tags) is read into and that CfgMachine runs.
//
//   GrammarIr ir;
//   const GrammarIr::RuleId list = ir.AddRule("list");
//   const GrammarIr::ExprId item = ir.Regex(ir.arena().Literal(U"x"));
//   ir.Define(list, ir.Choice({item, ir.Sequence({ir.Call(list), ir.Literal(","), item})}));
//   ir.SetRoot(list);
//
// The language is that of the grammar as mathematics has it: every derivation counts, whatever the
// order of alternatives, and a text is cut into terminals in every split that fits (no longest
// match). Left, right and hidden recursion, empty rules, rules without any text, ambiguity are all
// fine.
//
// Expressions are interned and may be shared; their operands exist before them, so a grammar is
// only recursive through Call. Nothing here recurses on the depth of an expression.
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_GRAMMAR_IR_H_
#define PAWL_GRAMMAR_CFG_GRAMMAR_IR_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "grammar/regex/regex_arena.h"
#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

// Tokens taken as a whole, whatever their bytes: special tokens by name, any token by id.
struct TokenSet {
  std::vector<std::string> names = {};                   // such as "<|eot_id|>"
  std::vector<std::pair<TokenId, TokenId>> ranges = {};  // first and last id
  bool complement = false;                               // every token but these (no end tokens)
  std::string place = {};  // where it stands, for errors: "line:column"
  size_t MemoryBytes() const { return HeapBytes(names, ranges, place); }
  friend bool operator==(const TokenSet&, const TokenSet&) = default;
};

class GrammarIr {
 public:
  using ExprId = uint32_t;
  using RuleId = uint32_t;
  static constexpr ExprId kEmpty = 0;  // the empty text
  static constexpr ExprId kNever = 1;  // no text at all
  static constexpr uint32_t kUnbounded = UINT32_MAX;
  static constexpr RuleId kNoRule = UINT32_MAX;

  enum class Kind : uint8_t {
    kEmpty,
    kNever,
    kRegex,      // regex, lazy
    kAutomaton,  // automaton: a language that has its own machine, e.g. a JSON Schema
    kTokens,     // tokens
    kCall,       // rule
    kSequence,   // operands
    kChoice,     // operands
    kRepeat      // operands[0], min, max
  };

  struct Expr {
    Kind kind = Kind::kEmpty;
    bool lazy = false;   // kRegex: ends as soon as it matches; what is matched has no proper prefix
                         // that matches too
    uint32_t index = 0;  // kRegex: ReId; kAutomaton, kTokens: index; kCall: RuleId
    uint32_t min = 0, max = 0;
    std::vector<ExprId> operands = {};
    size_t MemoryBytes() const { return HeapBytes(operands); }
    friend bool operator==(const Expr&, const Expr&) = default;
  };

  struct Automaton {
    std::shared_ptr<Machine> machine;
    std::string description;  // for printing, e.g. `%json {...}`
    size_t MemoryBytes() const { return HeapBytes(description); }  // the machine aside
  };

  // A rule that is one terminal, a text and then a marker that ends it: what is captured is the
  // text without the marker. Where several cuts fit, the marker is as long as it can be.
  struct Marker {
    ReId text = RegexArena::kNothing, marker = RegexArena::kNothing;
    std::optional<std::string> capture = {};  // name under which the marker is reported
    bool hidden = false;  // the captures of rules around this one do not hold the marker either
    bool ahead = false;   // the marker is no part of the rule's text, it stands behind it
    size_t MemoryBytes() const { return HeapBytes(capture); }
    friend bool operator==(const Marker&, const Marker&) = default;
  };

  // What a rule's author asked for in addition to its language.
  struct Attributes {
    std::optional<std::string> capture = {};  // name under which the text of the rule is reported
    std::optional<Marker> marker = {};
    std::optional<uint32_t> max_tokens = {};  // tokens that a text of the rule may have; only where
                                              // the definition is one terminal
    bool relaxed = false;  // a text that may not end at max_tokens goes on until it may
    std::optional<double> temperature = {};  // for sampling while inside the rule
    bool captures() const { return capture.has_value() || marker.has_value(); }
    size_t MemoryBytes() const { return HeapBytes(capture, marker); }
    friend bool operator==(const Attributes&, const Attributes&) = default;
  };

  struct Rule {
    std::string name;
    ExprId body = kNever;
    bool defined = false;
    Attributes attributes;
    std::string place;  // where it is defined, "line:column"; may be empty
    size_t MemoryBytes() const { return HeapBytes(name, attributes, place); }
  };

  GrammarIr() : GrammarIr(std::make_shared<RegexArena>()) {}
  // With the regexes of others.
  explicit GrammarIr(std::shared_ptr<RegexArena> arena);

  // Where regexes are built (regex_arena.h).
  RegexArena& arena() { return *arena_; }
  const RegexArena& arena() const { return *arena_; }
  const std::shared_ptr<RegexArena>& shared_arena() const { return arena_; }

  ExprId Regex(ReId id, bool lazy = false);
  // The text itself. REQUIRES: valid UTF-8.
  ExprId Literal(std::string_view text);
  ExprId Terminal(Automaton automaton);
  ExprId Tokens(TokenSet set);
  ExprId Call(RuleId rule);
  ExprId Sequence(std::span<const ExprId> operands);
  ExprId Sequence(std::initializer_list<ExprId> operands) {
    return Sequence(std::span<const ExprId>(operands.begin(), operands.size()));
  }
  ExprId Choice(std::span<const ExprId> operands);
  ExprId Choice(std::initializer_list<ExprId> operands) {
    return Choice(std::span<const ExprId>(operands.begin(), operands.size()));
  }
  // Between min and max times (kUnbounded: no upper limit); a counter, never unrolled. A max below
  // min gives kNever.
  ExprId Repeat(ExprId operand, uint32_t min, uint32_t max);
  ExprId Optional(ExprId operand) { return Repeat(operand, 0, 1); }

  // A sequence, choice or repetition as in `like`, of other operands; else one without text, if
  // `like` has none.
  ExprId Like(const Expr& like, const std::vector<ExprId>& operands);

  // Rules may be called before they are defined. A rule that is never defined has no text.
  RuleId AddRule(std::string name, std::string place = "");
  void Define(RuleId rule, ExprId body);
  void SetAttributes(RuleId rule, Attributes attributes);
  void SetPlace(RuleId rule, std::string place) { rules_[rule].place = std::move(place); }
  void SetRoot(RuleId rule) { root_ = rule; }

  RuleId root() const { return root_; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  uint32_t rule_count() const { return static_cast<uint32_t>(rules_.size()); }
  const Expr& expr(ExprId id) const { return exprs_[id]; }
  uint32_t expr_count() const { return static_cast<uint32_t>(exprs_.size()); }
  const Automaton& automaton(uint32_t index) const { return automata_[index]; }
  const TokenSet& token_set(uint32_t index) const { return token_sets_[index]; }
  // What the root reaches, in the order of ids: operands stand before what has them.
  struct Reached {
    std::vector<ExprId> exprs;
    std::vector<RuleId> rules;
  };
  Reached Reach() const;
  // The arena and the machines of the automata aside.
  size_t MemoryBytes() const { return HeapBytes(exprs_, index_, rules_, automata_, token_sets_); }
  uint32_t token_set_count() const { return static_cast<uint32_t>(token_sets_.size()); }

 private:
  ExprId Intern(Expr expr);
  // One more operand, or those of an expression of the same kind.
  void AddFlat(Expr& expr, ExprId operand) const;

  std::shared_ptr<RegexArena> arena_;
  std::vector<Expr> exprs_;
  HashIndex index_;
  std::vector<Rule> rules_;
  std::vector<Automaton> automata_;
  std::vector<TokenSet> token_sets_;
  RuleId root_ = kNoRule;
};

// OpenRules: rules of a grammar that is written while it is found out what is called.
//
//   OpenRules<ContId> rules(ir, "rest_");
//   const ExprId first = rules.Call(start);
//   for (size_t i = 0; i < rules.size(); ++i) rules.Define(i, ... which may call further keys ...);
//
// A rule is named by the order in which keys are called first. Thread safety: none.

template <typename Key>
class OpenRules {
 public:
  OpenRules(GrammarIr& ir, std::string prefix) : ir_(ir), prefix_(std::move(prefix)) {}

  // A call of the key's rule.
  GrammarIr::ExprId Call(const Key& key) {
    const auto [known, inserted] = rules_.emplace(key, GrammarIr::kNoRule);
    if (inserted) {
      known->second = ir_.AddRule(prefix_ + std::to_string(keys_.size()));
      keys_.push_back(key);
    }
    return ir_.Call(known->second);
  }
  size_t size() const { return keys_.size(); }
  Key key(size_t i) const { return keys_[i]; }
  void Define(size_t i, GrammarIr::ExprId body) { ir_.Define(rules_.at(keys_[i]), body); }

 private:
  GrammarIr& ir_;
  std::string prefix_;
  std::map<Key, GrammarIr::RuleId> rules_;
  std::vector<Key> keys_;
};

// ImportIr: a grammar as a part of another one.
//
//   const GrammarIr::RuleId root = ImportIr(ir, *ReadEbnf(text, {}));
//   ir.Sequence({ir.Literal("<code>"), ir.Call(root), ir.Literal("</code>")});

// Adds the rules of `from` to `into`; its root's id there, which nothing calls yet.
GrammarIr::RuleId ImportIr(GrammarIr& into, const GrammarIr& from);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_GRAMMAR_IR_H_
