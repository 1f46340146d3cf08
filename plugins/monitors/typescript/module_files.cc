// How TypeScript finds the file of an import: a path next to the importing file, the aliases of the
// nearest tsconfig.json, the packages in node_modules of the folders above. Written after the
// TypeScript handbook, "Modules - Reference"; extensions are tried in the order of tsc.
//
// A package says in package.json where its declarations are: under "exports", the versions of
// "typesVersions", "types" or "typings", or next to "main". Declarations that others have written
// are in node_modules/@types.
#include "plugins/monitors/typescript/module_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "plugins/monitors/typescript/assertions.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxModules = 600;
constexpr size_t kMaxModuleBytes = size_t{1} << 20;
constexpr size_t kMaxAllBytes = size_t{32} << 20;
constexpr size_t kMaxConfigBytes = size_t{256} << 10;
constexpr int kMaxExtends = 8;
constexpr size_t kMaxAnswers = 100'000;
constexpr size_t kMaxSpecifier = 512;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

// Without "." and ".."; nullopt: it leaves the folder.
std::optional<std::string> Normal(const std::string& path) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at <= path.size()) {
    const size_t slash = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string normal;
  for (const std::string& part : parts) normal += (normal.empty() ? "" : "/") + part;
  return normal;
}

std::string TextAt(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// What a "*" of the pattern stands for; nullopt: the pattern does not fit.
std::optional<std::string> Star(const std::string& pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos)
    return pattern == text ? std::optional<std::string>("") : std::nullopt;
  const size_t behind = pattern.size() - star - 1;
  if (text.size() + 1 < pattern.size() || !text.starts_with(pattern.substr(0, star)) ||
      !text.ends_with(pattern.substr(star + 1))) {
    return std::nullopt;
  }
  return text.substr(star, text.size() - star - behind);
}

std::string WithStar(std::string pattern, const std::string& stands) {
  if (const size_t star = pattern.find('*'); star != std::string::npos)
    pattern.replace(star, 1, stands);
  return pattern;
}

// The file of a target of "exports": the first condition that TypeScript would take.
std::string Condition(const Json& target, int depth = 0) {
  if (target.is_string()) return target.get<std::string>();
  if (depth > 6) return "";
  if (target.is_array()) {
    for (const Json& one : target) {
      if (std::string found = Condition(one, depth + 1); !found.empty()) return found;
    }
    return "";
  }
  if (!target.is_object()) return "";
  for (const char* wanted : {"types", "typings", "import", "require", "node", "default"}) {
    if (const auto at = target.find(wanted); at != target.end()) {
      if (std::string found = Condition(*at, depth + 1); !found.empty()) return found;
    }
  }
  return "";
}

// "@a/b/c" is "c" of the package "@a/b".
std::pair<std::string, std::string> SplitPackage(const std::string& specifier) {
  size_t slash = specifier.find('/');
  if (specifier.starts_with('@') && slash != std::string::npos)
    slash = specifier.find('/', slash + 1);
  if (slash == std::string::npos) return {specifier, ""};
  return {specifier.substr(0, slash), specifier.substr(slash + 1)};
}

// Three things that the grammar does not know: a member that is named like a word of classes,
// `global { ... }` in an ambient module, and a statement behind a class that is exported as the
// default, on the same line.
std::string Repaired(const std::string& text) {
  std::string out;
  out.reserve(text.size() + 64);
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line(text.data() + at, end - at);
    at = end;
    const size_t start = line.find_first_not_of(" \t");
    const std::string_view code = start == std::string_view::npos ? "" : line.substr(start);
    if (code.starts_with("global {")) {
      out += "namespace ";
    } else if (code.starts_with("abstract:") || code.starts_with("abstract?:")) {
      out += "\"abstract\"";
      out += code.substr(std::string_view("abstract").size());
      continue;
    }
    constexpr std::string_view kBehind = "} export ";
    const size_t behind =
        code.starts_with("export default ") ? line.find(kBehind) : std::string_view::npos;
    if (behind != std::string_view::npos) {
      out += line.substr(0, behind + 1);
      out += '\n';
      out += line.substr(behind + 2);
      continue;
    }
    out += line;
  }
  return out;
}

int64_t ChangedAt(const std::string& path) {
  std::error_code failed;
  const auto time = fs::last_write_time(path, failed);
  return failed ? 0 : time.time_since_epoch().count();
}

}  // namespace

std::string PlainJson(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      const size_t start = i;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      plain += text.substr(start, i + 1 - start);
    } else if (text.substr(i).starts_with("//")) {
      while (i < text.size() && text[i] != '\n') ++i;
      plain += '\n';
    } else if (text.substr(i).starts_with("/*")) {
      const size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
    } else if (text[i] == '}' || text[i] == ']') {
      const size_t last = plain.find_last_not_of(" \t\r\n");
      if (last != std::string::npos && plain[last] == ',') plain.erase(last, 1);
      plain += text[i];
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool ModuleFiles::Has(const std::string& path) {
  if (has_.size() > kMaxAnswers) has_.clear();
  const auto [at, is_new] = has_.try_emplace(path, false);
  if (is_new) {
    Work::Step(20);
    at->second = folder_.HasFile(path);
  }
  return at->second;
}

std::optional<std::string> ModuleFiles::Text(const std::string& path) {
  if (!Has(path)) return std::nullopt;
  auto text = folder_.Read(path, kMaxConfigBytes);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

// A path without or with an ending, or a folder with an index.
std::optional<std::string> ModuleFiles::FindFile(const std::string& path) {
  const auto base = Normal(path);
  if (!base) return std::nullopt;
  static constexpr std::array<std::string_view, 3> kEndings = {".ts", ".tsx", ".d.ts"};
  const auto with = [&](const std::string& stem,
                        std::string_view wide = "") -> std::optional<std::string> {
    if (!wide.empty()) {  // a.mjs is a.mts
      for (const char* front : {".", ".d."}) {
        const std::string file = stem + front + std::string(wide);
        if (Has(file)) return file;
      }
    }
    for (const std::string_view ending : kEndings) {
      if (Has(stem + std::string(ending))) return stem + std::string(ending);
    }
    return std::nullopt;
  };
  if (!base->empty()) {
    for (const char* ending : {".ts", ".tsx", ".mts", ".cts"}) {
      if (base->ends_with(ending) && Has(*base)) return base;
    }
    if (auto file = with(*base)) return file;
    for (const auto& [ending, wide] : {std::pair{".js", ""}, std::pair{".jsx", ""},
                                       std::pair{".mjs", "mts"}, std::pair{".cjs", "cts"}}) {
      if (!base->ends_with(ending)) continue;
      if (auto file = with(base->substr(0, base->size() - std::string_view(ending).size()), wide))
        return file;
    }
    if (Has(*base + "/package.json")) {
      if (auto file = FindInPackage(*base, "")) return file;
    }
  }
  return with(Join(*base, "index"));
}

// The declarations next to a file of JavaScript that package.json names.
std::optional<std::string> ModuleFiles::FindEntry(const std::string& package,
                                                  const std::string& entry) {
  if (entry.empty()) return std::nullopt;
  ++entries_;
  auto file = FindFile(Join(package, entry));
  --entries_;
  return file;
}

std::optional<std::string> ModuleFiles::FindInPackage(const std::string& package,
                                                      const std::string& rest) {
  // "main": "." leads back to the package.
  constexpr int kMaxEntries = 4;
  const auto text = entries_ > kMaxEntries ? std::nullopt : Text(Join(package, "package.json"));
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (const auto exports = json.find("exports"); exports != json.end()) {
    const std::string wanted = rest.empty() ? "." : "./" + rest;
    const bool paths =
        exports->is_object() && !exports->empty() && exports->begin().key().starts_with(".");
    if (!paths) {
      if (rest.empty()) {
        if (auto file = FindEntry(package, Condition(*exports))) return file;
      }
    } else {
      for (const auto& [pattern, target] : exports->items()) {
        const auto stands = Star(pattern, wanted);
        if (!stands) continue;
        if (auto file = FindEntry(package, WithStar(Condition(target), *stands))) return file;
      }
    }
  }
  // The declarations for this version of the language: the first range from a version on.
  std::string entry = rest;
  if (entry.empty()) entry = TextAt(json, "types");
  if (entry.empty()) entry = TextAt(json, "typings");
  if (const auto versions = json.find("typesVersions");
      versions != json.end() && versions->is_object()) {
    for (const auto& [range, mapping] : versions->items()) {
      if (!range.starts_with('>') && range != "*") continue;
      if (!mapping.is_object()) break;
      for (const auto& [pattern, targets] : mapping.items()) {
        const auto stands = Star(pattern, entry.empty() ? "index" : entry);
        if (!stands || !targets.is_array()) continue;
        for (const Json& target : targets) {
          if (!target.is_string()) continue;
          if (auto file = FindEntry(package, WithStar(target.get<std::string>(), *stands)))
            return file;
        }
      }
      break;
    }
  }
  if (auto file = FindEntry(package, entry)) return file;
  if (!rest.empty()) return std::nullopt;
  if (auto file = FindEntry(package, TextAt(json, "main"))) return file;
  for (const char* file : {"index.ts", "index.d.ts", "src/index.ts"}) {
    if (Has(Join(package, file))) return Join(package, file);
  }
  return std::nullopt;
}

std::optional<std::string> ModuleFiles::FindPackage(const std::string& specifier,
                                                    const std::string& folder) {
  const auto [name, rest] = SplitPackage(specifier);
  if (name.empty() || name.find("..") != std::string::npos) return std::nullopt;
  // @a/b has its types in @types/a__b.
  std::string typed = name;
  if (typed.starts_with('@')) {
    typed.erase(0, 1);
    if (const size_t slash = typed.find('/'); slash != std::string::npos)
      typed.replace(slash, 1, "__");
  }
  for (std::string at = folder;; at = FolderOf(at)) {
    const std::string home = Join(at, "node_modules");
    for (const std::string& package : {Join(home, name), Join(home, "@types/" + typed)}) {
      if (Has(package + "/package.json")) {
        if (auto file = FindInPackage(package, rest)) return file;
      }
      if (auto file = rest.empty() ? FindFile(package) : FindFile(package + "/" + rest))
        return file;
    }
    // Modules of Node: a file each.
    const std::string node = Join(home, "@types/node");
    if (const std::string file = node + "/" + specifier + ".d.ts"; Has(file)) return file;
    if (at.empty()) return std::nullopt;
  }
}

ModuleFiles::Paths ModuleFiles::ReadConfig(const std::string& path, int depth) {
  Paths paths;
  const auto text = depth > kMaxExtends ? std::nullopt : Text(path);
  const Json json = Json::parse(PlainJson(text.value_or("{}")), nullptr, false);
  if (!json.is_object()) return paths;
  const std::string folder = FolderOf(path);
  std::vector<std::string> extends;
  if (const auto at = json.find("extends"); at != json.end()) {
    if (at->is_string()) extends.push_back(at->get<std::string>());
    if (at->is_array()) {
      for (const Json& one : *at) {
        if (one.is_string()) extends.push_back(one.get<std::string>());
      }
    }
  }
  for (const std::string& one : extends) {
    if (!one.starts_with('.')) continue;
    const auto base = Normal(Join(folder, one));
    if (!base) continue;
    const std::string file = Has(*base) ? *base : *base + ".json";
    Paths above = ReadConfig(file, depth + 1);
    if (above.has_base) {
      paths.base = above.base;
      paths.has_base = true;
    }
    if (!above.patterns.empty()) {
      paths.patterns = std::move(above.patterns);
      paths.patterns_base = std::move(above.patterns_base);
    }
  }
  const auto options = json.find("compilerOptions");
  if (options == json.end() || !options->is_object()) return paths;
  if (const auto at = options->find("baseUrl"); at != options->end() && at->is_string()) {
    const auto base = Normal(Join(folder, at->get<std::string>()));
    paths.has_base = base.has_value();
    paths.base = base.value_or("");
    if (!paths.patterns.empty()) paths.patterns_base = paths.base;
  }
  if (const auto at = options->find("paths"); at != options->end() && at->is_object()) {
    paths.patterns.clear();
    paths.patterns_base = paths.has_base ? paths.base : folder;
    for (const auto& [pattern, targets] : at->items()) {
      std::vector<std::string> files;
      if (!targets.is_array()) continue;
      for (const Json& target : targets) {
        if (target.is_string()) files.push_back(target.get<std::string>());
      }
      paths.patterns.emplace_back(pattern, std::move(files));
    }
  }
  return paths;
}

const ModuleFiles::Paths* ModuleFiles::PathsOf(const std::string& folder) {
  auto& known = configs_[folder];
  if (known != nullptr) return known.get();
  Paths paths;
  for (std::string at = folder;; at = FolderOf(at)) {
    if (const std::string file = Join(at, "tsconfig.json"); Has(file)) {
      paths = ReadConfig(file, 0);
      break;
    }
    if (at.empty()) break;
  }
  known = std::make_unique<Paths>(std::move(paths));
  return known.get();
}

std::optional<std::string> ModuleFiles::FindMapped(const std::string& specifier,
                                                   const std::string& folder) {
  const Paths* paths = PathsOf(folder);
  const std::vector<std::string>* best = nullptr;
  std::string stands;
  size_t longest = 0;
  for (const auto& [pattern, targets] : paths->patterns) {
    const auto star = Star(pattern, specifier);
    if (!star) continue;
    const size_t at = pattern.find('*');
    const size_t length = at == std::string::npos ? SIZE_MAX : at + 1;
    if (best != nullptr && length <= longest) continue;
    best = &targets;
    longest = length;
    stands = *star;
  }
  if (best != nullptr) {
    for (const std::string& target : *best) {
      if (auto file = FindFile(Join(paths->patterns_base, WithStar(target, stands)))) return file;
    }
  }
  return paths->has_base ? FindFile(Join(paths->base, specifier)) : std::nullopt;
}

std::optional<std::string> ModuleFiles::FindAnywhere(const std::string& specifier,
                                                     const std::string& from) {
  const std::string folder = FolderOf(from);
  if (specifier == "." || specifier == ".." || specifier.starts_with("./") ||
      specifier.starts_with("../")) {
    return FindFile(Join(folder, specifier));
  }
  if (specifier.starts_with('/') || specifier.starts_with('#')) return std::nullopt;
  if (specifier.starts_with("node:")) return FindPackage(specifier.substr(5), folder);
  if (auto file = FindMapped(specifier, folder)) return file;
  return FindPackage(specifier, folder);
}

std::optional<std::string> ModuleFiles::Find(const std::string& specifier,
                                             const std::string& from) {
  if (specifier.empty() || specifier.size() > kMaxSpecifier || from.empty()) return std::nullopt;
  if (found_.size() > kMaxAnswers) found_.clear();
  const std::string key = FolderOf(from) + "\n" + specifier;
  if (const auto known = found_.find(key); known != found_.end()) return known->second;
  auto file = FindAnywhere(specifier, from);
  found_[key] = file;
  return file;
}

const ModuleText* ModuleFiles::Read(const std::string& path) {
  if (const auto known = texts_.find(path); known != texts_.end()) return known->second.text.get();
  if (texts_.size() >= kMaxModules || bytes_ >= kMaxAllBytes) return nullptr;
  Known& known = texts_[path];
  const std::string on_disk = (fs::path(folder_.path()) / path).string();
  known.changed = ChangedAt(on_disk);
  auto text = folder_.Read(path, kMaxModuleBytes);
  if (!text.ok()) return nullptr;
  known.bytes = text->size();
  bytes_ += text->size();
  const Work file(Work::Limits(), Work::Limits().file_steps);
  try {
    Parser parser(Language::kTypeScript);
    auto module = std::make_unique<ModuleText>();
    module->path = path;
    module->declarations =
        path.ends_with(".d.ts") || path.ends_with(".d.mts") || path.ends_with(".d.cts");
    module->tree = AssertedTexts(parser).Parse(*text);
    if (module->tree->broken() && !module->tree->cut()) {
      std::string repaired = Repaired(*text);
      parser.Forget();
      if (repaired != *text) module->tree = AssertedTexts(parser).Parse(std::move(repaired));
    }
    if (!module->tree->cut()) known.text = std::move(module);
  } catch (const GaveUp&) {
    known.text = nullptr;
  }
  return known.text.get();
}

bool ModuleFiles::Refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::seconds(1)) return false;
  looked_ = now;
  found_.clear();
  has_.clear();
  configs_.clear();
  const bool full = texts_.size() >= kMaxModules || bytes_ >= kMaxAllBytes;
  const bool changed = std::any_of(texts_.begin(), texts_.end(), [&](const auto& entry) {
    return ChangedAt((fs::path(folder_.path()) / entry.first).string()) != entry.second.changed;
  });
  if (!changed && !full) return false;
  Clear();
  return true;
}

void ModuleFiles::Clear() {
  ambient_.reset();
  texts_.clear();
  bytes_ = 0;
  found_.clear();
  has_.clear();
  configs_.clear();
}

}  // namespace pawl::monitors::ts
