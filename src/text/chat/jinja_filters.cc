// The filters: those on lists and mappings, those on single values, and the table of all. What
// Jinja answers lazily is a list here that can be gone through once, as there.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "src/base/json.h"
#include "src/text/chat/jinja_program.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {

namespace {

using Kind = Value::Kind;

Value Generator(Heap& heap, std::vector<Value> items) {
  return heap.NewList(std::move(items), List::Type::kGenerator);
}

// item.a.b for the attribute "a.b", item[0] for 0; of text for filters that ignore case, in lower
// case.
class Getter {
 public:
  // No attribute: the item itself.
  Getter(Heap& heap, const Value* attribute) : heap_(heap) {
    if (attribute == nullptr || attribute->is(Kind::kNone)) return;
    if (attribute->is_integer()) {
      parts_.push_back(*attribute);
      return;
    }
    if (!attribute->is_string()) {
      heap.Fail("the attribute must be a name or a number, found " + KindName(*attribute));
      return;
    }
    const MarkedText dot(".");
    for (MarkedText& part : Split(*attribute->string, &dot, -1, false)) {
      const std::string& text = part.bytes();
      const bool number = !text.empty() && text.size() < 10 &&
                          text.find_first_not_of("0123456789") == std::string::npos;
      parts_.push_back(number ? Value::Integer(std::stol(text)) : heap.String(std::move(part)));
    }
  }

  Value Of(Value item) const {
    for (const Value& part : parts_) item = Item(heap_, item, part);
    return item;
  }
  Value KeyOf(const Value& item, bool ignore_case) const {
    const Value value = Of(item);
    if (!ignore_case || !value.is_string()) return value;
    std::optional<MarkedText> lower = WithCase(*value.string, Case::kLower);
    if (lower) return heap_.String(*std::move(lower));
    heap_.Fail(ErrorCode::kUnsupported, "the text has a letter whose case is not mapped");
    return {};
  }

 private:
  Heap& heap_;
  std::vector<Value> parts_;
};

Value ListFilter(Heap& heap, const Value& value, const Arguments&) {
  return heap.NewList(Iterate(heap, value));
}

Value First(Heap& heap, const Value& value, const Arguments&) {
  if (value.is_list() && value.list->type == List::Type::kGenerator) {
    std::vector<Value>& items = value.list->items;
    if (items.empty()) return heap.UndefinedOf("the first item of nothing");
    const Value first = items.front();
    items.erase(items.begin());
    return first;
  }
  const std::vector<Value> items = Iterate(heap, value);
  return items.empty() ? heap.UndefinedOf("the first item of nothing") : items.front();
}

Value Last(Heap& heap, const Value& value, const Arguments&) {
  if (value.is_list() && value.list->type == List::Type::kGenerator) {
    heap.Fail("last: expected a list, found " + KindName(value));
    return {};
  }
  if (value.undefined()) {
    heap.Fail("last: expected a list, found " + KindName(value));
    return {};
  }
  const std::vector<Value> items = Iterate(heap, value);
  return items.empty() ? heap.UndefinedOf("the last item of nothing") : items.back();
}

Value Items(Heap& heap, const Value& value, const Arguments&) {
  std::vector<Value> items;
  if (value.is_dict() && !value.dict->is_namespace) {
    for (const auto& [key, member] : value.dict->entries) {
      items.push_back(heap.NewList({key, member}, List::Type::kTuple));
    }
  } else if (!value.undefined()) {
    heap.Fail("items: expected a mapping, found " + KindName(value));
  }
  return Generator(heap, std::move(items));
}

Value Join(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* separator = arguments.Find(0, "d");
  const MarkedText between = separator == nullptr ? MarkedText() : ToText(heap, *separator);
  const Getter getter(heap, arguments.Find(1, "attribute"));
  MarkedText out;
  bool first = true;
  for (const Value& item : Iterate(heap, value)) {
    if (!first) out.Append(between);
    first = false;
    const MarkedText text = ToText(heap, getter.Of(item));
    out.Append(text);
    if (!heap.SpendBytes(text.size() + between.size())) return {};
  }
  return heap.String(std::move(out));
}

// A filter or test that is named by a string, for use on each item.
int32_t Named(Heap& heap, const Value& name, bool filter) {
  const char* what = filter ? "filter" : "test";
  if (!name.is_string()) {
    heap.Fail(std::string("expected the name of a ") + what + ", found " + KindName(name));
    return -1;
  }
  const std::string& text = name.string->bytes();
  const int32_t found = filter ? FindFilter(text) : FindTest(text);
  for (const char* nested : {"map", "select", "reject", "selectattr", "rejectattr"}) {
    if (filter && text == nested) {
      heap.Fail(ErrorCode::kUnsupported,
                "map: the filter '" + text + "' is not supported inside of it");
      return -1;
    }
  }
  if (found < 0) {
    heap.Fail(ErrorCode::kUnsupported,
              std::string("there is no ") + what + " " + json::Quote(text.substr(0, 60)));
  }
  return found;
}

Value Map(Heap& heap, const Value& value, const Arguments& arguments) {
  if (!Truth(value)) return Generator(heap, {});  // whatever it is, as in Jinja
  std::vector<Value> items;
  if (arguments.count == 0) {
    const Value* attribute = arguments.Find(0, "attribute");
    const Value* otherwise = arguments.Find(9, "default");
    const size_t known = (attribute != nullptr ? 1U : 0U) + (otherwise != nullptr ? 1U : 0U);
    if (attribute == nullptr || known != arguments.names->size()) {
      heap.Fail("map: expected the name of a filter, or attribute=... and perhaps default=...");
      return {};
    }
    const Getter getter(heap, attribute);
    for (const Value& item : Iterate(heap, value)) {
      const Value got = getter.Of(item);
      items.push_back(got.undefined() && otherwise != nullptr ? *otherwise : got);
      if (heap.failed()) return {};
    }
    return Generator(heap, std::move(items));
  }
  const int32_t filter = Named(heap, arguments.positional[0], true);
  if (filter < 0) return {};
  const Arguments rest{arguments.positional + 1, arguments.count - 1, arguments.names,
                       arguments.named};
  for (const Value& item : Iterate(heap, value)) {
    items.push_back(ApplyFilter(heap, filter, item, rest));
    if (heap.failed()) return {};
  }
  return Generator(heap, std::move(items));
}

// select, reject, selectattr, rejectattr.
template <bool keep, bool attribute>
Value Select(Heap& heap, const Value& value, const Arguments& arguments) {
  constexpr size_t kBefore = attribute ? 1 : 0;
  if (arguments.count < kBefore || !arguments.names->empty()) {
    heap.Fail(attribute ? "selectattr, rejectattr: expected an attribute and perhaps a test"
                        : "select, reject: expected a test or nothing");
    return {};
  }
  if (!Truth(value)) return Generator(heap, {});  // whatever it is, as in Jinja
  const Getter getter(heap, attribute ? arguments.positional : nullptr);
  int32_t test = -1;
  Arguments rest{arguments.positional, 0, arguments.names, arguments.named};
  if (arguments.count > kBefore) {
    test = Named(heap, arguments.positional[kBefore], false);
    if (test < 0) return {};
    rest.positional = arguments.positional + kBefore + 1;
    rest.count = arguments.count - kBefore - 1;
  }
  std::vector<Value> items;
  for (const Value& item : Iterate(heap, value)) {
    const Value got = getter.Of(item);
    const bool passes = test < 0 ? Truth(got) : ApplyTest(heap, test, got, rest);
    if (passes == keep) items.push_back(item);
    if (heap.failed()) return {};
  }
  return Generator(heap, std::move(items));
}

Value Reverse(Heap& heap, const Value& value, const Arguments&) {
  if (value.is_string()) {
    return SliceOf(heap, value, Value::None(), Value::None(), Value::Integer(-1));
  }
  std::vector<Value> items = Iterate(heap, value);
  std::reverse(items.begin(), items.end());
  const bool list =
      value.undefined() || (value.is_list() && value.list->type == List::Type::kGenerator);
  return list ? heap.NewList(std::move(items)) : Generator(heap, std::move(items));
}

// min, max: of equal ones the first.
template <bool largest>
Value Extreme(Heap& heap, const Value& value, const Arguments& arguments) {
  const bool ignore_case = !TruthOf(arguments.Find(0, "case_sensitive"));
  const Getter getter(heap, arguments.Find(1, "attribute"));
  const std::vector<Value> items = Iterate(heap, value);
  if (items.empty()) return heap.UndefinedOf("an item of nothing");
  Value best = items.front(), best_key = getter.KeyOf(best, ignore_case);
  for (size_t i = 1; i < items.size() && !heap.failed(); ++i) {
    const Value key = getter.KeyOf(items[i], ignore_case);
    if (!(largest ? Less(heap, best_key, key) : Less(heap, key, best_key))) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

// Stable, by keys; equal ones keep their order also in reverse.
void SortByKeys(Heap& heap, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  if (!heap.Spend(static_cast<int64_t>(keyed.size()))) return;
  // An order that is none would confuse the algorithm, so the keys are looked at beforehand.
  for (size_t i = 1; i < keyed.size() && !heap.failed(); ++i) {
    Less(heap, keyed[i - 1].first, keyed[i].first);
    const Value& key = keyed[i].first;
    if (key.is(Kind::kFloat) && key.real != key.real) heap.Fail("cannot order what is no number");
  }
  if (heap.failed()) return;
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return !heap.failed() &&
           (reverse ? Less(heap, b.first, a.first) : Less(heap, a.first, b.first));
  });
}

Value Sort(Heap& heap, const Value& value, const Arguments& arguments) {
  const bool reverse = TruthOf(arguments.Find(0, "reverse"));
  const bool ignore_case = !TruthOf(arguments.Find(1, "case_sensitive"));
  const Value* attribute = arguments.Find(2, "attribute");
  if (attribute != nullptr && attribute->is_string() &&
      attribute->string->bytes().find(',') != std::string::npos) {
    heap.Fail(ErrorCode::kUnsupported, "sort: several attributes are not supported");
    return {};
  }
  const Getter getter(heap, attribute);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : Iterate(heap, value)) {
    keyed.emplace_back(getter.KeyOf(item, ignore_case), item);
    if (heap.failed()) return {};
  }
  SortByKeys(heap, keyed, reverse);
  std::vector<Value> items;
  for (const auto& [key, item] : keyed) items.push_back(item);
  return heap.NewList(std::move(items));
}

Value DictSort(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* by = arguments.Find(1, "by");
  const bool by_value = by != nullptr && by->is_string() && by->string->bytes() == "value";
  if (!value.is_dict() || value.dict->is_namespace ||
      (by != nullptr && !by_value && !(by->is_string() && by->string->bytes() == "key"))) {
    heap.Fail("dictsort: expected a mapping, and by \"key\" or \"value\"");
    return {};
  }
  const bool ignore_case = !TruthOf(arguments.Find(0, "case_sensitive"));
  const Getter getter(heap, nullptr);
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, member] : value.dict->entries) {
    keyed.emplace_back(getter.KeyOf(by_value ? member : key, ignore_case),
                       heap.NewList({key, member}, List::Type::kTuple));
    if (heap.failed()) return {};
  }
  SortByKeys(heap, keyed, TruthOf(arguments.Find(2, "reverse")));
  std::vector<Value> items;
  for (const auto& [key, item] : keyed) items.push_back(item);
  return heap.NewList(std::move(items));
}

Value Unique(Heap& heap, const Value& value, const Arguments& arguments) {
  const bool ignore_case = !TruthOf(arguments.Find(0, "case_sensitive"));
  const Getter getter(heap, arguments.Find(1, "attribute"));
  std::vector<Value> keys, items;
  for (const Value& item : Iterate(heap, value)) {
    const Value key = getter.KeyOf(item, ignore_case);
    if (key.is_list() || key.is_dict()) {
      heap.Fail("unique: cannot compare " + KindName(key));
    }
    bool seen = false;
    for (const Value& known : keys) {
      seen = seen || Equal(heap, known, key);
    }
    if (heap.failed()) return {};
    if (seen) continue;
    keys.push_back(key);
    items.push_back(item);
  }
  return Generator(heap, std::move(items));
}

Value Batch(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* count = arguments.Find(0, "linecount");
  const Value* fill = arguments.Find(1, "fill_with");
  if (count == nullptr || !count->is_integer() || count->as_integer() < 1) {
    heap.Fail("batch: expected how many items a batch has");
    return {};
  }
  const auto size = static_cast<size_t>(count->as_integer());
  const bool fills = fill != nullptr && !fill->is(Kind::kNone);
  std::vector<Value> batches, batch;
  const auto finish = [&] { batches.push_back(heap.NewList(std::exchange(batch, {}))); };
  for (const Value& item : Iterate(heap, value)) {
    if (batch.size() == size) finish();
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (fills && !heap.Spend(static_cast<int64_t>(size - batch.size()))) return {};
    while (fills && batch.size() < size) batch.push_back(*fill);
    finish();
  }
  return Generator(heap, std::move(batches));
}

}  // namespace

std::vector<FilterEntry> SequenceFilters() {
  // What takes tests or filters with arguments of their own checks them itself.
  constexpr size_t kAny = SIZE_MAX;
  return {
      {"batch", Batch, 2, {"linecount", "fill_with"}},
      {"dictsort", DictSort, 3, {"case_sensitive", "by", "reverse"}},
      {"first", First, 0, {}},
      {"items", Items, 0, {}},
      {"join", Join, 2, {"d", "attribute"}},
      {"last", Last, 0, {}},
      {"list", ListFilter, 0, {}},
      {"map", Map, kAny, {}},
      {"max", Extreme<true>, 2, {"case_sensitive", "attribute"}},
      {"min", Extreme<false>, 2, {"case_sensitive", "attribute"}},
      {"reject", Select<false, false>, kAny, {}},
      {"rejectattr", Select<false, true>, kAny, {}},
      {"reverse", Reverse, 0, {}},
      {"select", Select<true, false>, kAny, {}},
      {"selectattr", Select<true, true>, kAny, {}},
      {"sort", Sort, 3, {"reverse", "case_sensitive", "attribute"}},
      {"unique", Unique, 2, {"case_sensitive", "attribute"}},
  };
}

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
  Value safe = String(heap, value, arguments);
  safe.safe = safe.is_string();
  return safe;
}

Value Trim(Heap& heap, const Value& value, const Arguments& arguments) {
  const Value* set = arguments.Find(0, "chars");
  if (Given(set) && !set->is_string()) {
    heap.Fail("trim: expected a string of characters, found " + KindName(*set));
    return {};
  }
  return heap.String(Strip(ToText(heap, value), Given(set) ? set->string : nullptr, true, true))
      .SafeAs(value);
}

template <Case how>
Value Cased(Heap& heap, const Value& value, const Arguments&) {
  std::optional<MarkedText> mapped = WithCase(ToText(heap, value), how);
  if (mapped) {
    const Value out = heap.String(*std::move(mapped));
    return how == Case::kJinjaTitle ? out : out.SafeAs(value);
  }
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
  return heap.String(std::move(out)).SafeAs(value);
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

// json.loads: llama.cpp's templates have it, transformers does not.
Value FromJsonFilter(Heap& heap, const Value& value, const Arguments&) {
  if (!value.is_string()) {
    heap.Fail("from_json: expected a string, found " + KindName(value));
    return {};
  }
  heap.SpendBytes(value.string->size());
  const Result<json::Value> read = json::Parse(value.string->bytes());
  if (read.ok()) return heap.FromJson(*read, false);
  heap.Fail("from_json: the text is not JSON: " + read.error().ToString());
  return {};
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
        {"from_json", FromJsonFilter, 0, {}},
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
