// The filters on single values, and the table of all.
#include "src/text/chat/jinja_filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "src/text/chat/jinja_program.h"
#include "src/text/chat/jinja_text.h"

namespace pawl::jinja {
namespace {

using Kind = Value::Kind;

bool Given(const Value* value) { return value != nullptr && !value->is(Kind::kNone); }

Value Default(Heap& heap, const Value& value, const Arguments& arguments) {
  const bool replace =
      value.undefined() || (TruthOf(arguments.Find(1, "boolean")) && !Truth(value));
  if (!replace) return value;
  const Value* otherwise = arguments.Find(0, "default_value");
  return otherwise == nullptr ? heap.String("") : *otherwise;
}

Value String(Heap& heap, const Value& value, const Arguments&) {
  return value.is_string() ? value : heap.String(ToText(heap, value));
}
Value Safe(Heap& heap, const Value& value, const Arguments& arguments) {
  return String(heap, value, arguments);
}

Value Trim(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* set = arguments.Find(0, "chars");
  if (Given(set) && !set->is_string()) {
    heap.Fail("trim: expected a string of characters, found " + KindName(*set));
    return {};
  }
  return heap.String(Strip(ToText(heap, value), Given(set) ? set->string : nullptr, true, true));
}

template <Case how>
Value Cased(Heap& heap, const Value& value, const Arguments&) {
  std::optional<MarkedText> mapped = WithCase(ToText(heap, value), how);
  if (mapped) return heap.String(*std::move(mapped));
  heap.Fail(ErrorCode::kUnsupported, "the text has a letter whose case is not mapped");
  return {};
}

Value ReplaceFilter(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* from = arguments.Find(0, "old");
  const Value* to = arguments.Find(1, "new");
  const Value* count = arguments.Find(2, "count");
  if (from == nullptr || to == nullptr || (Given(count) && !count->is_integer())) {
    heap.Fail("replace: expected what to replace, by what, and perhaps how often");
    return {};
  }
  const MarkedText text = ToText(heap, value), old = ToText(heap, *from), by = ToText(heap, *to);
  const size_t growth = by.size() / std::max<size_t>(old.size(), 1) + 1;
  if (heap.failed() || !heap.SpendBytes(text.size() * growth / 16)) return {};
  return heap.String(Replace(text, old, by, Given(count) ? count->as_integer() : -1));
}

Value Indent(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* width = arguments.Find(0, "width");
  MarkedText by(std::string(4, ' '));
  if (width != nullptr && width->is_string()) {
    by = *width->string;
  } else if (width != nullptr) {
    const int64_t blanks = width->is_integer() ? width->as_integer() : -1;
    if (!width->is_integer() || blanks > 10000) {
      heap.Fail("indent: expected a string or at most 10000 blanks, found " + KindName(*width));
      return {};
    }
    by = MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(blanks, 0)), ' '));
  }
  if (!value.is_string()) {
    heap.Fail("indent: expected a string, found " + KindName(value));
    return {};
  }
  const bool blank = TruthOf(arguments.Find(2, "blank"));
  MarkedText text = *value.string;
  text.Append("\n");
  MarkedText out;
  if (TruthOf(arguments.Find(1, "first"))) out.Append(by);
  bool first = true;
  for (const MarkedText& line : SplitLines(text, false)) {
    if (!first) {
      out.Append("\n");
      if (blank || !line.empty()) out.Append(by);
      if (!heap.SpendBytes(by.size())) return {};
    }
    first = false;
    out.Append(line);
  }
  return heap.String(std::move(out));
}

Value ToJsonFilter(Heap& heap, const Value& value, const Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = TruthOf(arguments.Find(0, "ensure_ascii"));
  const Value* indent = arguments.Find(1, "indent");
  if (Given(indent)) {
    if (indent->is_string()) {
      style.indent = *indent->string;
    } else if (indent->is_integer() && indent->as_integer() <= 100) {
      style.indent = MarkedText(
          std::string(static_cast<size_t>(std::max<int64_t>(indent->as_integer(), 0)), ' '));
    } else {
      heap.Fail("tojson: the indent must be a string or at most 100 blanks, found " +
                KindName(*indent));
      return {};
    }
    style.item_separator = MarkedText(",");
  }
  const Value* separators = arguments.Find(2, "separators");
  if (Given(separators)) {
    const bool pair = separators->is_list() && separators->list->items.size() == 2 &&
                      separators->list->items[0].is_string() &&
                      separators->list->items[1].is_string();
    if (!pair) {
      heap.Fail("tojson: the separators must be two strings");
      return {};
    }
    style.item_separator = *separators->list->items[0].string;
    style.key_separator = *separators->list->items[1].string;
  }
  style.sort_keys = TruthOf(arguments.Find(3, "sort_keys"));
  return heap.String(ToJson(heap, value, style));
}

// A decimal integer as Python's int() reads it.
std::optional<int64_t> ParseInteger(std::string_view text) {
  const MarkedText stripped = Strip(MarkedText(std::string(text)), nullptr, true, true);
  std::string digits;
  const std::string& all = stripped.bytes();
  const size_t sign = !all.empty() && (all[0] == '-' || all[0] == '+') ? 1 : 0;
  for (size_t i = sign; i < all.size(); ++i) {
    const bool digit = all[i] >= '0' && all[i] <= '9';
    const bool joins = all[i] == '_' && i > sign && all[i - 1] != '_' && i + 1 < all.size();
    if (!digit && !joins) return std::nullopt;
    if (digit) digits += all[i];
  }
  if (sign == 1 && all[0] == '-') digits.insert(0, "-");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseFloat(std::string_view text) {
  const MarkedText stripped = Strip(MarkedText(std::string(text)), nullptr, true, true);
  const std::string& all = stripped.bytes();
  // strtod would also read hexadecimal numbers and words.
  if (all.empty() || all.find_first_not_of("0123456789.eE+-") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(all.c_str(), &end);
  if (end != all.c_str() + all.size()) return std::nullopt;
  return value;
}

Value IntFilter(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* base = arguments.Find(1, "base");
  if (base != nullptr && !(base->is(Kind::kInteger) && base->integer == 10)) {
    heap.Fail(ErrorCode::kUnsupported, "int: only base 10 is supported");
    return {};
  }
  std::optional<double> real;
  if (value.is_integer()) return Value::Integer(value.as_integer());
  if (value.is(Kind::kBigInteger)) return value;
  if (value.is(Kind::kFloat)) real = value.real;
  if (value.is(Kind::kUndefined)) {
    // The default is for what is no number, not for what is not there.
    heap.Fail("int: expected a value, found " + KindName(value));
    return {};
  }
  if (value.is_string()) {
    if (const std::optional<int64_t> integer = ParseInteger(value.string->bytes())) {
      return Value::Integer(*integer);
    }
    real = ParseFloat(value.string->bytes());
  }
  if (real && std::isfinite(*real)) {
    if (std::fabs(*real) < 9.2e18) return Value::Integer(static_cast<int64_t>(*real));
    heap.Fail(ErrorCode::kLimit, "an integer beyond 64 bits");
    return {};
  }
  const Value* otherwise = arguments.Find(0, "default");
  return otherwise == nullptr ? Value::Integer(0) : *otherwise;
}

Value FloatFilter(Heap& heap, const Value& value, const Arguments& arguments) {
  if (value.is(Kind::kUndefined)) {
    heap.Fail("float: expected a value, found " + KindName(value));
    return {};
  }
  if (value.is_number()) return Value::Float(value.as_real());
  if (value.is_string() || value.is(Kind::kBigInteger)) {
    if (const std::optional<double> real = ParseFloat(value.string->bytes()))
      return Value::Float(*real);
  }
  const Value* otherwise = arguments.Find(0, "default");
  return otherwise == nullptr ? Value::Float(0) : *otherwise;
}

Value Abs(Heap& heap, const Value& value, const Arguments&) {
  if (value.is(Kind::kFloat)) return Value::Float(std::fabs(value.real));
  if (value.is_integer()) {
    return value.as_integer() < 0 ? Arithmetic(heap, Op::kSubtract, Value::Integer(0), value)
                                  : Value::Integer(value.as_integer());
  }
  heap.Fail("abs: expected a number, found " + KindName(value));
  return {};
}

Value Length(Heap& heap, const Value& value, const Arguments&) {
  if (value.is_string()) heap.SpendBytes(value.string->size());
  if (const std::optional<size_t> length = LengthOf(value)) {
    return Value::Integer(static_cast<int64_t>(*length));
  }
  heap.Fail("length: expected a string, a list or a mapping, found " + KindName(value));
  return {};
}

}  // namespace

const std::vector<FilterEntry>& Filters() {
  static const std::vector<FilterEntry> table = [] {
    std::vector<FilterEntry> all = {
        {"abs", Abs, 0, {}},
        {"capitalize", Cased<Case::kCapitalize>, 0, {}},
        {"count", Length, 0, {}},
        {"d", Default, 2, {"default_value", "boolean"}},
        {"default", Default, 2, {"default_value", "boolean"}},
        {"float", FloatFilter, 1, {"default"}},
        {"indent", Indent, 3, {"width", "first", "blank"}},
        {"int", IntFilter, 2, {"default", "base"}},
        {"length", Length, 0, {}},
        {"lower", Cased<Case::kLower>, 0, {}},
        {"replace", ReplaceFilter, 3, {"old", "new", "count"}},
        {"safe", Safe, 0, {}},
        {"string", String, 0, {}},
        {"title", Cased<Case::kJinjaTitle>, 0, {}},
        {"tojson", ToJsonFilter, 4, {"ensure_ascii", "indent", "separators", "sort_keys"}},
        {"trim", Trim, 1, {"chars"}},
        {"upper", Cased<Case::kUpper>, 0, {}},
    };
    for (FilterEntry& entry : SequenceFilters()) all.push_back(std::move(entry));
    std::sort(all.begin(), all.end(), [](const FilterEntry& a, const FilterEntry& b) {
      return std::string_view(a.name) < b.name;
    });
    return all;
  }();
  return table;
}

int32_t FindFilter(std::string_view name) {
  const auto& table = Filters();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const FilterEntry& entry) { return name == entry.name; });
  return found == table.end() ? -1 : static_cast<int32_t>(found - table.begin());
}

Value ApplyFilter(Heap& heap, int32_t filter, const Value& value, const Arguments& arguments) {
  const FilterEntry& entry = Filters()[static_cast<size_t>(filter)];
  const bool any = entry.most_arguments == SIZE_MAX;
  bool good = arguments.count <= entry.most_arguments;
  for (const std::string& name : *arguments.names) {
    const auto known = std::find(entry.keywords.begin(), entry.keywords.end(), name);
    good =
        good && (any || (known != entry.keywords.end() &&
                         static_cast<size_t>(known - entry.keywords.begin()) >= arguments.count));
  }
  if (!good) {
    std::string names;
    for (const char* name : entry.keywords)
      names += (names.empty() ? "" : ", ") + std::string(name);
    heap.Fail(std::string("the filter '") + entry.name + "' takes " +
              (names.empty() ? "no arguments" : "the arguments " + names));
    return {};
  }
  return entry.function(heap, value, arguments);
}

}  // namespace pawl::jinja
