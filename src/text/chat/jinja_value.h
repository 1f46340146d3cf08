// The values that a chat template computes with: Python's, as far as templates need them. Internal
// to src/text/chat.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_VALUE_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_VALUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {

struct List;
struct Dict;
struct Loop;
struct MacroValue;

// A handle of 16 bytes; what it points to lives in the Heap of one rendering.
struct Value {
  enum class Kind : uint8_t {
    kUndefined,  // `string` names what was looked up, or is nullptr
    kNone,
    kBool,
    kInteger,
    kFloat,
    kBigInteger,  // beyond 64 bits: its digits; it can be shown and compared, not computed with
    kString,
    kList,
    kDict,
    kLoop,  // the variable of a for
    kMacro,
    kFunction,  // a global function: its number
    kMethod,    // one that was named but not called; true, and nothing else
  };
  Kind kind = Kind::kUndefined;
  bool safe =
      false;  // of a string: escaped for HTML, as the filter `safe` says (markupsafe.Markup)
  union {
    int64_t integer;
    bool boolean;
    double real;
    const MarkedText* string;
    List* list;
    Dict* dict;
    Loop* loop;
    MacroValue* macro;
  };

  Value() : string(nullptr) {}
  static Value None() { return Of(Kind::kNone); }
  static Value Bool(bool value) {
    Value v = Of(Kind::kBool);
    v.boolean = value;
    return v;
  }
  static Value Integer(int64_t value) {
    Value v = Of(Kind::kInteger);
    v.integer = value;
    return v;
  }
  static Value Float(double value) {
    Value v = Of(Kind::kFloat);
    v.real = value;
    return v;
  }
  static Value String(const MarkedText* text) {
    Value v = Of(Kind::kString);
    v.string = text;
    return v;
  }
  static Value Function(int64_t number) {
    Value v = Of(Kind::kFunction);
    v.integer = number;
    return v;
  }
  static Value Of(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }

  // This string, safe where `other` is.
  Value SafeAs(const Value& other) const {
    Value v = *this;
    v.safe = v.is_string() && other.is_string() && other.safe;
    return v;
  }

  bool is(Kind k) const { return kind == k; }
  bool undefined() const { return kind == Kind::kUndefined; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_dict() const { return kind == Kind::kDict; }
  // As Python counts them: a bool is an integer.
  bool is_number() const {
    return kind == Kind::kBool || kind == Kind::kInteger || kind == Kind::kFloat;
  }
  bool is_integer() const { return kind == Kind::kBool || kind == Kind::kInteger; }
  int64_t as_integer() const { return kind == Kind::kBool ? (boolean ? 1 : 0) : integer; }
  double as_real() const { return kind == Kind::kFloat ? real : static_cast<double>(as_integer()); }
};

struct List {
  enum class Type : uint8_t {
    kList,
    kTuple,
    kRange,
    kView,       // of a dictionary: has a length, but no positions
    kGenerator,  // can be gone through once, and is true
  };
  Type type = Type::kList;
  std::vector<Value> items;
};

struct Dict {
  bool is_namespace = false;
  std::vector<std::pair<Value, Value>> entries;  // in the order of insertion

  // The value of a key that is a string; nullptr when absent.
  const Value* Find(std::string_view key) const;
};

struct Loop {
  std::vector<Value> items;
  size_t next = 0;        // of the item that comes next
  size_t kept = 0;        // while a condition is applied: items that passed
  bool finished = false;  // some round came to its end
};

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
};

struct MacroValue {
  int32_t index = 0;       // into the program's macros
  Scope* scope = nullptr;  // that it was defined in
};

// Owns the values of one rendering, counts its steps and keeps its first error. Not thread-safe.
class Heap {
 public:
  explicit Heap(int64_t fuel) : fuel_(fuel) {}

  // False, with an error, when the steps are used up.
  bool Spend(int64_t steps);
  // Steps for a text of that size.
  bool SpendBytes(size_t bytes) { return Spend(static_cast<int64_t>(bytes / 16) + 1); }
  void Fail(ErrorCode code, std::string message);
  void Fail(std::string message) { Fail(ErrorCode::kInvalid, std::move(message)); }
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  // Undefined when steps or memory are used up, as all that follows.
  Value String(MarkedText text);
  Value String(std::string text) { return String(MarkedText(std::move(text))); }
  Value NewList(std::vector<Value> items, List::Type type = List::Type::kList);
  Value NewDict(std::vector<std::pair<Value, Value>> entries, bool is_namespace = false);
  // `name` must outlive the heap's values; for messages.
  Value UndefinedOf(std::string_view name);
  Loop* NewLoop() { return &loops_.emplace_back(); }
  Scope* NewScope(Scope* parent);
  Value NewMacro(int32_t index, Scope* scope);
  // Strings are data. `roles`: a role of a message that is one of the well known ones is not.
  Value FromJson(const json::Value& value, bool roles);

 private:
  int64_t fuel_;
  std::optional<Error> error_;
  std::deque<MarkedText> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
  std::deque<MacroValue> macros_;
};

// "a string", "a list", ...; for messages.
std::string KindName(const Value& value);
bool Truth(const Value& value);
// Python's ==. Spends steps.
bool Equal(Heap& heap, const Value& a, const Value& b);
// Python's < of numbers and of strings. Errors else.
bool Less(Heap& heap, const Value& a, const Value& b);
bool Contains(Heap& heap, const Value& container, const Value& item);

// As Python's str() shows it. Errors for values that have no fixed text.
MarkedText ToText(Heap& heap, const Value& value);

struct JsonStyle {
  std::optional<MarkedText> indent;  // a level's; none: one line
  MarkedText item_separator{", "}, key_separator{": "};
  bool ensure_ascii = false;
  bool sort_keys = false;
};
// As Python's json.dumps writes it.
MarkedText ToJson(Heap& heap, const Value& value, const JsonStyle& style);

// The items of a list, keys of a dictionary, characters of a string; nothing of undefined. Empties
// a generator. Errors else.
std::vector<Value> Iterate(Heap& heap, const Value& value);
// nullopt, without an error, when the value has no length.
std::optional<size_t> LengthOf(const Value& value);

// value[key]; undefined when there is none.
Value Item(Heap& heap, const Value& value, const Value& key);
// value.name; undefined when there is none.
Value Attribute(Heap& heap, const Value& value, std::string_view name);
Value SliceOf(Heap& heap, const Value& value, const Value& begin, const Value& end,
              const Value& step);
// Whether values of this kind have the method, so that `value.name` is not undefined.
bool HasMethod(const Value& value, std::string_view name);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_VALUE_H_
