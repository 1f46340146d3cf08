// The tests of "is".
#include <algorithm>

#include "src/text/chat/jinja_program.h"

namespace pawl::jinja {
namespace {

using Kind = Value::Kind;

// value % by == rest, as Python computes it.
bool HasRest(Heap& heap, const char* name, const Value& value, const Value& by, int64_t rest) {
  if (!value.is_number() || !by.is_number()) {
    heap.Fail(std::string("'is ") + name + "' needs numbers; found " + KindName(value));
    return false;
  }
  const Value found = Arithmetic(heap, Op::kModulo, value, by);
  return !heap.failed() && found.as_real() == static_cast<double>(rest);
}

bool Defined(Heap&, const Value& v, const Arguments&) { return !v.undefined(); }
bool Undefined(Heap&, const Value& v, const Arguments&) { return v.undefined(); }
bool None(Heap&, const Value& v, const Arguments&) { return v.is(Kind::kNone); }
bool IsString(Heap&, const Value& v, const Arguments&) { return v.is_string(); }
bool Mapping(Heap&, const Value& v, const Arguments&) {
  return v.is_dict() && !v.dict->is_namespace;
}
bool Iterable(Heap&, const Value& v, const Arguments&) {
  return v.is_string() || v.is_list() || v.undefined() || v.is(Kind::kLoop) ||
         (v.is_dict() && !v.dict->is_namespace);
}
bool Sequence(Heap&, const Value& v, const Arguments&) {
  return v.is_string() || v.undefined() || (v.is_dict() && !v.dict->is_namespace) ||
         (v.is_list() && v.list->type <= List::Type::kRange);
}
bool Number(Heap&, const Value& v, const Arguments&) {
  return v.is_number() || v.is(Kind::kBigInteger);
}
bool Integer(Heap&, const Value& v, const Arguments&) {
  return v.is(Kind::kInteger) || v.is(Kind::kBigInteger);
}
bool Float(Heap&, const Value& v, const Arguments&) { return v.is(Kind::kFloat); }
bool Boolean(Heap&, const Value& v, const Arguments&) { return v.is(Kind::kBool); }
bool True(Heap&, const Value& v, const Arguments&) { return v.is(Kind::kBool) && v.boolean; }
bool False(Heap&, const Value& v, const Arguments&) { return v.is(Kind::kBool) && !v.boolean; }
bool Callable(Heap&, const Value& v, const Arguments&) {
  // The reference's undefined value can be called, if only to fail.
  return v.is(Kind::kUndefined) || v.is(Kind::kMacro) || v.is(Kind::kFunction) ||
         v.is(Kind::kMethod);
}
bool Odd(Heap& heap, const Value& v, const Arguments&) {
  return HasRest(heap, "odd", v, Value::Integer(2), 1);
}
bool Even(Heap& heap, const Value& v, const Arguments&) {
  return HasRest(heap, "even", v, Value::Integer(2), 0);
}
bool DivisibleBy(Heap& heap, const Value& v, const Arguments& arguments) {
  return HasRest(heap, "divisibleby", v, arguments.positional[0], 0);
}
bool SameAs(Heap&, const Value& v, const Arguments& arguments) {
  const Value& other = arguments.positional[0];
  if (v.kind != other.kind) return false;
  if (v.is(Kind::kBool)) return v.boolean == other.boolean;
  return v.is(Kind::kNone) || v.integer == other.integer;
}
bool InTest(Heap& heap, const Value& v, const Arguments& arguments) {
  return Contains(heap, arguments.positional[0], v);
}
template <Op op>
bool Compared(Heap& heap, const Value& v, const Arguments& arguments) {
  return Compare(heap, op, v, arguments.positional[0]);
}

}  // namespace

const std::vector<TestEntry>& Tests() {
  static const std::vector<TestEntry> table = {
      {"defined", Defined, 0},
      {"undefined", Undefined, 0},
      {"none", None, 0},
      {"string", IsString, 0},
      {"mapping", Mapping, 0},
      {"iterable", Iterable, 0},
      {"sequence", Sequence, 0},
      {"number", Number, 0},
      {"integer", Integer, 0},
      {"float", Float, 0},
      {"boolean", Boolean, 0},
      {"true", True, 0},
      {"false", False, 0},
      {"callable", Callable, 0},
      {"odd", Odd, 0},
      {"even", Even, 0},
      {"divisibleby", DivisibleBy, 1},
      {"sameas", SameAs, 1},
      {"in", InTest, 1},
      {"eq", Compared<Op::kEqual>, 1},
      {"equalto", Compared<Op::kEqual>, 1},
      {"==", Compared<Op::kEqual>, 1},
      {"ne", Compared<Op::kNotEqual>, 1},
      {"!=", Compared<Op::kNotEqual>, 1},
      {"lt", Compared<Op::kLess>, 1},
      {"lessthan", Compared<Op::kLess>, 1},
      {"<", Compared<Op::kLess>, 1},
      {"le", Compared<Op::kLessEqual>, 1},
      {"<=", Compared<Op::kLessEqual>, 1},
      {"gt", Compared<Op::kGreater>, 1},
      {"greaterthan", Compared<Op::kGreater>, 1},
      {">", Compared<Op::kGreater>, 1},
      {"ge", Compared<Op::kGreaterEqual>, 1},
      {">=", Compared<Op::kGreaterEqual>, 1},
  };
  return table;
}

int32_t FindTest(std::string_view name) {
  const auto& table = Tests();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const TestEntry& entry) { return name == entry.name; });
  return found == table.end() ? -1 : static_cast<int32_t>(found - table.begin());
}

bool ApplyTest(Heap& heap, int32_t test, const Value& value, const Arguments& arguments) {
  const TestEntry& entry = Tests()[static_cast<size_t>(test)];
  if (arguments.count != entry.arguments || !arguments.names->empty()) {
    heap.Fail(std::string("the test '") + entry.name + "' takes " +
              std::to_string(entry.arguments) + " arguments, found " +
              std::to_string(arguments.count + arguments.names->size()));
    return false;
  }
  return entry.function(heap, value, arguments);
}

}  // namespace pawl::jinja
