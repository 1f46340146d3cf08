// Names of packages and of their types, and places where only a type may stand.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_PACKAGES_H_
#define PAWL_PLUGINS_MONITORS_JAVA_PACKAGES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/java/symbol_table.h"

namespace pawl::monitors::java {

// Names that may stand behind a point.
struct NamesThere {
  std::vector<std::string> names;  // sorted
  bool lower_free = false;         // names that begin with a small letter may be packages
};

class PackageNames {
 public:
  explicit PackageNames(SymbolTable& world) : world_(world) {}

  // What may stand behind the package: its types, and packages in it. nullopt: not known.
  std::optional<NamesThere> In(const std::string& package);
  // What may stand behind `import` with these names and a point, nullopt: not known.
  std::optional<NamesThere> Imported(const std::string& before, bool is_static);
  // What may stand behind `package` with these names and a point.
  std::optional<NamesThere> Declared(const std::string& before);
  // What may stand behind the names and a point where only a type may stand. `at`: a node there.
  std::optional<NamesThere> Types(const std::string& before, const Node* at);
  // Whether `before` begins the name of a package that the text may name.
  bool Begins(const std::string& before);

 private:
  const std::vector<std::string>* Readable();
  std::vector<std::string> TypesOf(const std::string& package);
  std::optional<NamesThere> NestedIn(Class& in, bool is_static, bool with_fields);

  SymbolTable& world_;
  bool asked_ = false;
  std::optional<std::vector<std::string>> readable_;
};

// `import a.b.`, `import static a.b.`, `package a.b.` at the end of a text.
struct DottedPlace {
  enum class Word : uint8_t { kNone, kImport, kImportStatic, kPackage };
  Word word = Word::kNone;
  std::string before;  // a.b
  size_t start = 0;    // of the word
};
DottedPlace DottedPlaceAt(std::string_view text);

// Where a text ends with `a.b.` and a type has to follow: in `new a.b.`, in the head of a class or
// a method, behind a modifier.
struct TypePlace {
  size_t boundary = 0;  // where the statement or the member begins
  std::string before;   // a.b
  // What has to hold of the statement.
  bool anywhere = false;   // nothing
  bool of_member = false;  // it is a member of a class
  bool at_top = false;     // it stands outside of classes
  bool in_catch = false;   // the statement is `catch (`, behind the block of its `try`
};
std::optional<TypePlace> TypePlaceAt(std::string_view text);

// Whether only `class` may follow: `int.`, `String[].`
bool OnlyClassFollows(std::string_view text);

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_PACKAGES_H_
