// What the files of a repository assign to behind points: util.patched = "yes". Any of them may
// give a module or a class of another file a name that its text does not have. The texts are
// searched and not parsed.
#include <algorithm>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

constexpr SourceLimits kPatchLimits{.entries = 200'000,
                                    .files = 4'000,
                                    .file_bytes = size_t{1} << 20,
                                    .source_bytes = size_t{24} << 20};

// The name at the end of a text.
std::string_view LastName(std::string_view text) {
  size_t start = text.size();
  while (start > 0 && NameByte(text[start - 1])) --start;
  return text.substr(start);
}

using Aliases = std::unordered_map<std::string, std::unordered_set<std::string>>;

// import shop.util as u, from shop import util as u: what else u is called.
Aliases AliasesOf(std::string_view text) {
  Aliases aliases;
  constexpr std::string_view kAs = " as ";
  for (size_t at = text.find(kAs); at != std::string_view::npos; at = text.find(kAs, at + 1)) {
    const std::string_view name =
        LastName(text.substr(at < 100 ? 0 : at - 100, std::min<size_t>(at, 100)));
    size_t end = at + kAs.size();
    while (end < text.size() && NameByte(text[end])) ++end;
    const std::string_view alias = text.substr(at + kAs.size(), end - at - kAs.size());
    if (!name.empty() && !alias.empty()) aliases[std::string(alias)].emplace(name);
  }
  return aliases;
}

void Note(std::string_view owner, std::string_view name, const Aliases& aliases, Patches& patches) {
  constexpr size_t kMostNames = 10'000;
  if (name.empty() || owner == "self") return;
  if (patches.names.size() < kMostNames || patches.names.contains(std::string(name))) {
    patches.names.emplace(name);
  } else {
    patches.many = true;
  }
  if (owner.empty()) return;  // current_thread().name = ...
  const std::string text(owner);
  patches.of[text].emplace(name);
  if (const auto also = aliases.find(text); also != aliases.end()) {
    for (const std::string& one : also->second) patches.of[one].emplace(name);
  }
}

// class Dog(Animal, mixins.Named[T]): the last names of what it derives from.
void NoteBases(std::string_view text, const std::string& module, Patches& patches) {
  constexpr std::string_view kClass = "class ";
  for (size_t at = text.find(kClass); at != std::string_view::npos;
       at = text.find(kClass, at + 1)) {
    if (at > 0 && text[at - 1] != '\n' && text[at - 1] != ' ' && text[at - 1] != '\t') continue;
    const std::string_view head = text.substr(at + kClass.size(), 1000);
    size_t end = 0;
    while (end < head.size() && NameByte(head[end])) ++end;
    if (end == 0 || end >= head.size() || (head[end] != '(' && head[end] != '[')) continue;
    // Every name in the brackets counts, what is in them or before "." too.
    const std::string_view bases = head.substr(end, head.find(':', end) - end);
    for (size_t from = 0; from < bases.size();) {
      if (!NameStart(bases[from])) {
        ++from;
        continue;
      }
      size_t to = from;
      while (to < bases.size() && NameByte(bases[to])) ++to;
      auto& modules = patches.derived[std::string(bases.substr(from, to - from))];
      if (modules.size() <= Patches::kMostDerived) modules.insert(module);
      from = to;
    }
  }
}

}  // namespace

const std::unordered_set<std::string>* Patches::Of(const std::string& owner) const {
  const auto found = of.find(owner);
  return found == of.end() ? nullptr : &found->second;
}

void ReadPatches(std::string_view text, const std::string& module, Patches& patches) {
  Work::Bytes(2 * text.size());
  NoteBases(text, module, patches);
  const Aliases aliases = AliasesOf(text);
  patches.loggers = patches.loggers || text.find("setLoggerClass") != std::string_view::npos;
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    if (at + 1 < text.size() && text[at + 1] == '=') {
      ++at;
      continue;
    }
    std::string_view before = text.substr(at < 200 ? 0 : at - 200, std::min<size_t>(at, 200));
    while (before.ends_with(' ')) before.remove_suffix(1);
    const std::string_view name = LastName(before);
    before.remove_suffix(name.size());
    if (name.empty() || !before.ends_with('.')) continue;
    before.remove_suffix(1);
    Note(LastName(before), name, aliases, patches);
  }
  // setattr(x, "name", ...)
  constexpr std::string_view kSet = "setattr(";
  for (size_t at = text.find(kSet); at != std::string_view::npos; at = text.find(kSet, at + 1)) {
    std::string_view rest = text.substr(at + kSet.size(), 200);
    const size_t comma = rest.find(',');
    if (comma == std::string_view::npos) continue;
    const std::string_view owner = LastName(rest.substr(0, comma));
    rest.remove_prefix(comma + 1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) continue;
    const size_t end = rest.find(rest[0], 1);
    if (end != std::string_view::npos) Note(owner, rest.substr(1, end - 1), aliases, patches);
  }
}

const Patches& SymbolTable::PatchesOfRepository() {
  if (patches_) return *patches_;
  Patches patches;
  // Not of the library as a repository, whose stubs are read in place of its files.
  if (repository_ && !IsLibrary()) {
    const Work all(Work::Limits(), Work::Limits().file_steps);
    try {
      if (const auto list = repository_->List(kPatchLimits); list.ok()) {
        for (const auto& [file, language] : list->files) {
          if (language != Language::kPython) continue;
          if (const auto text = repository_->Read(file, kPatchLimits.file_bytes); text.ok())
            ReadPatches(*text, ModuleOfFile(file), patches);
        }
      }
    } catch (const GaveUp&) {
      // What was read counts.
    }
  }
  patches_ = std::move(patches);
  return *patches_;
}

}  // namespace pawl::monitors::python
