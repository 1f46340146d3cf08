// The front door: checks the text, has every grammar parsed, and lowers them together.
#include "grammar/languages/lark.h"

#include <deque>
#include <set>
#include <utility>

#include "grammar/languages/language_options.h"
#include "grammar/languages/lark_lower.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl {

Result<GrammarIr> ReadLark(std::string_view text, const LanguageOptions& options) {
  const LarkGrammar grammar{"", std::string(WithoutByteOrderMark(text)), false};
  return ReadLark(std::span<const LarkGrammar>(&grammar, 1), options);
}

Result<GrammarIr> ReadLark(std::span<const LarkGrammar> grammars, const LanguageOptions& options) {
  if (grammars.empty()) return Error{ErrorCode::kInvalid, "expected a grammar, found none", ""};
  std::deque<lark::Source> sources;
  std::set<std::string_view> names;
  size_t bytes = 0;
  for (const LarkGrammar& grammar : grammars) {
    const auto fail = [&](ErrorCode code, std::string message, std::string place) {
      if (!grammar.name.empty()) {
        place = "@" + grammar.name + (place.empty() ? "" : " ") + place;
      }
      return Error{code, std::move(message), std::move(place)};
    };
    bytes += grammar.text.size();
    if (bytes > options.max_bytes) {
      return fail(ErrorCode::kLimit,
                  "the grammar is longer than " + std::to_string(options.max_bytes) + " bytes", "");
    }
    if (!grammar.name.empty() && !names.insert(grammar.name).second) {
      return fail(ErrorCode::kInvalid, "two grammars have this name", "");
    }
    lark::SourceMap map(grammar.text);
    if (const size_t bad = FindInvalidUtf8(grammar.text); bad != std::string_view::npos) {
      return fail(ErrorCode::kInvalid, "the grammar is not valid UTF-8", map.Place(bad));
    }
    lark::Tree tree;
    if (!grammar.is_json_schema) {
      Result<lark::Tree> parsed = lark::Parse(
          grammar.text, map,
          {.max_nesting = options.max_nesting, .as_xgrammar = options.lark_as_xgrammar});
      if (!parsed.ok()) {
        return fail(parsed.error().code,
                    parsed.error().message + std::string(LanguageHint(grammar.text, true)),
                    parsed.error().place);
      }
      tree = std::move(*parsed);
    }
    sources.push_back(
        {grammar.name, grammar.text, std::move(map), std::move(tree), grammar.is_json_schema});
  }
  return lark::LarkLowering(std::move(sources), options).Run();
}

Result<GrammarIr> ReadLlguidance(std::string_view json_text, const LanguageOptions& options) {
  json::ParseLimits limits;
  limits.max_bytes = options.max_bytes;
  const Result<json::Value> value = json::Parse(json_text, limits);
  if (!value.ok()) return value.error();
  const json::Value* list = value->Find("grammars");
  if (list == nullptr || list->type != json::Type::kArray || list->items.empty()) {
    return Error{ErrorCode::kInvalid, "expected a list \"grammars\" of one grammar or more", "#"};
  }
  for (const json::Member& member : value->members) {
    if (member.first == "grammars") continue;
    return Error{ErrorCode::kUnsupported, "expected only \"grammars\"",
                 json::PointerJoin("#", member.first)};
  }
  std::vector<LarkGrammar> grammars;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const std::string place = "#/grammars/" + std::to_string(i);
    LarkGrammar grammar;
    int texts = 0;
    for (const json::Member& member : list->items[i].members) {
      const auto& [key, text] = member;
      if (text.type == json::Type::kNull) continue;
      const bool string = text.type == json::Type::kString;
      if (key == "name" && string) {
        grammar.name = text.text;
      } else if (key == "lark_grammar" && string) {
        grammar.text = text.text;
        ++texts;
      } else if (key == "json_schema") {
        grammar.text = json::Dump(text);
        grammar.is_json_schema = true;
        ++texts;
      } else {
        return Error{ErrorCode::kInvalid,
                     "expected \"name\", \"lark_grammar\" (strings) or \"json_schema\"",
                     json::PointerJoin(place, key)};
      }
    }
    if (texts != 1) {
      return Error{ErrorCode::kInvalid, "expected one of \"lark_grammar\" and \"json_schema\"",
                   place};
    }
    grammars.push_back(std::move(grammar));
  }
  return ReadLark(grammars, options);
}

}  // namespace pawl
