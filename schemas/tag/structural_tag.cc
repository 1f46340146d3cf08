// Free text with tags is the loop (free tag)* free, where "free" is every text in which no trigger
// and no excluded string occurs. Which trigger ended a free text is then decided by what follows,
// so one automaton (free_text.h) serves all triggers, and the beginnings of all tags are one prefix
// tree. The only triggers that need an automaton of their own are those into which another one may
// reach: after "a", the trigger "aba" may not begin where "aab" is one too.
//
// Special tokens are no text. Where a string of the structural tag names one ("<|channel|>"), the
// token fits there as well as its name; inside of beginnings such a token is one symbol, numbered
// behind the last code point.
#include "schemas/tag/structural_tag.h"

#include <algorithm>

#include "grammar/cfg/free_text.h"
#include "grammar/cfg/import_ir.h"
#include "grammar/cfg/stop_reach.h"
#include "grammar/languages/ebnf.h"
#include "grammar/languages/gbnf.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/prefix_choice.h"
#include "grammar/regex/ecma_parser.h"
#include "schemas/read/option_fields.h"
#include "schemas/tag/structural_tag_reader.h"
#include "schemas/tag/structural_tag_xml.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using ExprId = GrammarIr::ExprId;
using structural_tag::Shown;
using structural_tag::Wrong;

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
  if (document->type != json::Type::kObject)
    return Wrong(
        "a structural tag is an object, not " + std::string(json::TypeName(document->type)), "#");
  auto root = [&]() -> Result<ExprId> {
    if (const json::Value* type = Find(*document, "type");
        type != nullptr && (type->type != json::Type::kString || type->text != "structural_tag")) {
      return Wrong("must be \"structural_tag\"", "#/type");
    }
    if (Find(*document, "structures") != nullptr) return ReadLegacy(*document);
    if (Status status = CheckFields(*document, "#", {"type", "format"}); !status.ok())
      return status.error();
    const json::Value* format = Find(*document, "format");
    if (format == nullptr) return Wrong("\"format\" is missing", "#");
    return Format(*format, "#/format", {}, 0);
  }();
  if (!root.ok()) return root.error();
  const GrammarIr::RuleId rule = ir_.AddRule("structural_tag");
  ir_.Define(rule, *root);
  ir_.SetRoot(rule);
  return std::move(ir_);
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

Result<ExprId> StructuralTagReader::Dispatch(
    const std::vector<std::pair<std::string, std::string>>& triggers, const std::vector<Tag>& tags,
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
      return Wrong("this trigger is excluded as well", place);
    if (at == Machine::kDead) {
      return Wrong("text stops inside of this trigger, at another trigger or at what is excluded",
                   place);
    }
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

Result<ExprId> StructuralTagReader::Format(const Value& value, Pointer at, const Around& around,
                                           int depth) {
  if (depth > std::clamp(context_.options.max_nesting, 0, 1000))
    return Error{ErrorCode::kLimit, "formats are nested too deeply", at};
  StopScope::Step();
  if (value.type != json::Type::kObject) return Wrong("a format is an object", at);
  auto type_field = StringField(value, at, "type");
  if (!type_field.ok()) return type_field.error();
  const std::string& type = *type_field;
  if (type == "tag") {
    auto tag = ReadTag(value, at, depth);
    if (!tag.ok()) return tag.error();
    return TagOf(*tag);
  }
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
  if (fields == kFields.end())
    return Wrong("no format has the type " + Shown(type), json::PointerJoin(at, "type"));
  if (Status s = CheckFields(value, at, fields->second); !s.ok()) return s.error();
  if (type == "const_string") {
    auto text = StringField(value, at, "value");
    if (!text.ok()) return text.error();
    return TextOf(*text);
  }
  if (type == "json_schema" || type == "qwen_xml_parameter") return ReadJsonSchema(type, value, at);
  if (type == "grammar") return ReadGrammar(value, at);
  if (type == "regex") return ReadRegex(value, at);
  if (type == "any_text") return ReadAnyText(value, at, around);
  if (type == "exclude_token" || type == "any_tokens")
    return ReadAnyTokens(type, value, at, around);
  if (type == "token") {
    auto token = TokenField(value, at);
    if (!token.ok()) return token.error();
    return TokensOf({*token}, false);
  }
  if (type == "sequence" || type == "or") return ReadElements(type, value, at, around, depth);
  if (type == "optional" || type == "plus" || type == "star" || type == "repeat")
    return ReadRepeat(type, value, at, around, depth);
  if (type == "triggered_tags") return ReadTriggered(value, at, around, depth);
  if (type == "token_triggered_tags") return ReadTokenTriggered(value, at, around, depth);
  if (type == "dispatch") return ReadDispatch(value, at, false, depth);
  if (type == "token_dispatch") return ReadDispatch(value, at, true, depth);
  return ReadSeparated(value, at, depth);
}

Result<ExprId> StructuralTagReader::JsonSchema(const Value& schema, Pointer at,
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

Result<ExprId> StructuralTagReader::ReadJsonSchema(const std::string& type, const Value& value,
                                                   Pointer at) {
  const Value* schema = Find(value, "json_schema");
  if (schema == nullptr) return Wrong("\"json_schema\" is missing", at);
  const std::string place = json::PointerJoin(at, "json_schema");
  if (schema->type != json::Type::kObject && !schema->is_bool())
    return Wrong("a schema is an object, true or false", place);
  auto any_order = BoolField(value, at, "any_order", false);
  if (!any_order.ok()) return any_order.error();
  auto spaces = CountField(value, at, "max_whitespace_cnt");
  if (!spaces.ok()) return spaces.error();
  auto excluded = Strings(value, at, "excludes", false);
  if (!excluded.ok()) return excluded.error();
  JsonSchemaOptions options = context_.options.json_schema;
  for (const auto& [text, text_place] : *excluded) {
    // Of these a JSON text shows another spelling.
    if (text.find_first_of("\\\"") != std::string::npos ||
        std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      return Wrong("a quote, a backslash or a control character cannot be excluded", text_place);
    }
    options.excluded_texts += (options.excluded_texts.empty() ? "" : "\n") + text;
  }
  if (*any_order) options.order = JsonSchemaOptions::Order::kAny;
  if (*spaces && options.whitespace != JsonSchemaOptions::Whitespace::kCompact) {
    options.whitespace = JsonSchemaOptions::Whitespace::kBounded;
    options.max_whitespace = static_cast<int>(std::min(**spaces, 1'000'000u));
  }
  std::string style = type == "qwen_xml_parameter" ? "qwen_xml" : "json";
  if (Find(value, "style") != nullptr) {
    auto given = StringField(value, at, "style");
    if (!given.ok()) return given.error();
    style = *given;
  }
  if (style == "json") return JsonSchema(*schema, place, options);
  const std::optional<XmlStyle> xml = XmlStyleOf(style);
  if (!xml) return Wrong("no style is called " + Shown(style), json::PointerJoin(at, "style"));
  return XmlStyleReader(*this, *schema, place, *xml, options).Read();
}

Result<ExprId> StructuralTagReader::ReadGrammar(const Value& value, Pointer at) {
  auto text = StringField(value, at, "grammar");
  if (!text.ok()) return text.error();
  GrammarLanguage language = GrammarLanguage::kEbnf;
  if (Find(value, "syntax") != nullptr) {
    auto name = StringField(value, at, "syntax");
    if (!name.ok()) return name.error();
    const auto known = GrammarLanguageOf(*name);
    if (!known)
      return Wrong("must be \"ebnf\", \"gbnf\" or \"lark\"", json::PointerJoin(at, "syntax"));
    language = *known;
  }
  LanguageOptions reading;
  reading.max_bytes = context_.options.max_bytes;
  reading.max_nesting = context_.options.max_nesting;
  reading.root = context_.options.root;
  reading.json_schema = [&](std::string_view schema) -> Result<GrammarIr::Automaton> {
    auto machine = context_.json_schema(schema, context_.options.json_schema);
    if (!machine.ok()) return machine.error();
    return GrammarIr::Automaton{*std::move(machine), "%json " + std::string(schema)};
  };
  auto grammar = language == GrammarLanguage::kEbnf   ? ReadEbnf(*text, reading)
                 : language == GrammarLanguage::kGbnf ? ReadGbnf(*text, reading)
                                                      : ReadLark(*text, reading);
  const std::string place = json::PointerJoin(at, "grammar");
  if (!grammar.ok()) return ErrorInside(grammar.error(), place);
  return ir_.Call(ImportIr(ir_, *grammar));
}

Result<ExprId> StructuralTagReader::ReadRegex(const Value& value, Pointer at) {
  auto pattern = StringField(value, at, "pattern");
  if (!pattern.ok()) return pattern.error();
  auto regex = ParseEcma(ir_.arena(), *pattern, {.search = false});
  const std::string place = json::PointerJoin(at, "pattern");
  if (!regex.ok()) return ErrorInside(regex.error(), place);
  return ir_.Regex(*regex);
}

Result<ExprId> StructuralTagReader::ReadAnyText(const Value& value, Pointer at,
                                                const Around& around) {
  auto excludes = Strings(value, at, "excludes", false);
  if (!excludes.ok()) return excludes.error();
  auto max_tokens = CountField(value, at, "max_tokens");
  if (!max_tokens.ok()) return max_tokens.error();
  auto max_chars = CountField(value, at, "max_chars");
  if (!max_chars.ok()) return max_chars.error();
  if (*max_chars && **max_chars > FreeTextRules::kMostChars) {
    return Error{ErrorCode::kLimit, "more than 268435456 characters are not counted",
                 json::PointerJoin(at, "max_chars")};
  }
  Text text{.stops = {}, .max_chars = *max_chars, .max_tokens = *max_tokens};
  for (const auto& [exclude, place] : *excludes) text.stops.push_back(exclude);
  text.stops.insert(text.stops.end(), around.ends.begin(), around.ends.end());
  return FreeTextOf(text);
}

Result<ExprId> StructuralTagReader::ReadAnyTokens(const std::string& type, const Value& value,
                                                  Pointer at, const Around& around) {
  auto excludes = Tokens(value, at, "exclude_tokens", false);
  if (!excludes.ok()) return excludes.error();
  auto most = CountField(value, at, "max_tokens");
  if (!most.ok()) return most.error();
  excludes->insert(excludes->end(), around.end_tokens.begin(), around.end_tokens.end());
  const ExprId token = TokensOf(*excludes, true);
  return type == "exclude_token" ? token
                                 : ir_.Repeat(token, 0, most->value_or(GrammarIr::kUnbounded));
}

Result<ExprId> StructuralTagReader::ReadElements(const std::string& type, const Value& value,
                                                 Pointer at, const Around& around, int depth) {
  auto elements = ArrayField(value, at, "elements");
  if (!elements.ok()) return elements.error();
  std::vector<ExprId> parts;
  for (size_t i = 0; i < (*elements)->items.size(); ++i) {
    auto part = Format((*elements)->items[i],
                       json::PointerJoin(json::PointerJoin(at, "elements"), std::to_string(i)),
                       around, depth + 1);
    if (!part.ok()) return part.error();
    parts.push_back(*part);
  }
  return type == "or" ? ir_.Choice(parts) : ir_.Sequence(parts);
}

Result<ExprId> StructuralTagReader::ReadRepeat(const std::string& type, const Value& value,
                                               Pointer at, const Around& around, int depth) {
  uint32_t min = type == "plus" ? 1 : 0;
  uint32_t max = type == "optional" ? 1 : GrammarIr::kUnbounded;
  if (type == "repeat") {
    auto least = CountField(value, at, "min");
    if (!least.ok()) return least.error();
    if (!*least) return Wrong("\"min\" is missing", at);
    min = **least;
    const Value* most = Find(value, "max");
    if (most == nullptr) return Wrong("\"max\" is missing", at);
    if (most->type != json::Type::kNumber || most->text != "-1") {
      auto number = CountField(value, at, "max");
      if (!number.ok()) return Wrong("must be a whole number, or -1 for any", number.error().place);
      max = **number;
      if (max < min) return Wrong("must not be less than \"min\"", json::PointerJoin(at, "max"));
    }
  }
  auto part = ContentField(value, at, around, depth);
  if (!part.ok()) return part.error();
  return ir_.Repeat(*part, min, max);
}

Result<StructuralTagReader::Tag> StructuralTagReader::ReadTag(const Value& value, Pointer at,
                                                              int depth) {
  if (value.type != json::Type::kObject) return Wrong("a tag is an object", at);
  if (const Value* type = Find(value, "type");
      type != nullptr && (type->type != json::Type::kString || type->text != "tag")) {
    return Wrong("must be \"tag\"", json::PointerJoin(at, "type"));
  }
  if (Status s = CheckFields(value, at, {"type", "begin", "content", "end"}); !s.ok())
    return s.error();
  const auto token_of = [&](const Value& field, const std::string& place) -> Result<TokenId> {
    auto type = StringField(field, place, "type");
    if (!type.ok()) return type.error();
    if (*type != "token") return Wrong("must be \"token\"", json::PointerJoin(place, "type"));
    if (Status s = CheckFields(field, place, {"type", "token"}); !s.ok()) return s.error();
    return TokenField(field, place);
  };
  Tag tag;
  const Value* begin = Find(value, "begin");
  if (begin == nullptr) return Wrong("\"begin\" is missing", at);
  const std::string begin_place = json::PointerJoin(at, "begin");
  if (begin->type == json::Type::kString) {
    tag.begin = SymbolsOf(begin->text, special_);
  } else if (begin->type == json::Type::kObject) {
    auto token = token_of(*begin, begin_place);
    if (!token.ok()) return token.error();
    tag.begin_token = *token;
  } else {
    return Wrong("must be a string or a token", begin_place);
  }
  const Value* end = Find(value, "end");
  if (end == nullptr) return Wrong("\"end\" is missing", at);
  const std::string end_place = json::PointerJoin(at, "end");
  Around inside;
  std::vector<ExprId> ends;
  const auto add_end = [&](const std::string& text) {
    if (!text.empty()) inside.ends.push_back(text);
    ends.push_back(TextOf(text));
  };
  if (end->type == json::Type::kObject) {
    auto token = token_of(*end, end_place);
    if (!token.ok()) return token.error();
    inside.end_tokens.push_back(*token);
    ends.push_back(TokensOf({*token}, false));
  } else if (end->type == json::Type::kString) {
    add_end(end->text);
  } else if (end->type == json::Type::kArray && !end->items.empty()) {
    for (size_t i = 0; i < end->items.size(); ++i) {
      if (end->items[i].type != json::Type::kString)
        return Wrong("must be a string", json::PointerJoin(end_place, std::to_string(i)));
      add_end(end->items[i].text);
    }
  } else {
    return Wrong("must be a string, an array of strings that is not empty, or a token", end_place);
  }
  auto part = ContentField(value, at, inside, depth);
  if (!part.ok()) return part.error();
  tag.rest = ir_.Sequence({*part, ir_.Choice(ends)});
  return tag;
}

Result<StructuralTagReader::TagList> StructuralTagReader::ReadTagList(const Value& value,
                                                                      Pointer at, int depth) {
  TagList list;
  auto at_least_one = BoolField(value, at, "at_least_one", false);
  if (!at_least_one.ok()) return at_least_one.error();
  list.at_least_one = *at_least_one;
  auto stop_after_first = BoolField(value, at, "stop_after_first", false);
  if (!stop_after_first.ok()) return stop_after_first.error();
  list.loop = !*stop_after_first;
  auto array = ArrayField(value, at, "tags");
  if (!array.ok()) return array.error();
  const std::string tags = json::PointerJoin(at, "tags");
  for (size_t i = 0; i < (*array)->items.size(); ++i) {
    const std::string place = json::PointerJoin(tags, std::to_string(i));
    auto tag = ReadTag((*array)->items[i], place, depth);
    if (!tag.ok()) return tag.error();
    list.tags.push_back(*std::move(tag));
    list.begins.push_back({Find((*array)->items[i], "begin"), json::PointerJoin(place, "begin")});
  }
  return list;
}

Result<ExprId> StructuralTagReader::ReadTriggered(const Value& value, Pointer at,
                                                  const Around& around, int depth) {
  auto triggers = Strings(value, at, "triggers", true);
  if (!triggers.ok()) return triggers.error();
  auto excluded = Strings(value, at, "excludes", false);
  if (!excluded.ok()) return excluded.error();
  auto list = ReadTagList(value, at, depth);
  if (!list.ok()) return list.error();
  std::vector<std::string> sorted;
  for (const auto& [trigger, place] : *triggers) sorted.push_back(trigger);
  SortUnique(sorted);
  for (const auto& [begin, place] : list->begins) {
    if (begin->type != json::Type::kString)
      return Wrong("tags that a text triggers have a string begin, no token", place);
    size_t fitting = 0;
    for (size_t length = 1; length <= begin->text.size() && fitting < 2; ++length)
      fitting += std::binary_search(sorted.begin(), sorted.end(), begin->text.substr(0, length));
    if (fitting == 0) return Wrong("begins with none of the triggers", place);
    if (fitting > 1) return Wrong("begins with several of the triggers", place);
  }
  std::vector<std::string> excludes;
  for (const auto& [exclude, place] : *excluded) excludes.push_back(exclude);
  return Dispatch(*triggers, list->tags, excludes, around, list->at_least_one, list->loop);
}

// "dispatch" by texts, or "token_dispatch".
Result<ExprId> StructuralTagReader::ReadDispatch(const Value& value, Pointer at, bool by_tokens,
                                                 int depth) {
  const char* const excludes = by_tokens ? "exclude_tokens" : "excludes";
  auto rules = ArrayField(value, at, "rules");
  if (!rules.ok()) return rules.error();
  auto loop = BoolField(value, at, "loop", true);
  if (!loop.ok()) return loop.error();
  std::vector<std::string> excluded_texts;
  std::vector<TokenId> excluded_tokens;
  if (by_tokens) {
    auto excluded = Tokens(value, at, excludes, false);
    if (!excluded.ok()) return excluded.error();
    excluded_tokens = *std::move(excluded);
  } else {
    auto excluded = Strings(value, at, excludes, false);
    if (!excluded.ok()) return excluded.error();
    for (const auto& [exclude, place] : *excluded) excluded_texts.push_back(exclude);
  }
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<TokenId> tokens;
  std::vector<Tag> tags;
  for (size_t i = 0; i < (*rules)->items.size(); ++i) {
    const Value& rule = (*rules)->items[i];
    const std::string place = json::PointerJoin(json::PointerJoin(at, "rules"), std::to_string(i));
    if (rule.type != json::Type::kArray || rule.items.size() != 2)
      return Wrong(by_tokens ? "a rule is [token, format]" : "a rule is [pattern, format]", place);
    const Value& trigger = rule.items[0];
    if (by_tokens) {
      auto token = Token(trigger, place + "/0");
      if (!token.ok()) return token.error();
      tokens.push_back(*token);
      tags.push_back({{}, *token});
    } else {
      if (trigger.type != json::Type::kString || trigger.text.empty())
        return Wrong("must be a string that is not empty", place + "/0");
      texts.emplace_back(trigger.text, place + "/0");
      tags.push_back({SymbolsOf(trigger.text, special_)});
    }
    auto content = Format(rule.items[1], place + "/1", {}, depth + 1);
    if (!content.ok()) return content.error();
    tags.back().rest = *content;
  }
  if (by_tokens) return TokenDispatch(tokens, tags, excluded_tokens, false, *loop);
  return Dispatch(texts, tags, excluded_texts, {}, false, *loop);
}

Result<ExprId> StructuralTagReader::ReadTokenTriggered(const Value& value, Pointer at,
                                                       const Around& around, int depth) {
  auto triggers = Tokens(value, at, "trigger_tokens", true);
  if (!triggers.ok()) return triggers.error();
  auto excludes = Tokens(value, at, "exclude_tokens", false);
  if (!excludes.ok()) return excludes.error();
  auto list = ReadTagList(value, at, depth);
  if (!list.ok()) return list.error();
  for (size_t i = 0; i < list->tags.size(); ++i) {
    const TokenId begin = list->tags[i].begin_token;
    const std::string& place = list->begins[i].second;
    if (begin == kNoToken)
      return Wrong("tags that a token triggers have a token begin, no string", place);
    if (std::ranges::find(*triggers, begin) == triggers->end())
      return Wrong("is none of the trigger tokens", place);
  }
  excludes->insert(excludes->end(), around.end_tokens.begin(), around.end_tokens.end());
  return TokenDispatch(*triggers, list->tags, *excludes, list->at_least_one, list->loop);
}

Result<ExprId> StructuralTagReader::ReadSeparated(const Value& value, Pointer at, int depth) {
  auto separator = StringField(value, at, "separator");
  if (!separator.ok()) return separator.error();
  auto list = ReadTagList(value, at, depth);
  if (!list.ok()) return list.error();
  const ExprId tag = OneOf(list->tags);
  ExprId all = tag;
  if (list->loop) {
    const ExprId more = ir_.Sequence({TextOf(*separator), tag});
    all = ir_.Sequence({tag, ir_.Repeat(more, 0, GrammarIr::kUnbounded)});
  }
  return list->at_least_one ? all : ir_.Optional(all);
}

// The older form: {"structures": [{"begin", "schema", "end"}], "triggers": [...]}.
Result<ExprId> StructuralTagReader::ReadLegacy(const Value& document) {
  if (Status s = CheckFields(document, "#", {"type", "structures", "triggers"}); !s.ok())
    return s.error();
  auto triggers = Strings(document, "#", "triggers", true);
  if (!triggers.ok()) return triggers.error();
  auto structures = ArrayField(document, "#", "structures");
  if (!structures.ok()) return structures.error();
  std::vector<Tag> tags;
  for (size_t i = 0; i < (*structures)->items.size(); ++i) {
    const Value& item = (*structures)->items[i];
    const std::string place = "#/structures/" + std::to_string(i);
    if (item.type != json::Type::kObject) return Wrong("must be an object", place);
    if (Status s = CheckFields(item, place, {"begin", "schema", "end"}); !s.ok()) return s.error();
    auto begin = StringField(item, place, "begin");
    if (!begin.ok()) return begin.error();
    auto end = StringField(item, place, "end");
    if (!end.ok()) return end.error();
    size_t fitting = 0;
    for (const auto& [trigger, at] : *triggers) fitting += begin->starts_with(trigger);
    if (fitting == 0) return Wrong("begins with none of the triggers", place + "/begin");
    if (fitting > 1) return Wrong("begins with several of the triggers", place + "/begin");
    const Value* schema = Find(item, "schema");
    if (schema == nullptr) return Wrong("\"schema\" is missing", place);
    Value parsed;
    if (schema->type == json::Type::kString) {
      auto value = json::Parse(schema->text);
      if (!value.ok()) return ErrorInside(value.error(), place + "/schema");
      parsed = *std::move(value);
      schema = &parsed;
    }
    auto content = JsonSchema(*schema, place + "/schema", context_.options.json_schema);
    if (!content.ok()) return content.error();
    tags.push_back({SymbolsOf(*begin, special_), kNoToken, ir_.Sequence({*content, TextOf(*end)})});
  }
  return Dispatch(*triggers, tags, {}, {}, false, true);
}

Result<GrammarIr> ReadStructuralTag(std::string_view text, const StructuralTagContext& context) {
  return StructuralTagReader(context).Read(text);
}

}  // namespace pawl
