// Java's types and classes, whether they come from a source text or from a class file.
//
// A type names its class and does not point to it: the classes of the text that is being written
// are made anew at each trigger. A type that is not known is kUnknown, and then nothing is refused.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_TYPES_H_
#define PAWL_PLUGINS_MONITORS_JAVA_TYPES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::monitors {
struct Node;
}

namespace pawl::monitors::java {

struct Type {
  enum class Kind : uint8_t {
    kUnknown,
    kVoid,
    kNull,
    kPrimitive,  // name: int, ...
    kClass,      // name: java.util.Map.Entry; args
    kArray,      // args[0]: of what
    kVariable,   // name; args[0]: its bound, when it has one
    kExtends,    // ? extends args[0]; ? alone has no args
    kSuper,      // ? super args[0]
    kEither      // one of args
  };
  Kind kind = Kind::kUnknown;
  std::string name;
  std::vector<Type> args;

  bool known() const { return kind != Kind::kUnknown; }
  bool is(Kind k) const { return kind == k; }
  friend bool operator==(const Type&, const Type&) = default;
};

Type ClassType(std::string name, std::vector<Type> args = {});
Type Primitive(std::string_view name);
Type ArrayOf(Type element);
// One of these: kUnknown when one of them is, the type when all are the same.
Type Either(std::vector<Type> types);
// int -> java.lang.Integer; other types stay.
Type Boxed(const Type& type);
// A wildcard as a value is read from it.
Type ReadFrom(const Type& type);

using Substitution = std::vector<std::pair<std::string, Type>>;
Type Substitute(const Type& type, const Substitution& with);

enum class Visibility : uint8_t { kPublic, kProtected, kPackage, kPrivate };

struct Member {
  enum class Kind : uint8_t { kField, kMethod, kConstructor, kType };
  Kind kind = Kind::kField;
  std::string name;
  bool is_static = false;
  bool is_abstract = false;
  bool is_constant = false;  // of an enum
  bool varargs = false;
  Visibility visibility = Visibility::kPublic;
  Type type;  // what it is, or returns
  std::vector<Type> parameters;
  std::vector<std::string> variables;  // type parameters of its own
};

struct SourceFile;

struct Class {
  std::string name;    // with its package and what it stands in, by dots
  std::string simple;  // without
  std::string package;
  std::string outer;  // the name of the class it stands in
  std::string top;    // the name of the outermost one
  bool is_interface = false;
  bool is_enum = false;
  bool is_abstract = false;
  bool is_static = false;
  bool open = false;        // has members that are not known
  bool unfinished = false;  // the cursor stands in it
  std::vector<std::string> variables;
  std::vector<Type> supers;
  std::vector<Member> members;
  bool head_read = false;  // the supers are there
  bool read = false;       // the members too
  // Of a source text.
  SourceFile* file = nullptr;
  const Node* node = nullptr;
};

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_TYPES_H_
