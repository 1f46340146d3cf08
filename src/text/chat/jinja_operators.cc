// Arithmetic and comparison with Python's rules: floored division, integers that turn into floats
// only by division, concatenation by "+" of what is of one kind. Integers have 64 bits; what does
// not fit is an error, never another number.
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
    return heap.String(std::move(out));
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
    MarkedText text = *a.string;
    text.Append(*b.string);
    return heap.String(std::move(text));
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

}  // namespace pawl::jinja
