// All classes that a Java text can name: those of the text itself, of the repository, and of the
// class path; and what each of them has.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_SYMBOL_TABLE_H_
#define PAWL_PLUGINS_MONITORS_JAVA_SYMBOL_TABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/index.h"
#include "plugins/monitors/java/class_path.h"
#include "plugins/monitors/java/types.h"
#include "plugins/monitors/syntax.h"

namespace pawl::monitors::java {

std::string WithoutSpace(std::string_view text);
// A class, interface, enum, record or annotation type.
bool DeclaresClass(const Node& node);

struct Import {
  std::string name;  // java.util.List; without the ".*"
  bool is_static = false;
  bool all = false;  // .*
};

// A parsed text and its classes.
struct SourceFile {
  std::unique_ptr<Tree> tree;
  std::string package;
  std::vector<Import> imports;
  bool generated = false;        // an annotation processor adds members to its classes
  uint32_t cursor = UINT32_MAX;  // what encloses it is unfinished
  std::unordered_map<std::string, std::unique_ptr<Class>> classes;
  std::unordered_map<const Node*, Class*> by_node;
};

class SymbolTable {
 public:
  SymbolTable(std::vector<std::string> class_path, Repository* repository)
      : path_(std::move(class_path)), repository_(repository) {}

  // The text that is being written. `cursor`: what encloses it is unfinished.
  void SetProgram(std::unique_ptr<Tree> tree, uint32_t cursor);
  SourceFile& program() { return program_; }
  // Forgets the program and the files of the repository; classes of the class path stay.
  void Forget() noexcept;

  // The class with this name, nullptr: not known. It holds until the next SetProgram.
  Class* Find(const std::string& name);
  // The class that a declaration, or a body with braces of its own, makes.
  Class* ClassOf(const Node* node, SourceFile& file);
  // What a type, as written at `node`, stands for.
  Type TypeFromNode(const Node* node, SourceFile& file, int depth = 0);
  // What a simple name stands for as a type at `node`.
  Type Named(std::string_view name, const Node* node, SourceFile& file, int depth = 0);
  bool HasPackage(const std::string& name);
  // Packages and classes in a package of the class path, sorted; nullopt: it has none of that name,
  // or was not read whole.
  std::optional<std::vector<std::string>> NamesInLibrary(const std::string& package) {
    return path_.NamesIn(package);
  }
  ClassPath& class_path() { return path_; }
  // The file of the repository that the program is an unfinished version of: what lies on the disk
  // does not count. Empty: none.
  void SetFile(std::string file);
  const std::string& file() const { return file_; }
  Repository* repository() { return repository_; }
  // The type with `dimensions` ("[][]") behind it.
  static Type WithDimensions(Type type, const Node* dimensions);

  // Calls `visit` for the class of the type and all above it, the nearest first, until it says that
  // it has seen enough. False: something above is not known, or has members that are not known;
  // what was visited before was known. `visit` calls ReadClass when it wants to see members.
  using Visit = std::function<bool(Class&, const Substitution&)>;
  bool Walk(const Type& type, const Visit& visit);
  // Whether all that is above a type is known, which itself may be unfinished.
  bool SupersKnown(const Type& type);
  // Whether the name of a type at `node` may be that of one which an enclosing class inherits from
  // a class that is not known.
  bool MayBeInherited(const Type& type, const Node* node);
  // The type as seen as the class above it of that name; kUnknown: it is none, or not known.
  Type As(const Type& type, const std::string& super);
  enum class Answer : uint8_t { kNo, kYes, kMaybe };
  Answer IsSubtype(const Type& type, const std::string& super);
  // The nested type of a class, own or inherited. `known`: there is none, for sure.
  Type NestedType(Class& in, std::string_view name, bool& known);
  void ReadClass(Class& c);
  void ReadHead(Class& c);
  size_t files() const { return files_.size(); }
  // The limits that were reached on the class path, in words.
  const std::vector<std::string>& limits() const { return path_.limits(); }

 private:
  void AddOuterVariables(const Class& of, Substitution& with);
  void Collect(SourceFile& file);
  void CollectIn(const Node* body, Class* outer, SourceFile& file);
  Class* Declare(const Node* node, Class* outer, SourceFile& file, std::string name);
  SourceFile* FileOf(const std::string& path);
  Class* FindInRepository(const std::string& name);
  Type ClassNamed(Class& c) const;
  Type Imported(std::string_view name, SourceFile& file);
  void ReadMember(const Node& node, Class& c);
  void ReadVariables(const Node* list, std::vector<std::string>& into);

  ClassPath path_;
  Repository* repository_;
  SourceFile program_;
  std::unordered_map<std::string, std::unique_ptr<SourceFile>> files_;
  size_t file_bytes_ = 0;
  std::string file_;
  std::unordered_map<std::string, std::unique_ptr<Class>> compiled_;  // nullptr: not there
  std::unordered_map<std::string, Class*> in_repository_;
};

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_SYMBOL_TABLE_H_
