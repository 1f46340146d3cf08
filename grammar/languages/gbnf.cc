// GBNF beside what bnf_reader.cc reads: tokens as a whole. <[12]> is the token with that id,
// <think> the one with exactly that name, angle brackets included; ! before it is any other.
#include "grammar/languages/gbnf.h"

#include "grammar/languages/bnf_reader.h"

namespace pawl {

GrammarIr::ExprId BnfReader::ReadToken() {
  TokenSet set;
  set.place = PlaceOf(at_);
  if (Peek() == '!') {
    set.complement = true;
    ++at_;
  }
  const size_t open = at_;
  if (!Consume("<", "'<'")) return GrammarIr::kNever;
  if (Peek() == '[') {
    ++at_;
    const std::optional<uint64_t> id = ReadNumber(INT32_MAX);
    if (!id.has_value() || !Consume("]>", "\"]>\"")) return GrammarIr::kNever;
    set.ranges.emplace_back(static_cast<TokenId>(*id), static_cast<TokenId>(*id));
    return ir_.Tokens(std::move(set));
  }
  const size_t end = text_.find_first_of(">\n\r", at_);
  if (end == std::string_view::npos || text_[end] != '>')
    return Expected("'>' to end the token", std::min(end, text_.size()));
  at_ = end + 1;
  set.names.emplace_back(text_.substr(open, at_ - open));
  return ir_.Tokens(std::move(set));
}

Result<GrammarIr> ReadGbnf(std::string_view text, const LanguageOptions& options) {
  return BnfReader(text, options, BnfReader::Dialect::kGbnf).Read();
}

}  // namespace pawl
