// A `!` is such a mark when it stands right behind a name or a closing bracket, and nothing follows
// that would make it another operator, the `!` of a declaration (`let a!: T`), or the negation of
// what stands behind a condition in brackets. Each becomes a space, so that no byte moves.
#include "plugins/monitors/typescript/assertions.h"

#include <utility>
#include <vector>

#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {
namespace {

bool MayAssert(const std::string& text, size_t at) {
  const char before = at == 0 ? 0 : text[at - 1];
  if (!NameByte(before) && before != ')' && before != ']' && before != '!') return false;
  size_t next = at + 1;
  while (next < text.size() && (text[next] == ' ' || text[next] == '\t')) ++next;
  const char after = next < text.size() ? text[next] : ';';
  if (after == ':') return false;
  if (next > at + 1) return true;
  if (after == '(' && before == ')') return false;
  return after != '=' && !NameByte(after) && after != '"' && after != '\'' && after != '`' &&
         after != '/';
}

}  // namespace

std::unique_ptr<Tree> ParseAsserted(Parser& parser, std::string text) {
  std::vector<uint32_t> places;
  bool some = false;
  for (size_t at = text.find('!'); at != std::string::npos && !some; at = text.find('!', at + 1))
    some = MayAssert(text, at);
  if (some) {
    Work::Bytes(text.size() * 4);
    Scan scan(Language::kTypeScript);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '!' && scan.in_code() && MayAssert(text, i)) {
        places.push_back(static_cast<uint32_t>(i));
        text[i] = ' ';
      }
      scan.Add(text[i]);
    }
  }
  auto tree = parser.Parse(std::move(text));
  tree->asserted = std::move(places);
  return tree;
}

}  // namespace pawl::monitors::ts
