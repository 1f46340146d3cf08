// Operators and tests of expressions.
//
// Arithmetic and comparison follow Python's rules: floored division, integers that turn into floats
// only by division, concatenation by "+" of what is of one kind. Integers have 64 bits; what does
// not fit is an error, never another number.
#include <algorithm>
#include <cmath>

#include "src/text/chat/jinja_program.h"

namespace pawl::jinja {

namespace {

const char* Sign(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSubtract:
      return "-";
    case Op::kMultiply:
      return "*";
    case Op::kDivide:
      return "/";
    case Op::kFloorDivide:
      return "//";
    case Op::kModulo:
      return "%";
    default:
      return "**";
  }
}

Value Integers(Heap& heap, Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::kFloorDivide:
    case Op::kModulo: {
      if (b == -1) {  // the one quotient that may not fit
        if (op == Op::kModulo) return Value::Integer(0);
        overflow = __builtin_sub_overflow(int64_t{0}, a, &result);
        break;
      }
      const int64_t rest = a % b, quotient = a / b;
      const bool floored = rest != 0 && (rest < 0) != (b < 0);
      result = op == Op::kModulo ? rest + (floored ? b : 0) : quotient - (floored ? 1 : 0);
      break;
    }
    default: {
      result = 1;
      if (a == 0 || a == 1) return Value::Integer(b == 0 ? 1 : a);
      if (a == -1) return Value::Integer(b % 2 == 0 ? 1 : -1);
      for (int64_t i = 0; i < b && !overflow; ++i) {
        overflow = __builtin_mul_overflow(result, a, &result);
      }
    }
  }
  if (overflow) heap.Fail(ErrorCode::kLimit, "an integer beyond 64 bits");
  return Value::Integer(result);
}

Value Floats(Heap& heap, Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::Float(a + b);
    case Op::kSubtract:
      return Value::Float(a - b);
    case Op::kMultiply:
      return Value::Float(a * b);
    case Op::kDivide:
      return Value::Float(a / b);
    case Op::kFloorDivide:
    case Op::kModulo: {
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) {
        rest += b;
        quotient -= 1;
      }
      if (rest == 0) rest = std::copysign(0.0, b);
      if (op == Op::kModulo) return Value::Float(rest);
      double floored = std::floor(quotient);
      if (quotient - floored > 0.5) floored += 1;
      return Value::Float(quotient == 0 ? std::copysign(0.0, a / b) : floored);
    }
    default: {
      const double power = std::pow(a, b);
      if (!std::isfinite(power) && std::isfinite(a) && std::isfinite(b)) {
        heap.Fail("the power is no number that fits");
      }
      return Value::Float(power);
    }
  }
}

// A string or list, several times.
Value Repeated(Heap& heap, const Value& value, int64_t times) {
  const auto size = static_cast<int64_t>(value.is_string() ? value.string->size() / 16 + 1
                                                           : value.list->items.size() + 1);
  int64_t steps = 0;
  if (__builtin_mul_overflow(size, times, &steps) || (times > 0 && !heap.Spend(steps))) {
    heap.Fail(ErrorCode::kLimit, "a repetition beyond the limit of steps");
    return {};
  }
  if (value.is_string()) {
    MarkedText out;
    for (int64_t i = 0; i < times; ++i) out.Append(*value.string);
    return heap.String(std::move(out)).SafeAs(value);
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < times; ++i) {
    items.insert(items.end(), value.list->items.begin(), value.list->items.end());
  }
  return heap.NewList(std::move(items), value.list->type);
}

bool IsPlainList(const Value& value) {
  return value.is_list() && value.list->type <= List::Type::kTuple;
}

}  // namespace

Value Arithmetic(Heap& heap, Op op, const Value& a, const Value& b) {
  if (op == Op::kConcat) {
    MarkedText text = ToText(heap, a);
    text.Append(ToText(heap, b));
    return heap.String(std::move(text));
  }
  if (a.is_number() && b.is_number()) {
    const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
    if ((divides && b.as_real() == 0) ||
        (op == Op::kPower && a.as_real() == 0 && b.as_real() < 0)) {
      heap.Fail("a division by zero");
      return {};
    }
    const bool integers = a.is_integer() && b.is_integer() && op != Op::kDivide &&
                          (op != Op::kPower || b.as_integer() >= 0);
    return integers ? Integers(heap, op, a.as_integer(), b.as_integer())
                    : Floats(heap, op, a.as_real(), b.as_real());
  }
  if (op == Op::kAdd && a.is_string() && b.is_string()) {
    // What is joined to a safe string is escaped.
    const bool safe = a.safe || b.safe;
    MarkedText text = safe && !a.safe ? EscapeHtml(*a.string) : *a.string;
    text.Append(safe && !b.safe ? EscapeHtml(*b.string) : *b.string);
    Value sum = heap.String(std::move(text));
    sum.safe = safe && sum.is_string();
    return sum;
  }
  if (op == Op::kAdd && IsPlainList(a) && IsPlainList(b) && a.list->type == b.list->type) {
    std::vector<Value> items = a.list->items;
    items.insert(items.end(), b.list->items.begin(), b.list->items.end());
    return heap.NewList(std::move(items), a.list->type);
  }
  if (op == Op::kMultiply && (a.is_string() || IsPlainList(a)) && b.is_integer()) {
    return Repeated(heap, a, b.as_integer());
  }
  if (op == Op::kMultiply && (b.is_string() || IsPlainList(b)) && a.is_integer()) {
    return Repeated(heap, b, a.as_integer());
  }
  std::string hint = "; expected two numbers";
  if (op == Op::kAdd) hint += ", two strings or two lists ('~' joins anything)";
  heap.Fail(op == Op::kModulo && a.is_string() ? ErrorCode::kUnsupported : ErrorCode::kInvalid,
            std::string("cannot apply '") + Sign(op) + "' to " + KindName(a) + " and " +
                KindName(b) + hint);
  return {};
}

bool Compare(Heap& heap, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEqual:
      return Equal(heap, a, b);
    case Op::kNotEqual:
      return !Equal(heap, a, b);
    case Op::kLess:
      return Less(heap, a, b);
    case Op::kGreater:
      return Less(heap, b, a);
    case Op::kLessEqual:
      return Less(heap, a, b) || Equal(heap, a, b);
    case Op::kGreaterEqual:
      return Less(heap, b, a) || Equal(heap, a, b);
    case Op::kIn:
      return Contains(heap, b, a);
    default:
      return !Contains(heap, b, a);
  }
}

// The tests of "is".

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
