// Two kinds of packages are known whole. Those of a text that lies in a module, since a module says
// what it reads (modules.h); and "java", which is reserved. Of the packages that the development
// kit exports, no other archive can have a type (Java Virtual Machine: a package lies in one
// module), but it may have packages that are called as if they lay in them.
#include "plugins/monitors/java/packages.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "plugins/monitors/java/modules.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

using TK = Type::Kind;

void Sort(std::vector<std::string>& names) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

std::vector<std::string> PartsOf(const std::string& dotted) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= dotted.size();) {
    const size_t dot = std::min(dotted.find('.', at), dotted.size());
    parts.push_back(dotted.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

bool OneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The name of a file without its folder and ending: what its public type is called.
std::string Stem(const std::string& file) {
  const size_t slash = file.rfind('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  return file.substr(start, file.find('.', start) - start);
}

}  // namespace

const std::vector<std::string>* PackageNames::Readable() {
  if (!asked_) {
    asked_ = true;
    if (world_.repository() != nullptr && !world_.file().empty())
      readable_ = ReadablePackages(*world_.repository(), world_.class_path(), world_.file());
  }
  return readable_ ? &*readable_ : nullptr;
}

std::vector<std::string> PackageNames::TypesOf(const std::string& package) {
  std::vector<std::string> types = world_.class_path().ClassesIn(package);
  if (Repository* repository = world_.repository()) {
    for (const auto& [name, file] : repository->TypesIn(package)) {
      if (file != world_.file()) types.push_back(name);
    }
  }
  if (package == world_.program().package) {
    for (const auto& [name, c] : world_.program().classes) types.push_back(c->simple);
    types.push_back(Stem(world_.file()));
  }
  Work::Step(1 + types.size() / 4);
  return types;
}

bool PackageNames::Begins(const std::string& before) {
  const std::vector<std::string>* readable = Readable();
  if (readable == nullptr) return world_.class_path().NamesIn(before).has_value();
  Work::Step(8);
  const auto at = std::lower_bound(readable->begin(), readable->end(), before);
  if (at != readable->end() && (*at == before || at->starts_with(before + "."))) return true;
  // "a-b" stands between "a" and "a.b", but no package is called so.
  return world_.program().package == before || world_.program().package.starts_with(before + ".");
}

std::optional<NamesThere> PackageNames::In(const std::string& package) {
  NamesThere there;
  if (const std::vector<std::string>* readable = Readable()) {
    const std::string start = package + ".";
    const auto add = [&](const std::string& one) {
      if (one.starts_with(start))
        there.names.push_back(one.substr(start.size(), one.find('.', start.size()) - start.size()));
    };
    bool is_package = package == world_.program().package;
    for (auto at = std::lower_bound(readable->begin(), readable->end(), package);
         at != readable->end() && at->starts_with(package); ++at) {
      Work::Step();
      add(*at);
      is_package = is_package || *at == package;
    }
    add(world_.program().package);
    if (is_package) {
      std::vector<std::string> types = TypesOf(package);
      there.names.insert(there.names.end(), types.begin(), types.end());
    }
    if (there.names.empty()) return std::nullopt;
    Sort(there.names);
    return there;
  }
  Repository* repository = world_.repository();
  const std::string_view root = std::string_view(package).substr(0, package.find('.'));
  const bool reserved = root == "java"
                            ? repository == nullptr || !repository->HasPackage("java.lang")
                            : (root == "jdk" || root == "sun") && repository == nullptr;
  if (reserved) {
    auto names = world_.NamesInLibrary(package);
    if (!names) return std::nullopt;
    return NamesThere{.names = std::move(*names)};
  }
  if (repository != nullptr && repository->HasPackage(package)) return std::nullopt;
  if (package == world_.program().package || !world_.class_path().OfKit(package))
    return std::nullopt;
  there.names = world_.class_path().ClassesIn(package);
  there.lower_free = true;
  return there;
}

// Nested types of a class; with_fields: static members too.
std::optional<NamesThere> PackageNames::NestedIn(Class& in, bool is_static, bool with_fields) {
  NamesThere there;
  const bool closed = world_.Walk(ClassType(in.name), [&](Class& c, const Substitution& with) {
    (void)with;
    world_.ReadClass(c);
    Work::Step(c.members.size() / 4);
    for (const Member& m : c.members) {
      const bool type = m.kind == Member::Kind::kType;
      if (m.kind == Member::Kind::kConstructor || (!type && !with_fields)) continue;
      if (is_static && !m.is_static) continue;
      there.names.push_back(m.name);
    }
    return false;
  });
  if (!closed) return std::nullopt;
  Sort(there.names);
  return there;
}

std::optional<NamesThere> PackageNames::Imported(const std::string& before, bool is_static) {
  const std::string own = world_.program().package + "." + Stem(world_.file());
  if (before == own || before.starts_with(own + ".")) return std::nullopt;
  if (before.find('.') != std::string::npos) {
    if (Class* in = world_.Find(before)) return NestedIn(*in, is_static, is_static);
  }
  return In(before);
}

std::optional<NamesThere> PackageNames::Declared(const std::string& before) {
  if (world_.repository() == nullptr || world_.file().empty()) return std::nullopt;
  const std::string package = PackageOfFolder(*world_.repository(), world_.file());
  if (!package.starts_with(before + ".")) return std::nullopt;
  const size_t start = before.size() + 1;
  return NamesThere{.names = {package.substr(start, package.find('.', start) - start)}};
}

std::optional<NamesThere> PackageNames::Types(const std::string& before, const Node* at) {
  const std::vector<std::string> parts = PartsOf(before);
  Type type = world_.Named(parts[0], at, world_.program());
  size_t next = 1;
  if (!type.is(TK::kClass)) {
    const char first = parts[0].empty() ? 'A' : parts[0][0];
    if (type.known() || first < 'a' || first > 'z') return std::nullopt;
    // A class with its package, or a package.
    std::string name = parts[0];
    while (next < parts.size() && !type.is(TK::kClass)) {
      name += "." + parts[next++];
      if (world_.Find(name) != nullptr) type = ClassType(name);
    }
    if (!type.is(TK::kClass)) return In(before);
  } else if (world_.MayBeInherited(type, at)) {
    return std::nullopt;
  }
  for (; next < parts.size(); ++next) {
    Class* in = world_.Find(type.name);
    bool known = true;
    if (in == nullptr) return std::nullopt;
    type = world_.NestedType(*in, parts[next], known);
    if (!type.is(TK::kClass)) return std::nullopt;
  }
  Class* in = world_.Find(type.name);
  return in == nullptr ? std::nullopt : NestedIn(*in, false, false);
}

namespace {

bool White(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view WithoutSpaceBehind(std::string_view text) {
  while (!text.empty() && White(text.back())) text.remove_suffix(1);
  return text;
}

// Cuts the word at the end off.
bool CutWord(std::string_view& text, std::string_view word) {
  const std::string_view trimmed = WithoutSpaceBehind(text);
  if (!trimmed.ends_with(word)) return false;
  const std::string_view rest = trimmed.substr(0, trimmed.size() - word.size());
  if (!rest.empty() && (NameByte(rest.back()) || rest.back() == '.')) return false;
  text = rest;
  return true;
}

// The words and signs of a member or a statement that is not finished, without comments; literals
// are a sign '"'.
struct Statement {
  size_t start = 0;
  std::vector<std::string_view> words;
};

// Behind the literal or the comment that begins at `at`; `at`: none does.
size_t Behind(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) {
    const size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  if (rest.starts_with("\"\"\"")) {
    size_t end = at + 3;
    while (end < text.size() && !text.substr(end).starts_with("\"\"\""))
      end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 3, text.size());
  }
  if (rest[0] == '"' || rest[0] == '\'') {
    size_t end = at + 1;
    while (end < text.size() && text[end] != rest[0] && text[end] != '\n')
      end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  return at;
}

Statement LastStatement(std::string_view text) {
  Statement last;
  std::vector<int> open = {0};  // round brackets, for each open brace
  Work::Bytes(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t behind = Behind(text, at);
    if (behind > at) {
      if (text[at] != '/') last.words.emplace_back("\"");
      at = behind;
      continue;
    }
    const char c = text[at];
    if (NameByte(c)) {
      const size_t start = at;
      while (at < text.size() && NameByte(text[at])) ++at;
      last.words.push_back(text.substr(start, at - start));
      continue;
    }
    ++at;
    if (White(c)) continue;
    if (c == '{') open.push_back(0);
    if (c == '}' && open.size() > 1) open.pop_back();
    if (c == '(') ++open.back();
    if (c == ')') --open.back();
    if (c == '{' || c == '}' || (c == ';' && open.back() <= 0)) {
      last = {.start = at};
    } else {
      last.words.push_back(text.substr(at - 1, 1));
    }
  }
  return last;
}

constexpr std::array<std::string_view, 12> kModifiers = {
    "public", "private",   "protected",    "static", "final",    "abstract",
    "native", "transient", "synchronized", "sealed", "strictfp", "volatile"};
constexpr std::array<std::string_view, 5> kBeforeTypes = {"extends", "implements", "throws",
                                                          "instanceof", "permits"};

// Whether all of a member's words up to the last are types, modifiers, names and brackets of them:
// no value, and at most the parameters of a method are open.
bool HeadOfMember(std::span<const std::string_view> words) {
  std::vector<size_t> open;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "=" || words[i] == "default" || words[i] == "-") return false;
    if (words[i] == "(") open.push_back(i);
    if (words[i] == ")" && !open.empty()) open.pop_back();
  }
  if (open.empty()) return true;
  if (open.size() > 1) return false;
  const size_t name = open[0] == 0 ? 0 : open[0] - 1;
  if (open[0] == 0 || !NameByte(words[name].front())) return false;
  // @Name( and @a.Name( have values.
  size_t before = name;
  while (before >= 2 && words[before - 1] == "." && NameByte(words[before - 2].front()))
    before -= 2;
  return before == name && (before == 0 || words[before - 1] != "@");
}

}  // namespace

DottedPlace DottedPlaceAt(std::string_view text) {
  DottedPlace place;
  text = WithoutSpaceBehind(text);
  if (!text.ends_with('.')) return place;
  text.remove_suffix(1);
  size_t start = text.size();
  while (start > 0 && (NameByte(text[start - 1]) || text[start - 1] == '.')) --start;
  place.before = std::string(text.substr(start));
  if (place.before.empty() || place.before.front() == '.' || start == 0 || !White(text[start - 1]))
    return place;
  text = text.substr(0, start);
  using Word = DottedPlace::Word;
  Word word = Word::kNone;
  if (CutWord(text, "package")) {
    word = Word::kPackage;
  } else if (CutWord(text, "static")) {
    if (text.empty() || !White(text.back()) || !CutWord(text, "import")) return place;
    word = Word::kImportStatic;
  } else if (CutWord(text, "import")) {
    word = Word::kImport;
  }
  place.start = text.size();
  // At the beginning of a line or a statement.
  const std::string_view before = WithoutSpaceBehind(text);
  if (before.empty() || before.back() == ';' || before.size() < text.size()) place.word = word;
  return place;
}

bool OnlyClassFollows(std::string_view text) {
  text = WithoutSpaceBehind(text);
  if (!text.ends_with('.')) return false;
  text = WithoutSpaceBehind(text.substr(0, text.size() - 1));
  if (text.ends_with(']'))
    return WithoutSpaceBehind(text.substr(0, text.size() - 1)).ends_with('[');
  for (const std::string_view type :
       {"int", "long", "short", "byte", "char", "boolean", "float", "double", "void"}) {
    std::string_view rest = text;
    if (CutWord(rest, type)) return true;
  }
  return false;
}

std::optional<TypePlace> TypePlaceAt(std::string_view text) {
  const Statement statement = LastStatement(text);
  const auto& words = statement.words;
  size_t first = words.size();
  // name . name .
  while (first >= 2 && words[first - 1] == "." && NameByte(words[first - 2].front())) first -= 2;
  if (first == words.size()) return std::nullopt;
  TypePlace place{.boundary = statement.start};
  for (size_t i = first; i + 1 < words.size(); ++i) place.before += words[i];
  const std::span<const std::string_view> head(words.data(), first);
  const std::string_view before = first == 0 ? "" : words[first - 1];
  const std::string_view earlier = first < 2 ? "" : words[first - 2];
  place.anywhere = (before == "new" && earlier != ".") || before == "@" ||
                   OneOf(before, kBeforeTypes) || OneOf(before, kModifiers) ||
                   (before == "(" && earlier == "catch");
  place.in_catch = before == "(" && earlier == "catch";
  if (before == "|") {
    const auto open = std::find(head.rbegin(), head.rend(), "(");
    place.in_catch = open != head.rend() && open + 1 != head.rend() && *(open + 1) == "catch";
    place.anywhere = place.in_catch;
  }
  place.of_member = HeadOfMember(head);
  static constexpr std::array<std::string_view, 4> kClasses = {"class", "interface", "enum",
                                                               "record"};
  place.at_top = place.of_member && std::ranges::any_of(head, [](std::string_view word) {
                   return OneOf(word, kClasses);
                 });
  if (!place.anywhere && !place.of_member) return std::nullopt;
  return place;
}

}  // namespace pawl::monitors::java
