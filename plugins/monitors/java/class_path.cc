// The archives are opened when the first class is looked for; then only their tables of contents
// are read. A class is unpacked when it is asked for. A .jmod file has its classes in a folder of
// that name.
#include "plugins/monitors/java/class_path.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "plugins/monitors/work.h"

namespace pawl::monitors::java {

namespace {

using TK = Type::Kind;

constexpr uint32_t kPublic = 1, kPrivate = 2, kProtected = 4, kStatic = 8, kVarargs = 0x80,
                   kInterface = 0x200, kAbstract = 0x400, kSynthetic = 0x1000, kEnum = 0x4000;

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  uint32_t U1() { return At(1); }
  uint32_t U2() { return At(2); }
  uint32_t U4() { return At(4); }
  std::string_view Take(size_t count) {
    if (count > bytes_.size() - at_) {
      failed_ = true;
      at_ = bytes_.size();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  bool failed() const { return failed_; }
  size_t at() const { return at_; }

 private:
  uint32_t At(size_t count) {
    uint32_t value = 0;
    for (const char c : Take(count)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// java/util/Map$Entry -> java.util.Map.Entry
std::string Dotted(std::string_view name) {
  std::string dotted(name);
  for (size_t i = 0; i < dotted.size(); ++i) {
    const bool nested = dotted[i] == '$' && i > 0 && dotted[i - 1] != '/' && i + 1 < dotted.size();
    if (dotted[i] == '/' || nested) dotted[i] = '.';
  }
  return dotted;
}

// Signatures and descriptors: "Ljava/util/List<TE;>;", "[I", "<T:Ljava/lang/Object;>(TT;)V".
class Signature {
 public:
  explicit Signature(std::string_view text) : text_(text) {}
  char peek() const { return at_ < text_.size() ? text_[at_] : 0; }
  bool Skip(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  // <T:Ljava/lang/Object;U:...>
  std::vector<std::string> Variables() {
    std::vector<std::string> names;
    if (!Skip('<')) return names;
    while (peek() != 0 && peek() != '>') {
      const size_t colon = text_.find(':', at_);
      if (colon == std::string_view::npos) break;
      names.emplace_back(text_.substr(at_, colon - at_));
      at_ = colon;
      while (Skip(':')) {
        if (peek() != ':' && peek() != '>') Read(0);
      }
    }
    Skip('>');
    return names;
  }
  Type Read(int depth) {
    static constexpr std::string_view kLetters = "BCDFIJSZ";
    static constexpr std::string_view kNames[] = {"byte", "char", "double", "float",
                                                  "int",  "long", "short",  "boolean"};
    if (depth > 60) {
      at_ = text_.size();
      return {};
    }
    const char c = peek();
    ++at_;
    if (const size_t which = kLetters.find(c); c != 0 && which != std::string_view::npos)
      return Primitive(kNames[which]);
    switch (c) {
      case 'V':
        return {.kind = TK::kVoid, .name = {}, .args = {}};
      case '[':
        return ArrayOf(Read(depth + 1));
      case 'T': {
        const size_t end = std::min(text_.find(';', at_), text_.size());
        Type variable{
            .kind = TK::kVariable, .name = std::string(text_.substr(at_, end - at_)), .args = {}};
        at_ = end + 1;
        return variable;
      }
      case 'L':
        return ClassOf(depth);
      default:
        at_ = text_.size();
        return {};
    }
  }

 private:
  Type ClassOf(int depth) {
    std::string name;
    std::vector<Type> args;
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find_first_of("<;.", at_), text_.size());
      if (!name.empty()) name += '.';
      name += Dotted(text_.substr(at_, end - at_));
      at_ = end;
      if (Skip('<')) {
        args.clear();
        while (peek() != 0 && peek() != '>') args.push_back(Argument(depth));
        Skip('>');
      } else if (peek() == '.') {
        args.clear();
      }
      if (Skip(';')) break;
      if (!Skip('.')) break;
      // A nested class of a generic one: its own arguments are what counts.
      args.clear();
    }
    return ClassType(std::move(name), std::move(args));
  }
  Type Argument(int depth) {
    if (Skip('*')) return {.kind = TK::kExtends, .name = {}, .args = {}};
    const TK kind = peek() == '+' ? TK::kExtends : peek() == '-' ? TK::kSuper : TK::kClass;
    if (kind == TK::kClass) return Read(depth + 1);
    ++at_;
    Type wildcard{.kind = kind, .name = {}, .args = {}};
    wildcard.args.push_back(Read(depth + 1));
    return wildcard;
  }
  std::string_view text_;
  size_t at_ = 0;
};

struct ConstantPool {
  std::vector<std::string_view> texts;
  std::vector<uint32_t> classes;  // the index of a class's name
  std::string_view Text(uint32_t i) const { return i < texts.size() ? texts[i] : ""; }
  std::string_view ClassName(uint32_t i) const {
    return i < classes.size() ? Text(classes[i]) : "";
  }
};

bool ReadConstantPool(Bytes& in, ConstantPool& constants) {
  const uint32_t count = in.U2();
  constants.texts.resize(count);
  constants.classes.resize(count);
  for (uint32_t i = 1; i < count && !in.failed(); ++i) {
    switch (in.U1()) {
      case 1:
        constants.texts[i] = in.Take(in.U2());
        break;
      case 7:
      case 19:  // a module
      case 20:  // a package
        constants.classes[i] = in.U2();
        break;
      case 8:
      case 16:
        in.U2();
        break;
      case 15:
        in.Take(3);
        break;
      case 5:
      case 6:
        in.Take(8);
        ++i;  // takes two places
        break;
      case 3:
      case 4:
      case 9:
      case 10:
      case 11:
      case 12:
      case 17:
      case 18:
        in.Take(4);
        break;
      default:
        return false;
    }
  }
  return !in.failed();
}

Visibility VisibilityOf(uint32_t flags) {
  return (flags & kPublic) != 0      ? Visibility::kPublic
         : (flags & kProtected) != 0 ? Visibility::kProtected
         : (flags & kPrivate) != 0   ? Visibility::kPrivate
                                     : Visibility::kPackage;
}

// A field or a method.
void ReadMember(Bytes& in, const ConstantPool& constants, bool method, Class& into) {
  const uint32_t flags = in.U2();
  Member member;
  member.name = std::string(constants.Text(in.U2()));
  std::string_view signature = constants.Text(in.U2());
  const uint32_t attributes = in.U2();
  for (uint32_t i = 0; i < attributes && !in.failed(); ++i) {
    const std::string_view name = constants.Text(in.U2());
    const std::string_view content = in.Take(in.U4());
    if (name == "Signature") signature = constants.Text(Bytes(content).U2());
  }
  if ((flags & kSynthetic) != 0 || member.name == "<clinit>") return;
  member.is_static = (flags & kStatic) != 0;
  member.is_abstract = (flags & kAbstract) != 0;
  member.visibility = VisibilityOf(flags);
  member.kind = !method                   ? Member::Kind::kField
                : member.name == "<init>" ? Member::Kind::kConstructor
                                          : Member::Kind::kMethod;
  member.is_constant = !method && (flags & kEnum) != 0;
  Signature read(signature);
  if (method) {
    member.varargs = (flags & kVarargs) != 0;
    member.variables = read.Variables();
    read.Skip('(');
    while (read.peek() != 0 && read.peek() != ')') member.parameters.push_back(read.Read(0));
    read.Skip(')');
  }
  member.type = read.Read(0);
  into.members.push_back(std::move(member));
}

void ReadInnerClasses(Bytes in, const ConstantPool& constants, std::string_view self, Class& into) {
  const uint32_t count = in.U2();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    const std::string_view inner = constants.ClassName(in.U2());
    const std::string_view outer = constants.ClassName(in.U2());
    const std::string_view name = constants.Text(in.U2());
    const uint32_t flags = in.U2();
    if (inner == self) into.is_static = (flags & kStatic) != 0;
    if (outer != self || name.empty()) continue;
    Member member;
    member.kind = Member::Kind::kType;
    member.name = std::string(name);
    member.is_static = true;
    member.visibility = VisibilityOf(flags);
    member.type = ClassType(Dotted(inner));
    into.members.push_back(std::move(member));
  }
}

}  // namespace

Result<Class> ReadClassFile(std::string_view bytes) {
  Bytes in(bytes);
  ConstantPool constants;
  const auto bad = [&](const char* why) {
    return Error{ErrorCode::kInvalid, why, "byte " + std::to_string(in.at())};
  };
  if (in.U4() != 0xCAFEBABE) return bad("is no class file");
  in.U4();  // the version
  if (!ReadConstantPool(in, constants)) return bad("a constant that is not known");
  Class result;
  const uint32_t flags = in.U2();
  const std::string_view self = constants.ClassName(in.U2());
  const std::string_view super = constants.ClassName(in.U2());
  result.name = Dotted(self);
  const size_t slash = self.rfind('/');
  result.package = slash == std::string_view::npos ? "" : Dotted(self.substr(0, slash));
  const size_t dot = result.name.rfind('.');
  result.simple = dot == std::string::npos ? result.name : result.name.substr(dot + 1);
  if (const size_t nested = self.rfind('$'); nested != std::string_view::npos && nested > 0)
    result.outer = Dotted(self.substr(0, nested));
  const size_t first = result.package.empty() ? 0 : result.package.size() + 1;
  result.top = result.name.substr(0, result.name.find('.', first));
  result.is_interface = (flags & kInterface) != 0;
  result.is_abstract = (flags & kAbstract) != 0;
  result.is_enum = (flags & kEnum) != 0;
  if (!super.empty()) result.supers.push_back(ClassType(Dotted(super)));
  const uint32_t interfaces = in.U2();
  for (uint32_t i = 0; i < interfaces && !in.failed(); ++i)
    result.supers.push_back(ClassType(Dotted(constants.ClassName(in.U2()))));
  for (const bool method : {false, true}) {
    const uint32_t count = in.U2();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) ReadMember(in, constants, method, result);
  }
  const uint32_t attributes = in.U2();
  for (uint32_t i = 0; i < attributes && !in.failed(); ++i) {
    const std::string_view name = constants.Text(in.U2());
    const std::string_view content = in.Take(in.U4());
    if (name == "Signature") {
      Signature read(constants.Text(Bytes(content).U2()));
      result.variables = read.Variables();
      result.supers.clear();
      while (read.peek() != 0) result.supers.push_back(read.Read(0));
    } else if (name == "InnerClasses") {
      ReadInnerClasses(Bytes(content), constants, self, result);
    }
  }
  if (in.failed()) return bad("the file ends too early");
  if (result.is_interface && result.name != "java.lang.Object" &&
      std::find(result.supers.begin(), result.supers.end(), ClassType("java.lang.Object")) ==
          result.supers.end()) {
    result.supers.push_back(ClassType("java.lang.Object"));
  }
  result.head_read = result.read = true;
  return result;
}

Result<Module> ReadModuleFile(std::string_view bytes) {
  Bytes in(bytes);
  ConstantPool constants;
  const auto bad = [&](const char* why) {
    return Error{ErrorCode::kInvalid, why, "byte " + std::to_string(in.at())};
  };
  if (in.U4() != 0xCAFEBABE) return bad("is no class file");
  in.U4();  // the version
  if (!ReadConstantPool(in, constants)) return bad("a constant that is not known");
  in.Take(10);  // flags, names, no interfaces, no fields
  in.U2();      // no methods
  Module module;
  const uint32_t attributes = in.U2();
  for (uint32_t i = 0; i < attributes && !in.failed(); ++i) {
    const std::string_view name = constants.Text(in.U2());
    Bytes content(in.Take(in.U4()));
    if (name != "Module") continue;
    module.name = std::string(constants.ClassName(content.U2()));
    content.U4();  // flags, version
    constexpr uint32_t kTransitive = 0x20;
    for (uint32_t left = content.U2(); left > 0 && !content.failed(); --left) {
      const std::string_view required = constants.ClassName(content.U2());
      const uint32_t flags = content.U2();
      content.U2();  // version
      module.requirements.push_back(
          {.name = std::string(required), .transitive = (flags & kTransitive) != 0});
    }
    for (uint32_t left = content.U2(); left > 0 && !content.failed(); --left) {
      std::string package = Dotted(constants.ClassName(content.U2()));
      content.U2();  // flags
      const uint32_t to = content.U2();
      content.Take(size_t{2} * to);
      if (to == 0) module.exports.push_back(std::move(package));
    }
    if (content.failed()) return bad("the description of the module ends too early");
  }
  if (in.failed()) return bad("the file ends too early");
  if (module.name.empty()) return bad("describes no module");
  return module;
}

}  // namespace pawl::monitors::java

#ifndef PAWL_JAVA_MODULES
#define PAWL_JAVA_MODULES ""
#endif

namespace pawl::monitors::java {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxClassBytes = size_t{4} << 20;
constexpr size_t kMaxEntries = 1'000'000;

}  // namespace

void ClassPath::Open() {
  if (opened_) return;
  opened_ = true;
  for (const std::string& place : places_) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
      OpenArchive(place);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
      const std::string ending = entry.path().extension().string();
      if (ending == ".jar" || ending == ".jmod") inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    for (const std::string& path : inside) OpenArchive(path);
  }
}

void ClassPath::OpenArchive(const std::string& path) {
  const bool module = path.ends_with(".jmod");
  std::optional<ZipArchive> archive = ZipArchive::Open(path);
  if (!archive) return;
  const auto number = static_cast<uint32_t>(archives_.size());
  for (const ZipArchive::Entry& entry : archive->entries()) {
    if (entries_.size() >= kMaxEntries) {
      Reached(path + ": the class path has more than " + std::to_string(kMaxEntries) + " classes");
      break;
    }
    std::string_view name = entry.name;
    if (module) {
      if (!name.starts_with("classes/")) continue;
      name.remove_prefix(8);
    }
    if (!name.ends_with(".class")) continue;
    name.remove_suffix(6);
    if (name == "module-info") {
      descriptions_.push_back({.archive = number, .of_kit = module, .place = entry});
      continue;
    }
    if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) {
      std::string package(name.substr(0, slash));
      std::replace(package.begin(), package.end(), '/', '.');
      packages_.insert(std::move(package));
    }
    const auto [it, fresh] = entries_.try_emplace(std::string(name), Entry{number, entry});
    if (fresh) it->second.place.name = {};
  }
  archive->DropEntries();
  archives_.push_back(std::move(*archive));
}

void ClassPath::Reached(const std::string& limit) {
  constexpr size_t kMostLimits = 8;
  if (limits_.size() < kMostLimits &&
      std::find(limits_.begin(), limits_.end(), limit) == limits_.end()) {
    limits_.push_back(limit);
  }
}

bool ClassPath::HasPackage(std::string_view package) {
  Open();
  return packages_.contains(std::string(package));
}

const ClassPath::NamesOfPackage& ClassPath::Look(const std::string& package) {
  Open();
  const auto [at, is_new] = names_in_.try_emplace(package);
  if (!is_new) return at->second;
  std::string folder = package + "/";
  std::ranges::replace(folder, '.', '/');
  std::unordered_set<std::string_view> names;
  std::unordered_set<std::string_view> classes;
  for (const auto& [path, entry] : entries_) {
    if (!path.starts_with(folder)) continue;
    const std::string_view rest = std::string_view(path).substr(folder.size());
    const size_t end = std::min(rest.find_first_of("/$"), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name == "package-info" || name.empty()) continue;
    names.emplace(name);
    if (end == rest.size() || rest[end] == '$') classes.emplace(name);
  }
  at->second.all.assign(names.begin(), names.end());
  at->second.classes.assign(classes.begin(), classes.end());
  std::ranges::sort(at->second.all);
  std::ranges::sort(at->second.classes);
  Work::Step(1 + entries_.size() / 8);
  return at->second;
}

std::optional<std::vector<std::string>> ClassPath::NamesIn(const std::string& package) {
  Open();
  if (!limits_.empty()) return std::nullopt;
  const NamesOfPackage& names = Look(package);
  if (names.all.empty()) return std::nullopt;
  return names.all;
}

const std::vector<std::string>& ClassPath::ClassesIn(const std::string& package) {
  return Look(package).classes;
}

void ClassPath::ReadModules() {
  Open();
  if (modules_read_) return;
  modules_read_ = true;
  std::vector<std::unordered_set<std::string_view>> folders(archives_.size());
  for (const auto& [path, entry] : entries_) {
    if (const size_t slash = path.rfind('/'); slash != std::string::npos)
      folders[entry.archive].insert(std::string_view(path).substr(0, slash));
  }
  for (const Description& one : descriptions_) {
    const auto bytes = archives_[one.archive].Read(one.place, kMaxClassBytes);
    if (!bytes) continue;
    Result<Module> module = ReadModuleFile(*bytes);
    if (!module.ok()) continue;
    LibraryModule library{.module = std::move(*module)};
    for (const std::string_view folder : folders[one.archive]) {
      std::string package(folder);
      std::ranges::replace(package, '/', '.');
      library.packages.push_back(std::move(package));
    }
    std::ranges::sort(library.packages);
    // Modules that are tried out are seen only by programs that ask for them.
    if (one.of_kit && !library.module.name.starts_with("jdk.incubator."))
      of_kit_.insert(library.module.exports.begin(), library.module.exports.end());
    std::string name = library.module.name;
    modules_.try_emplace(std::move(name), std::move(library));
  }
  Work::Step(1 + entries_.size() / 8);
}

const ClassPath::LibraryModule* ClassPath::ModuleNamed(const std::string& name) {
  ReadModules();
  const auto found = modules_.find(name);
  return found == modules_.end() ? nullptr : &found->second;
}

bool ClassPath::OfKit(const std::string& package) {
  ReadModules();
  return limits_.empty() && of_kit_.contains(package);
}

std::unique_ptr<Class> ClassPath::Find(std::string_view name) {
  Open();
  std::string path(name);
  std::replace(path.begin(), path.end(), '.', '/');
  // java/util/Map/Entry, java/util/Map$Entry, java/util$Map$Entry, ...
  auto found = entries_.find(path);
  for (size_t slash = path.rfind('/'); found == entries_.end() && slash != std::string::npos;
       slash = path.rfind('/')) {
    path[slash] = '$';
    found = entries_.find(path);
  }
  if (found == entries_.end()) return nullptr;
  const ZipArchive::Entry& place = found->second.place;
  if (place.size > kMaxClassBytes) {
    Reached(path + ".class: has more than " + std::to_string(kMaxClassBytes) + " bytes");
    return nullptr;
  }
  if (unpacked_ + place.size > kMaxUnpackedBytes) {
    Reached("the classes that one text needs have more than " + std::to_string(kMaxUnpackedBytes) +
            " bytes");
    return nullptr;
  }
  unpacked_ += place.size;
  const auto bytes = archives_[found->second.archive].Read(place, kMaxClassBytes);
  if (!bytes) return nullptr;
  auto read = ReadClassFile(*bytes);
  if (!read.ok()) return nullptr;
  return std::make_unique<Class>(std::move(*read));
}

std::string DefaultJavaModules(const std::string& home, std::string* note) {
  std::error_code ignored;
  if (!home.empty()) {
    std::string modules = (fs::path(home) / "jmods").string();
    if (fs::is_directory(modules, ignored)) return modules;
  }
  std::string best;
  std::string passed_over;
  int newest = -1;
  int newest_without = -1;
  for (const auto& entry : fs::directory_iterator("/usr/lib/jvm", ignored)) {
    const std::string modules = (entry.path() / "jmods").string();
    const bool has = fs::is_directory(modules, ignored);
    if (!has && !fs::is_regular_file(entry.path() / "lib" / "modules", ignored)) continue;
    // java-17-openjdk-amd64
    const std::string name = entry.path().filename().string();
    int version = 0;
    for (const char c : name.substr(std::min(name.size(), name.find('-') + 1))) {
      if (c < '0' || c > '9' || version > 10000) break;
      version = version * 10 + (c - '0');
    }
    if (has && version > newest) {
      newest = version;
      best = modules;
    } else if (!has && version > newest_without) {
      newest_without = version;
      passed_over = entry.path().string();
    }
  }
  if (note != nullptr && newest >= 0 && newest_without > newest) {
    *note = passed_over + ": has no .jmod files, so the library is that of " + best;
  }
  if (best.empty() && fs::is_directory(PAWL_JAVA_MODULES, ignored)) best = PAWL_JAVA_MODULES;
  return best;
}

}  // namespace pawl::monitors::java
