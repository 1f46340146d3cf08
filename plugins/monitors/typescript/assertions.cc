// A `!` is such a mark when it stands right behind a name or a closing bracket, and nothing follows
// that would make it another operator, the `!` of a declaration (`let a!: T`), or the negation of
// what stands behind a condition in brackets. Each becomes a space, so that no byte moves.
#include "plugins/monitors/typescript/assertions.h"

#include <utility>

#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {
namespace {

bool MayAssert(const std::string& text, size_t at) {
  const char before = at == 0 ? 0 : text[at - 1];
  if (!NameByte(before) && before != ')' && before != ']') return false;
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

void AssertedTexts::Forget() noexcept {
  seen_.clear();
  places_.clear();
  scan_ = Scan(Language::kTypeScript);
}

std::unique_ptr<Tree> AssertedTexts::Parse(std::string text, size_t stable) {
  bool some = false;
  for (size_t at = text.find('!'); at != std::string::npos && !some; at = text.find('!', at + 1))
    some = MayAssert(text, at);
  std::vector<uint32_t> places;
  if (some) {
    const size_t line = stable == 0 ? std::string::npos : text.rfind('\n', stable - 1);
    const size_t settled = line == std::string::npos ? 0 : line + 1;
    if (seen_.size() > settled || text.compare(0, seen_.size(), seen_) != 0) Forget();
    const size_t known = seen_.size();
    Work::Bytes(known + (text.size() - known) * 4);
    seen_.append(text, known, settled - known);
    for (const uint32_t place : places_) text[place] = ' ';
    const auto read = [&](size_t from, size_t to, Scan& scan, std::vector<uint32_t>& found) {
      for (size_t i = from; i < to; ++i) {
        const bool again = !found.empty() && found.back() + 1 == i;  // a!!
        if (text[i] == '!' && scan.in_code() && (again || MayAssert(text, i))) {
          found.push_back(static_cast<uint32_t>(i));
          text[i] = ' ';
        }
        scan.Add(text[i]);
      }
    };
    read(known, settled, scan_, places_);
    places = places_;
    Scan rest = scan_;
    read(settled, text.size(), rest, places);
  }
  auto tree = parser_.Parse(std::move(text));
  tree->asserted = std::move(places);
  return tree;
}

}  // namespace pawl::monitors::ts
