// TagDispatch is free text with places in which a rule takes over. With D = "some tag or excluded
// text ends here", free text is what never has D, and a dispatch is
//     (free (tag(t) rule(t) | tag(u) rule(u) | ...))* free
// The tags are one prefix tree behind one free text, so that a text between tags is read once and
// not once for each tag. A tag into which D may reach, as "xa" does into "ab", needs a free text
// that does not end with the beginning of it, "x"; tags into which the same ones reach share it.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/cfg/stop_reach.h"
#include "grammar/languages/bnf_reader.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

// A free text of its own may not end with a beginning of a tag. This limits the characters of these
// beginnings. Longer tags have a regex each, and the second constant limits the number of regexes.
constexpr size_t kMostBeginnings = 20'000;
constexpr size_t kMostWays = 64;
// Free texts of their own: all of them run side by side.
constexpr size_t kMostFreeTexts = 128;

}  // namespace

bool BnfReader::ReadTags(const MacroArguments& arguments, const MacroValue* excludes,
                         std::vector<Tag>& tags, std::vector<std::u32string>& stops) {
  for (const MacroValue& pair : arguments.positional) {
    if (pair.kind == MacroValue::Kind::kTuple && !pair.elements.empty() &&
        pair.elements[0].kind == MacroValue::Kind::kString && pair.elements[0].text.empty()) {
      return Fail(ErrorCode::kInvalid, pair.elements[0].at, "expected a tag that is not empty");
    }
    if (pair.kind != MacroValue::Kind::kTuple || pair.elements.size() != 2 ||
        pair.elements[0].kind != MacroValue::Kind::kString ||
        pair.elements[1].kind != MacroValue::Kind::kName) {
      return Fail(ErrorCode::kInvalid, pair.at, "expected a pair (\"tag\", rule)");
    }
    tags.push_back({DecodeCodepoints(pair.elements[0].text),
                    RuleNamed(pair.elements[1].text, pair.elements[1].at)});
    stops.push_back(tags.back().text);
  }
  if (excludes == nullptr) return !failed();
  for (const MacroValue& value : excludes->elements) {
    if (value.kind != MacroValue::Kind::kString || value.text.empty()) {
      return Fail(ErrorCode::kInvalid, value.at,
                  "expected a text to exclude, a string that is not empty");
    }
    const std::u32string text = DecodeCodepoints(value.text);
    for (const Tag& tag : tags) {
      if (tag.text.starts_with(text))
        return Fail(ErrorCode::kInvalid, value.at, "a tag begins with this excluded text");
    }
    stops.push_back(text);
  }
  return !failed();
}

GrammarIr::ExprId BnfReader::TagDispatchMacro(const MacroArguments& arguments, size_t at) {
  if (!CheckNames(arguments, "TagDispatch", {"loop_after_dispatch", "excludes"}))
    return GrammarIr::kNever;
  const MacroValue* loop =
      Named(arguments, "loop_after_dispatch", MacroValue::Kind::kBoolean, "true or false");
  const MacroValue* excludes = Named(arguments, "excludes", MacroValue::Kind::kTuple, "a tuple");
  std::vector<Tag> tags;
  std::vector<std::u32string> stops;
  if (!ReadTags(arguments, excludes, tags, stops)) return GrammarIr::kNever;
  const auto too_many = [&] {
    return Fail(ErrorCode::kLimit, at, "too many tags for TagDispatch");
  };
  const ReId any = RegexArena::kAnything;
  const auto or_of = [this](const std::vector<std::u32string>& texts) {
    std::vector<ReId> literals;
    for (const std::u32string& text : texts) literals.push_back(arena().Literal(text));
    return arena().Or(literals);
  };
  std::optional<ReId> stop;
  // Free text that does not end with one of these.
  const auto free_before = [&](const std::vector<std::u32string>& beginnings) {
    return Fold([&] {
      stop = or_of(stops);
      return arena().Not(
          arena().Or(arena().Concat({any, *stop, any}), arena().Concat(any, or_of(beginnings))));
    });
  };
  const auto free = free_before({});
  if (!free) return too_many();
  const StopReach reach(stops);
  std::map<StopReach::Into, std::vector<PrefixedExpr>> groups;
  for (const Tag& tag : tags) {
    StopReach::Into into = reach.IntoText(tag.text);
    if (!into.never) groups[std::move(into)].push_back({tag.text, ir_.Call(tag.rule)});
  }
  if (groups.size() > kMostFreeTexts) {
    return Fail(ErrorCode::kLimit, at,
                "the tags of TagDispatch end with beginnings of others in " +
                    std::to_string(groups.size()) + " ways, more than " +
                    std::to_string(kMostFreeTexts));
  }
  std::vector<ExprId> ways;
  size_t apart = 0;
  for (const auto& group : groups) {
    // No structured binding: lambdas do not take one in Clang 14.
    const auto& into = group.first;
    const auto& texts = group.second;
    std::optional<ExprId> before = free;
    if (!into.nodes.empty()) {
      const auto beginnings = reach.Beginnings(into, kMostBeginnings);
      before = beginnings ? free_before(*beginnings) : std::nullopt;
    }
    bool whole = true;
    if (before) {
      const std::vector<ExprId> choices = PrefixChoice(ir_, texts, [&](std::u32string_view text) {
        const auto part = Fold([&] { return arena().Literal(text); });
        whole = whole && part.has_value();
        return part.value_or(GrammarIr::kNever);
      });
      ways.push_back(ir_.Sequence({*before, ir_.Choice(choices)}));
    }
    for (size_t i = 0; !before && i < texts.size(); ++i) {
      const auto way = Fold([&] {
        const ReId early =
            arena().Concat({any, *stop, arena().Repeat(RegexArena::kAnyChar, 1, std::nullopt)});
        return arena().And(arena().Concat(any, arena().Literal(texts[i].text)), arena().Not(early));
      });
      if (!way || ++apart > kMostWays) return too_many();
      ways.push_back(ir_.Sequence({*way, texts[i].rest}));
    }
    if (!whole) return too_many();
  }
  const ExprId dispatch = ir_.Choice(ways);
  if (loop != nullptr && loop->number == 0) return ir_.Choice({*free, dispatch});
  return ir_.Sequence({ir_.Repeat(dispatch, 0, GrammarIr::kUnbounded), *free});
}

}  // namespace pawl
