// Free text with tags is the loop (free tag)* free, where "free" is every text in which no trigger
// and no excluded string occurs. Which trigger ended a free text is then decided by what follows,
// so one automaton (free_text.h) serves all triggers, and the beginnings of all tags are one prefix
// tree. The only triggers that need an automaton of their own are those into which another one may
// reach: after "a", the trigger "aba" may not begin where "aab" is one too.
//
// Special tokens are no text. Where a string of the structural tag names one ("<|channel|>"), the
// token fits there as well as its name; inside of beginnings such a token is one symbol, numbered
// behind the last code point.
#include "grammar/tags/structural_tag.h"

#include <algorithm>

#include "grammar/cfg/free_text.h"
#include "grammar/cfg/grammar_ir.h"
#include "grammar/cfg/stop_reach.h"
#include "grammar/languages/ebnf.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/option_fields.h"
#include "grammar/regex/ecma_parser.h"
#include "grammar/tags/structural_tag_reader.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {

namespace {

using ExprId = GrammarIr::ExprId;

constexpr char32_t kFirstToken = 0x110000;  // behind the last code point

// The bytes of a text, for what takes characters.
const unsigned char* BytesBegin(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Error ErrorInside(Error error, const std::string& pointer) {
  if (error.place.starts_with("#")) {
    error.place = pointer + error.place.substr(1);
  } else {
    error.place = error.place.empty() ? pointer : pointer + ", " + error.place;
  }
  return error;
}

Result<GrammarIr> StructuralTagReader::Read(std::string_view text) {
  for (TokenId id = 0; id < context_.vocabulary.size(); ++id) {
    const std::string_view name = context_.vocabulary.bytes(id);
    if (!context_.vocabulary.is_special(id) || name.empty()) continue;
    if (FindInvalidUtf8(name) != std::string_view::npos) continue;
    special_[name[0]].emplace_back(name, id);
  }
  for (auto& [first, names] : special_) {
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }
  json::ParseLimits limits;
  limits.max_bytes = context_.options.max_bytes;
  limits.max_depth = 2 * context_.options.json_schema.max_depth +
                     2 * std::clamp(context_.options.max_nesting, 0, 1000) + 16;
  auto document = json::Parse(text, limits);
  if (!document.ok()) return document.error();
  const JsonReader in(*document);
  const ExprId root = ReadDocument(in);
  if (!in.ok()) return in.error();
  const GrammarIr::RuleId rule = ir_.AddRule("structural_tag");
  ir_.Define(rule, root);
  ir_.SetRoot(rule);
  return std::move(ir_);
}

ExprId StructuralTagReader::ReadDocument(const JsonReader& in) {
  const JsonReader type = in.Object()["type"];
  if (type.String("structural_tag") != "structural_tag") type.Fail("must be \"structural_tag\"");
  if (in["structures"].present()) return ReadLegacy(in);
  in.OnlyMembers({"type", "format"});
  return Format(in["format"], {}, 0);
}

// Expressions -------------------------------------------------------------------------------------

ExprId StructuralTagReader::TokensOf(const std::vector<TokenId>& tokens, bool complement) {
  TokenSet set{.complement = complement};
  for (const TokenId id : tokens) set.ranges.emplace_back(id, id);
  return ir_.Tokens(std::move(set));
}

namespace {

// The code points of a text; names of special tokens as one symbol each, the longest that fits.
std::u32string SymbolsOf(
    std::string_view text,
    const std::map<char, std::vector<std::pair<std::string, TokenId>>>& special) {
  std::u32string symbols;
  size_t plain = 0;
  const auto flush = [&](size_t end) {
    symbols += DecodeCodepoints(text.substr(plain, end - plain));
  };
  for (size_t i = 0; i < text.size();) {
    const auto names = special.find(text[i]);
    size_t length = 0;
    if (names != special.end()) {
      for (const auto& [name, id] : names->second) {
        if (!text.substr(i).starts_with(name)) continue;
        flush(i);
        symbols.push_back(kFirstToken + static_cast<char32_t>(id));
        length = name.size();
        break;
      }
    }
    i += std::max<size_t>(1, length);
    if (length > 0) plain = i;
  }
  flush(text.size());
  return symbols;
}

// The symbols as an expression.
ExprId ExprOf(GrammarIr& ir, const Vocabulary& vocabulary, std::u32string_view symbols,
              bool as_token = false) {
  std::vector<ExprId> parts;
  for (size_t i = 0; i < symbols.size();) {
    size_t end = i;
    while (end < symbols.size() && symbols[end] < kFirstToken) ++end;
    if (end > i) {
      parts.push_back(ir.Regex(ir.arena().Literal(symbols.substr(i, end - i))));
      i = end;
      continue;
    }
    const auto id = static_cast<TokenId>(symbols[i++] - kFirstToken);
    const ExprId token = ir.Tokens({.ranges = {{id, id}}});
    parts.push_back(as_token ? token : ir.Choice({token, ir.Literal(vocabulary.bytes(id))}));
    as_token = false;
  }
  if (as_token) return GrammarIr::kNever;
  return ir.Sequence(parts);
}

}  // namespace

ExprId StructuralTagReader::TextOf(std::string_view text, bool as_token) {
  return ExprOf(ir_, context_.vocabulary, SymbolsOf(text, special_), as_token);
}

ExprId StructuralTagReader::FreeTextOf(const Text& text, const std::string& before) {
  if (text.max_chars == 0u || text.max_tokens == 0u) return GrammarIr::kEmpty;
  std::vector<std::string> stops = text.stops;
  SortUnique(stops);
  std::string key = std::to_string(text.max_chars.value_or(UINT32_MAX)) + " " +
                    std::to_string(text.max_tokens.value_or(UINT32_MAX)) + json::Quote(before);
  for (const std::string& stop : stops) key += json::Quote(stop);
  const auto [known, inserted] = free_texts_.emplace(key, GrammarIr::kEmpty);
  if (!inserted) return known->second;
  const FreeTextRules rules{.stops = stops, .before = before, .max_chars = text.max_chars};
  ExprId expr = ir_.Terminal({std::make_shared<FreeText>(rules), "free text"});
  if (text.max_tokens) {
    const GrammarIr::RuleId rule = ir_.AddRule("free_text_" + std::to_string(free_texts_.size()));
    ir_.Define(rule, expr);
    ir_.SetAttributes(rule, {.max_tokens = text.max_tokens});
    expr = ir_.Call(rule);
  }
  return known->second = expr;
}

ExprId StructuralTagReader::TagOf(const Tag& tag) {
  const ExprId begin = tag.begin_token != kNoToken ? TokensOf({tag.begin_token}, false)
                                                   : ExprOf(ir_, context_.vocabulary, tag.begin);
  return ir_.Sequence({begin, tag.rest});
}

ExprId StructuralTagReader::OneOf(const std::vector<Tag>& tags) {
  std::vector<ExprId> choices;
  std::vector<PrefixedExpr> texts;
  for (const Tag& tag : tags) {
    if (tag.begin_token != kNoToken) {
      choices.push_back(TagOf(tag));
    } else {
      texts.push_back({tag.begin, tag.rest});
    }
  }
  const std::vector<ExprId> more = PrefixChoice(
      ir_, std::move(texts),
      [this](std::u32string_view text) { return ExprOf(ir_, context_.vocabulary, text); });
  choices.insert(choices.end(), more.begin(), more.end());
  return ir_.Choice(choices);
}

ExprId StructuralTagReader::Dispatch(
    const std::vector<std::pair<std::string, JsonReader>>& triggers, const std::vector<Tag>& tags,
    const std::vector<std::string>& excludes, const Around& around, bool at_least_one, bool loop) {
  if (at_least_one && !loop) return OneOf(tags);
  Text text{.stops = excludes};
  for (const auto& [trigger, place] : triggers) text.stops.push_back(trigger);
  text.stops.insert(text.stops.end(), around.ends.begin(), around.ends.end());
  const ExprId free = FreeTextOf(text);
  FreeText plain({.stops = text.stops});
  for (const auto& [trigger, place] : triggers) {
    StopScope::Step();
    Machine::Key at = plain.Start();
    for (size_t k = 0; k + 1 < trigger.size() && at != Machine::kDead; ++k)
      at = plain.Step(at, static_cast<uint8_t>(trigger[k]));
    if (std::ranges::find(excludes, trigger) != excludes.end())
      place.Fail("this trigger is excluded as well");
    if (at == Machine::kDead)
      place.Fail("text stops inside of this trigger, at another trigger or at what is excluded");
    if (!place.ok()) return GrammarIr::kNever;
  }
  // Triggers that a stop may reach into have a free text of their own, those alike together.
  std::vector<std::u32string> bytes;
  for (const std::string& stop : text.stops)
    bytes.emplace_back(BytesBegin(stop), BytesBegin(stop) + stop.size());
  const StopReach reach(bytes);
  std::map<std::vector<uint32_t>, size_t> group_of;
  std::vector<size_t> group(triggers.size());
  std::vector<bool> own(triggers.size());
  for (size_t i = 0; i < triggers.size(); ++i) {
    const std::string& trigger = triggers[i].first;
    const StopReach::Into into =
        reach.IntoText({BytesBegin(trigger), BytesBegin(trigger) + trigger.size()});
    own[i] = !into.nodes.empty();
    group[i] = group_of.try_emplace(into.nodes, i).first->second;
  }
  std::vector<Tag> shared;
  std::vector<ExprId> rounds;
  std::vector<std::vector<Tag>> apart(triggers.size());
  std::map<std::u32string, size_t> trigger_of;
  for (size_t i = 0; i < triggers.size(); ++i) {
    if (own[i]) trigger_of.emplace(DecodeCodepoints(triggers[i].first), i);
  }
  for (const Tag& tag : tags) {
    StopScope::Step();
    // As plain text: names of tokens taken apart.
    std::string begin;
    for (const char32_t symbol : tag.begin) {
      if (symbol >= kFirstToken) {
        begin += context_.vocabulary.bytes(static_cast<TokenId>(symbol - kFirstToken));
      } else {
        AppendUtf8(symbol, begin);
      }
    }
    const auto found = std::ranges::find_if(trigger_of, [&](const auto& entry) {
      return begin.starts_with(triggers[entry.second].first);
    });
    if (found == trigger_of.end()) {
      shared.push_back(tag);
    } else {
      const size_t trigger = group[found->second];
      apart[trigger].push_back({DecodeCodepoints(begin), kNoToken, tag.rest});
      const ExprId as_token = ExprOf(ir_, context_.vocabulary, tag.begin, true);
      if (as_token != GrammarIr::kNever) rounds.push_back(ir_.Sequence({free, as_token, tag.rest}));
    }
  }
  if (!shared.empty()) rounds.push_back(ir_.Sequence({free, OneOf(shared)}));
  for (size_t i = 0; i < triggers.size(); ++i) {
    if (!apart[i].empty())
      rounds.push_back(ir_.Sequence({FreeTextOf(text, triggers[i].first), OneOf(apart[i])}));
  }
  const ExprId round = ir_.Choice(rounds);
  if (!loop) return ir_.Choice({round, free});
  const ExprId rest = ir_.Sequence({ir_.Repeat(round, 0, GrammarIr::kUnbounded), free});
  return at_least_one ? ir_.Sequence({OneOf(tags), rest}) : rest;
}

ExprId StructuralTagReader::TokenDispatch(const std::vector<TokenId>& triggers,
                                          const std::vector<Tag>& tags,
                                          std::vector<TokenId> excludes, bool at_least_one,
                                          bool loop) {
  const ExprId tag = OneOf(tags);
  if (at_least_one && !loop) return tag;
  excludes.insert(excludes.end(), triggers.begin(), triggers.end());
  const ExprId free = ir_.Repeat(TokensOf(excludes, true), 0, GrammarIr::kUnbounded);
  const ExprId round = ir_.Sequence({free, tag});
  if (!loop) return ir_.Choice({round, free});
  const ExprId rest = ir_.Sequence({ir_.Repeat(round, 0, GrammarIr::kUnbounded), free});
  return at_least_one ? ir_.Sequence({tag, rest}) : rest;
}

// Formats -----------------------------------------------------------------------------------------

ExprId StructuralTagReader::Format(const JsonReader& in, const Around& around, int depth) {
  if (depth > std::clamp(context_.options.max_nesting, 0, 1000))
    in.Fail("formats are nested too deeply", ErrorCode::kLimit);
  StopScope::Step();
  const std::string& type = in.Object()["type"].String();
  if (!in.ok()) return GrammarIr::kNever;
  if (type == "tag") return TagOf(ReadTag(in, depth));
  static const std::map<std::string_view, std::vector<std::string_view>> kFields = {
      {"const_string", {"type", "value"}},
      {"json_schema",
       {"type", "json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"}},
      {"qwen_xml_parameter",
       {"type", "json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"}},
      {"grammar", {"type", "grammar", "syntax"}},
      {"regex", {"type", "pattern"}},
      {"any_text", {"type", "excludes", "max_tokens", "max_chars"}},
      {"exclude_token", {"type", "exclude_tokens"}},
      {"any_tokens", {"type", "exclude_tokens", "max_tokens"}},
      {"token", {"type", "token"}},
      {"sequence", {"type", "elements"}},
      {"or", {"type", "elements"}},
      {"optional", {"type", "content"}},
      {"plus", {"type", "content"}},
      {"star", {"type", "content"}},
      {"repeat", {"type", "content", "min", "max"}},
      {"triggered_tags",
       {"type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes"}},
      {"token_triggered_tags",
       {"type", "trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"}},
      {"dispatch", {"type", "rules", "loop", "excludes"}},
      {"token_dispatch", {"type", "rules", "loop", "exclude_tokens"}},
      {"tags_with_separator", {"type", "tags", "separator", "at_least_one", "stop_after_first"}}};
  const auto fields = kFields.find(type);
  if (fields == kFields.end()) {
    in["type"].Fail("no format has the type " + json::Quote(type.substr(0, 60)));
    return GrammarIr::kNever;
  }
  in.OnlyMembers(fields->second);
  if (type == "const_string") return TextOf(in["value"].String());
  if (type == "json_schema" || type == "qwen_xml_parameter") return ReadJsonSchema(type, in);
  if (type == "grammar") return ReadGrammar(in);
  if (type == "regex") return ReadRegex(in);
  if (type == "any_text") return ReadAnyText(in, around);
  if (type == "exclude_token" || type == "any_tokens") return ReadAnyTokens(type, in, around);
  if (type == "token") return TokensOf({Token(in["token"])}, false);
  if (type == "sequence" || type == "or") return ReadElements(type, in, around, depth);
  if (type == "optional" || type == "plus" || type == "star" || type == "repeat")
    return ReadRepeat(type, in, around, depth);
  if (type == "triggered_tags") return ReadTriggered(in, around, depth);
  if (type == "token_triggered_tags") return ReadTokenTriggered(in, around, depth);
  if (type == "dispatch") return ReadDispatch(in, false, depth);
  if (type == "token_dispatch") return ReadDispatch(in, true, depth);
  return ReadSeparated(in, depth);
}

Result<ExprId> StructuralTagReader::JsonSchema(const json::Value& schema, const std::string& at,
                                               const JsonSchemaOptions& options) {
  const std::string text = json::Dump(schema);
  const std::string key = KeyOf(options) + text;
  if (const auto known = schemas_.find(key); known != schemas_.end()) return known->second;
  auto machine = context_.json_schema(text, options);
  if (!machine.ok()) return ErrorInside(machine.error(), at);
  const ExprId expr = ir_.Terminal({*std::move(machine), "json_schema " + text});
  schemas_.emplace(key, expr);
  return expr;
}

ExprId StructuralTagReader::ReadJsonSchema(const std::string& type, const JsonReader& in) {
  const JsonReader schema = in["json_schema"];
  if (!schema.IsObject() && !(schema.present() && schema.value()->is_bool()))
    schema.Fail("a schema is an object, true or false");
  const std::optional<uint32_t> spaces = Count(in["max_whitespace_cnt"]);
  JsonSchemaOptions options = context_.options.json_schema;
  for (const auto& [text, written] : Strings(in["excludes"])) {
    // Of these a JSON text shows another spelling.
    if (text.find_first_of("\\\"") != std::string::npos ||
        std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      written.Fail("a quote, a backslash or a control character cannot be excluded");
    }
    options.excluded_texts += (options.excluded_texts.empty() ? "" : "\n") + text;
  }
  if (in["any_order"].Bool(false)) options.order = JsonSchemaOptions::Order::kAny;
  if (spaces && options.whitespace != JsonSchemaOptions::Whitespace::kCompact) {
    options.whitespace = JsonSchemaOptions::Whitespace::kBounded;
    options.max_whitespace = static_cast<int>(std::min(*spaces, 1'000'000u));
  }
  const std::string style = in["style"].String(type == "qwen_xml_parameter" ? "qwen_xml" : "json");
  const ArgumentStyle* xml = ArgumentStyleOf(style);
  if (style != "json" && xml == nullptr)
    in["style"].Fail("no style is called " + json::Quote(style.substr(0, 60)));
  if (!in.ok()) return GrammarIr::kNever;
  const Result<ExprId> read =
      xml ? XmlStyleReader(*this, *schema.value(), schema.place(), *xml, options).Read()
          : JsonSchema(*schema.value(), schema.place(), options);
  if (read.ok()) return *read;
  in.Fail(read.error());
  return GrammarIr::kNever;
}

ExprId StructuralTagReader::ReadGrammar(const JsonReader& in) {
  const JsonReader text = in["grammar"], syntax = in["syntax"];
  const std::optional<GrammarLanguage> language = GrammarLanguageOf(syntax.String("ebnf"));
  if (!language) syntax.Fail("must be \"ebnf\", \"gbnf\" or \"lark\"");
  const std::string& written = text.String();
  if (!in.ok()) return GrammarIr::kNever;
  LanguageOptions reading;
  reading.max_bytes = context_.options.max_bytes;
  reading.max_nesting = context_.options.max_nesting;
  reading.root = context_.options.root;
  reading.json_schema = [&](std::string_view schema) -> Result<GrammarIr::Automaton> {
    auto machine = context_.json_schema(schema, context_.options.json_schema);
    if (!machine.ok()) return machine.error();
    return GrammarIr::Automaton{*std::move(machine), "%json " + std::string(schema)};
  };
  auto grammar = *language == GrammarLanguage::kEbnf   ? ReadEbnf(written, reading)
                 : *language == GrammarLanguage::kGbnf ? ReadGbnf(written, reading)
                                                       : ReadLark(written, reading);
  if (grammar.ok()) return ir_.Call(ImportIr(ir_, *grammar));
  text.Fail(ErrorInside(grammar.error(), text.place()));
  return GrammarIr::kNever;
}

ExprId StructuralTagReader::ReadRegex(const JsonReader& in) {
  const JsonReader pattern = in["pattern"];
  auto regex = ParseEcma(ir_.arena(), pattern.String(), {.search = false});
  if (regex.ok()) return ir_.Regex(*regex);
  pattern.Fail(ErrorInside(regex.error(), pattern.place()));
  return GrammarIr::kNever;
}

ExprId StructuralTagReader::ReadAnyText(const JsonReader& in, const Around& around) {
  Text text{
      .stops = {}, .max_chars = Count(in["max_chars"]), .max_tokens = Count(in["max_tokens"])};
  if (text.max_chars && *text.max_chars > FreeTextRules::kMostChars) {
    in["max_chars"].Fail("more than 268435456 characters are not counted", ErrorCode::kLimit);
  }
  for (const auto& [exclude, written] : Strings(in["excludes"])) text.stops.push_back(exclude);
  text.stops.insert(text.stops.end(), around.ends.begin(), around.ends.end());
  return in.ok() ? FreeTextOf(text) : GrammarIr::kNever;
}

ExprId StructuralTagReader::ReadAnyTokens(const std::string& type, const JsonReader& in,
                                          const Around& around) {
  std::vector<TokenId> excludes = Tokens(in["exclude_tokens"]);
  const std::optional<uint32_t> most = Count(in["max_tokens"]);
  excludes.insert(excludes.end(), around.end_tokens.begin(), around.end_tokens.end());
  const ExprId token = TokensOf(excludes, true);
  return type == "exclude_token" ? token
                                 : ir_.Repeat(token, 0, most.value_or(GrammarIr::kUnbounded));
}

ExprId StructuralTagReader::ReadElements(const std::string& type, const JsonReader& in,
                                         const Around& around, int depth) {
  std::vector<ExprId> parts;
  for (const JsonReader element : FullArray(in["elements"]).items())
    parts.push_back(Format(element, around, depth + 1));
  return type == "or" ? ir_.Choice(parts) : ir_.Sequence(parts);
}

ExprId StructuralTagReader::ReadRepeat(const std::string& type, const JsonReader& in,
                                       const Around& around, int depth) {
  int64_t min = type == "plus" ? 1 : 0;
  uint32_t max = type == "optional" ? 1 : GrammarIr::kUnbounded;
  if (type == "repeat") {
    min = in["min"].Whole(0, INT32_MAX);
    const JsonReader most = in["max"];  // -1: any
    const int64_t given = most.Whole(-1, INT32_MAX);
    if (given >= 0) max = static_cast<uint32_t>(given);
    if (max < min) most.Fail("must not be less than \"min\"");
  }
  const ExprId part = Format(in["content"], around, depth + 1);
  return in.ok() ? ir_.Repeat(part, static_cast<uint32_t>(min), max) : GrammarIr::kNever;
}

TokenId StructuralTagReader::ReadToken(const JsonReader& in) {
  if (in.Object()["type"].String() != "token") in["type"].Fail("must be \"token\"");
  in.OnlyMembers({"type", "token"});
  return Token(in["token"]);
}

StructuralTagReader::Tag StructuralTagReader::ReadTag(const JsonReader& in, int depth) {
  in.OnlyMembers({"type", "begin", "content", "end"});
  if (in["type"].String("tag") != "tag") in["type"].Fail("must be \"tag\"");
  Tag tag;
  const JsonReader begin = in["begin"], end = in["end"];
  if (begin.IsString()) {
    tag.begin = SymbolsOf(begin.String(), special_);
  } else if (begin.IsObject()) {
    tag.begin_token = ReadToken(begin);
  } else {
    begin.Fail("must be a string or a token");
  }
  Around inside;
  std::vector<ExprId> ends;
  const auto add_end = [&](const std::string& text) {
    if (!text.empty()) inside.ends.push_back(text);
    ends.push_back(TextOf(text));
  };
  if (end.IsObject()) {
    inside.end_tokens.push_back(ReadToken(end));
    ends.push_back(TokensOf(inside.end_tokens, false));
  } else if (end.IsString()) {
    add_end(end.String());
  } else if (end.IsArray() && end.size() > 0) {
    for (const JsonReader one : end.items()) add_end(one.String());
  } else {
    end.Fail("must be a string, an array of strings that is not empty, or a token");
  }
  const ExprId part = Format(in["content"], inside, depth + 1);
  if (in.ok()) tag.rest = ir_.Sequence({part, ir_.Choice(ends)});
  return tag;
}

StructuralTagReader::TagList StructuralTagReader::ReadTagList(const JsonReader& in, int depth) {
  TagList list;
  list.at_least_one = in["at_least_one"].Bool(false);
  list.loop = !in["stop_after_first"].Bool(false);
  for (const JsonReader tag : FullArray(in["tags"]).items()) {
    list.tags.push_back(ReadTag(tag, depth));
    list.begins.push_back(tag["begin"]);
  }
  return list;
}

// Whether exactly one of the triggers begins this text.
static void CheckTrigger(size_t fitting, const JsonReader& begin) {
  if (fitting == 0) begin.Fail("begins with none of the triggers");
  if (fitting > 1) begin.Fail("begins with several of the triggers");
}

ExprId StructuralTagReader::ReadTriggered(const JsonReader& in, const Around& around, int depth) {
  const auto triggers = Strings(FullArray(in["triggers"]));
  std::vector<std::string> sorted, excludes;
  for (const auto& [exclude, written] : Strings(in["excludes"])) excludes.push_back(exclude);
  const TagList list = ReadTagList(in, depth);
  for (const auto& [trigger, written] : triggers) sorted.push_back(trigger);
  SortUnique(sorted);
  for (const JsonReader& begin : list.begins) {
    if (!in.ok()) break;
    if (!begin.IsString()) begin.Fail("tags that a text triggers have a string begin, no token");
    const std::string& text = begin.String();
    size_t fitting = 0;
    for (size_t length = 1; length <= text.size() && fitting < 2; ++length)
      fitting += std::binary_search(sorted.begin(), sorted.end(), text.substr(0, length));
    CheckTrigger(fitting, begin);
  }
  if (!in.ok()) return GrammarIr::kNever;
  return Dispatch(triggers, list.tags, excludes, around, list.at_least_one, list.loop);
}

// "dispatch" by texts, or "token_dispatch".
ExprId StructuralTagReader::ReadDispatch(const JsonReader& in, bool by_tokens, int depth) {
  const bool loop = in["loop"].Bool(true);
  std::vector<std::string> excluded_texts;
  std::vector<TokenId> excluded_tokens = Tokens(in["exclude_tokens"]);
  for (const auto& [exclude, written] : Strings(in["excludes"])) excluded_texts.push_back(exclude);
  std::vector<std::pair<std::string, JsonReader>> texts;
  std::vector<TokenId> tokens;
  std::vector<Tag> tags;
  for (const JsonReader rule : FullArray(in["rules"]).items()) {
    if (!rule.IsArray() || rule.size() != 2)
      rule.Fail(by_tokens ? "a rule is [token, format]" : "a rule is [pattern, format]");
    const JsonReader trigger = rule.Item(0);
    if (by_tokens) {
      tokens.push_back(Token(trigger));
      tags.push_back({{}, tokens.back()});
    } else {
      if (trigger.String().empty()) trigger.Fail("must be a string that is not empty");
      texts.emplace_back(trigger.String(), trigger);
      tags.push_back({SymbolsOf(trigger.String(), special_)});
    }
    tags.back().rest = Format(rule.Item(1), {}, depth + 1);
  }
  if (!in.ok()) return GrammarIr::kNever;
  if (by_tokens) return TokenDispatch(tokens, tags, excluded_tokens, false, loop);
  return Dispatch(texts, tags, excluded_texts, {}, false, loop);
}

ExprId StructuralTagReader::ReadTokenTriggered(const JsonReader& in, const Around& around,
                                               int depth) {
  const std::vector<TokenId> triggers = Tokens(FullArray(in["trigger_tokens"]));
  std::vector<TokenId> excludes = Tokens(in["exclude_tokens"]);
  const TagList list = ReadTagList(in, depth);
  for (size_t i = 0; i < list.tags.size() && in.ok(); ++i) {
    const TokenId begin = list.tags[i].begin_token;
    if (begin == kNoToken)
      list.begins[i].Fail("tags that a token triggers have a token begin, no string");
    if (std::ranges::find(triggers, begin) == triggers.end())
      list.begins[i].Fail("is none of the trigger tokens");
  }
  if (!in.ok()) return GrammarIr::kNever;
  excludes.insert(excludes.end(), around.end_tokens.begin(), around.end_tokens.end());
  return TokenDispatch(triggers, list.tags, excludes, list.at_least_one, list.loop);
}

ExprId StructuralTagReader::ReadSeparated(const JsonReader& in, int depth) {
  const std::string& separator = in["separator"].String();
  const TagList list = ReadTagList(in, depth);
  if (!in.ok()) return GrammarIr::kNever;
  const ExprId tag = OneOf(list.tags);
  ExprId all = tag;
  if (list.loop) {
    const ExprId more = ir_.Sequence({TextOf(separator), tag});
    all = ir_.Sequence({tag, ir_.Repeat(more, 0, GrammarIr::kUnbounded)});
  }
  return list.at_least_one ? all : ir_.Optional(all);
}

// The older form: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}.
ExprId StructuralTagReader::ReadLegacy(const JsonReader& in) {
  in.OnlyMembers({"type", "structures", "triggers"});
  const auto triggers = Strings(FullArray(in["triggers"]));
  std::vector<Tag> tags;
  for (const JsonReader item : FullArray(in["structures"]).items()) {
    item.OnlyMembers({"begin", "schema", "end"});
    const JsonReader begin = item["begin"], schema = item["schema"];
    const std::string &first = begin.String(), &last = item["end"].String();
    size_t fitting = 0;
    for (const auto& [trigger, written] : triggers) fitting += first.starts_with(trigger);
    CheckTrigger(fitting, begin);
    if (!schema.present()) schema.Fail("is missing");
    if (!in.ok()) break;
    Result<json::Value> parsed =
        schema.IsString() ? json::Parse(schema.String()) : Result<json::Value>(*schema.value());
    if (!parsed.ok()) {
      schema.Fail(ErrorInside(parsed.error(), schema.place()));
      break;
    }
    auto content = JsonSchema(*parsed, schema.place(), context_.options.json_schema);
    if (!content.ok()) {
      schema.Fail(content.error());
      break;
    }
    tags.push_back({SymbolsOf(first, special_), kNoToken, ir_.Sequence({*content, TextOf(last)})});
  }
  if (!in.ok()) return GrammarIr::kNever;
  return Dispatch(triggers, tags, {}, {}, false, true);
}

Result<GrammarIr> ReadStructuralTag(std::string_view text, const StructuralTagContext& context) {
  return StructuralTagReader(context).Read(text);
}

// The fields of a structural tag's objects that json_reader.h does not know: tokens, counts, and
// strings that free text stops at.

std::optional<uint32_t> StructuralTagReader::Count(const JsonReader& in) {
  int64_t count = 0;
  if (!in.Read(count, 0, INT32_MAX)) return std::nullopt;
  return static_cast<uint32_t>(count);
}

JsonReader StructuralTagReader::FullArray(const JsonReader& in) {
  JsonReader array = in.Array();
  if (array.size() == 0) in.Fail("must be an array that is not empty");
  return array;
}

std::vector<std::pair<std::string, JsonReader>> StructuralTagReader::Strings(const JsonReader& in) {
  std::vector<std::pair<std::string, JsonReader>> strings;
  size_t bytes = 0;
  for (const JsonReader item : in.OptionalArray().items()) {
    if (!item.IsString() || item.String().empty()) item.Fail("must be a string that is not empty");
    bytes += item.String().size();
    if (bytes > kMostStopBytes) item.Fail("more than 1 MiB of strings", ErrorCode::kLimit);
    if (in.ok()) strings.emplace_back(item.String(), item);
  }
  return strings;
}

TokenId StructuralTagReader::Token(const JsonReader& in) {
  const Vocabulary& vocabulary = context_.vocabulary;
  if (in.Is(json::Type::kNumber)) {
    const int64_t id = in.Whole();
    if (id >= 0 && id < vocabulary.size()) return static_cast<TokenId>(id);
    in.Fail("token " + in.value()->text + " is not among the " + std::to_string(vocabulary.size()) +
            " of the vocabulary");
    return 0;
  }
  if (!in.IsString()) {
    in.Fail("must be a token's id or its text");
    return 0;
  }
  if (!has_names_) {
    has_names_ = true;
    for (const bool special : {false, true}) {
      for (TokenId id = vocabulary.size() - 1; id >= 0; --id) {
        if (vocabulary.is_special(id) == special)
          token_names_[std::string(vocabulary.bytes(id))] = id;
      }
    }
  }
  const auto known = token_names_.find(in.String());
  if (known != token_names_.end()) return known->second;
  in.Fail("the vocabulary has no token " + json::Shown(*in.value()));
  return 0;
}

std::vector<TokenId> StructuralTagReader::Tokens(const JsonReader& in) {
  std::vector<TokenId> tokens;
  for (const JsonReader item : in.OptionalArray().items()) tokens.push_back(Token(item));
  return tokens;
}

}  // namespace pawl
