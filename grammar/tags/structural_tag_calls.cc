// The styles of arguments that write commas: Gemma 4's objects without quotes at their keys, and
// the keyword arguments of a call in Python. And the strings of all styles, which are written as
// they are, up to a mark, or as a string of Python.
//
// A rule stands for the properties from one on, once with a comma before the next one and once
// without, so the grammar is linear in their number.
#include <algorithm>

#include "grammar/regex/ecma_parser.h"
#include "grammar/tags/structural_tag_reader.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using ExprId = GrammarIr::ExprId;
using Marks = ArgumentStyle::Marks;

}  // namespace

std::string XmlStyleReader::WrongKey(std::string_view key) const {
  const auto has = [&](std::string_view characters) {
    return key.empty() || key.find_first_of(characters) != std::string_view::npos;
  };
  if (style_.marks == Marks::kMinimaxM3 && (has(">") || key[0] == '/'))
    return "this key cannot be the name of an element";
  if (style_.marks == Marks::kGemma && has(":,{}[]<>\"'\\ \t\r\n"))
    return "this key cannot be written without quotes";
  if (style_.marks == Marks::kPython && has("=,()[]{}\"'\\ \t\r\n"))
    return "this key cannot be the name of an argument";
  return "";
}

ExprId XmlStyleReader::Separator() {
  GrammarIr& ir = reader_.ir_;
  if (style_.marks == Marks::kGemma) return ir.Literal(",");
  return ir.Sequence({ir.Literal(","), ir.Optional(ir.Literal(" "))});
}

ExprId XmlStyleReader::Joined(const std::vector<Property>& properties, ExprId other) {
  GrammarIr& ir = reader_.ir_;
  const ExprId separator = Separator();
  ExprId more = GrammarIr::kEmpty, first = GrammarIr::kEmpty;  // behind the last property
  if (other != GrammarIr::kNever) {
    more = ir.Repeat(ir.Sequence({separator, other}), 0, GrammarIr::kUnbounded);
    first = ir.Optional(ir.Sequence({other, more}));
  }
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const ExprId behind = ir.Sequence({property.expr, more});
    const GrammarIr::RuleId next = ir.AddRule("arguments_" + std::to_string(i));
    const GrammarIr::RuleId begin = ir.AddRule("first_argument_" + std::to_string(i));
    const ExprId with = ir.Sequence({separator, behind});
    ir.Define(next, property.required ? with : ir.Choice({with, more}));
    ir.Define(begin, property.required ? behind : ir.Choice({behind, first}));
    more = ir.Call(next);
    first = ir.Call(begin);
  }
  if (style_.marks == Marks::kPython) return first;
  return ir.Sequence({ir.Literal("{"), first, ir.Literal("}")});
}

ExprId XmlStyleReader::JoinedItems(ExprId item, uint32_t least, std::optional<uint32_t> most) {
  GrammarIr& ir = reader_.ir_;
  ExprId items = GrammarIr::kEmpty;
  if (!most || *most > 0) {
    const ExprId more = ir.Repeat(ir.Sequence({Separator(), item}), least > 0 ? least - 1 : 0,
                                  most ? *most - 1 : GrammarIr::kUnbounded);
    items = ir.Sequence({item, more});
    if (least == 0) items = ir.Optional(items);
  }
  return ir.Sequence({ir.Literal("["), items, ir.Literal("]")});
}

ExprId XmlStyleReader::AnyGemmaValue() {
  if (any_gemma_ != GrammarIr::kNever) return any_gemma_;
  GrammarIr& ir = reader_.ir_;
  const GrammarIr::RuleId rule = ir.AddRule("any_value");
  any_gemma_ = ir.Call(rule);
  const auto list = [&](ExprId one) {
    const ExprId more = ir.Repeat(ir.Sequence({ir.Literal(","), one}), 0, GrammarIr::kUnbounded);
    return ir.Optional(ir.Sequence({one, more}));
  };
  const auto regex = [&](const char* pattern) {
    return ir.Regex(*ParseEcma(ir.arena(), pattern, {.search = false}));
  };
  const ExprId quote = reader_.TextOf(kGemmaQuote);
  const ExprId text = reader_.FreeTextOf({.stops = {std::string(kGemmaQuote)}});
  const ExprId member = ir.Sequence({regex("[A-Za-z_][A-Za-z0-9_]*:"), any_gemma_});
  ir.Define(
      rule,
      ir.Choice({ir.Sequence({quote, text, quote}),
                 regex("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null"),
                 ir.Sequence({ir.Literal("{"), list(member), ir.Literal("}")}),
                 ir.Sequence({ir.Literal("["), list(any_gemma_), ir.Literal("]")})}));
  return any_gemma_;
}

Result<ExprId> XmlStyleReader::String(const json::Value& schema, const std::string& at, bool any) {
  GrammarIr& ir = reader_.ir_;
  const auto between = [&](std::string_view open, std::string_view close) -> Result<ExprId> {
    auto raw = Raw(schema, at, close);
    if (!raw.ok()) return raw.error();
    return ir.Sequence({reader_.TextOf(open), *raw, reader_.TextOf(close)});
  };
  if (style_.marks == Marks::kGemma) return between(kGemmaQuote, kGemmaQuote);
  if (style_.marks == Marks::kCdata) {
    auto plain = Raw(schema, at, "<");
    if (!plain.ok()) return plain.error();
    auto wrapped = between(kCdataOpen, kCdataClose);
    if (!wrapped.ok()) return wrapped.error();
    return ir.Choice({*plain, *wrapped});
  }
  if (style_.marks == Marks::kPython) {
    auto quoted = Json(schema, at, {"string"});
    if (!quoted.ok() || !any) return quoted;
    auto single = ParseEcma(ir.arena(), "'(?:[^'\\\\]|\\\\['\"\\\\nrt])*'", {.search = false});
    if (!single.ok()) return single.error();
    return ir.Choice({*quoted, ir.Regex(*single)});
  }
  return Raw(schema, at, style_.end);
}

// nullopt where the style cannot write it.
std::optional<ExprId> XmlStyleReader::StringLiteral(const std::string& text) {
  GrammarIr& ir = reader_.ir_;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (style_.marks == Marks::kGemma) {
    if (has(kGemmaQuote)) return std::nullopt;
    const ExprId quote = reader_.TextOf(kGemmaQuote);
    return ir.Sequence({quote, ir.Literal(text), quote});
  }
  if (style_.marks == Marks::kPython) {
    const ExprId quoted = ir.Literal(json::Quote(text));
    if (text.find_first_of("'\\\r\n") != std::string::npos) return quoted;
    return ir.Choice({quoted, ir.Literal("'" + text + "'")});
  }
  if (style_.marks == Marks::kCdata && has("<")) {
    if (has(kCdataClose)) return std::nullopt;
    return ir.Literal(std::string(kCdataOpen) + text + std::string(kCdataClose));
  }
  if (has(style_.end)) return std::nullopt;
  return Padded(ir.Literal(text));
}

}  // namespace pawl
