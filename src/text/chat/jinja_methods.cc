// The methods of strings, mappings, lists and loops that templates call. Those that would change a
// value are refused, as Jinja's sandbox does.
#include <algorithm>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/text/chat/jinja_program.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {
namespace {

using Kind = Value::Kind;

constexpr const char* kSupported =
    "; strings have strip, lstrip, rstrip, split, rsplit, splitlines, startswith, endswith, upper, "
    "lower, title, capitalize, replace, find, rfind, count, join, removeprefix, removesuffix, "
    "isdigit, "
    "isspace, format, mappings get, items, keys, values, lists index, count, loops cycle";

// Reads the arguments of one call; errors name the method.
class Reader {
 public:
  Reader(Heap& heap, std::string_view method, const Arguments& arguments)
      : heap_(heap), method_(method), arguments_(arguments) {}

  // Fails when there are more than `most` arguments, or names other than those.
  bool AtMost(size_t most, std::initializer_list<std::string_view> names = {}) {
    bool good = arguments_.count + arguments_.names->size() <= most;
    for (const std::string& name : *arguments_.names) {
      good = good && std::find(names.begin(), names.end(), name) != names.end();
    }
    if (!good) heap_.Fail(Name() + ": expected at most " + std::to_string(most) + " arguments");
    return good;
  }
  const Value* At(size_t i, std::string_view name = "\n") { return arguments_.Find(i, name); }
  // nullptr, with an error, when it is absent or no string.
  const MarkedText* String(size_t i, std::string_view name = "\n") {
    const Value* value = At(i, name);
    if (value != nullptr && value->is_string()) return value->string;
    heap_.Fail(Name() + ": expected a string, found " +
               (value == nullptr ? std::string("nothing") : KindName(*value)));
    return nullptr;
  }
  // nullptr when absent or none.
  const MarkedText* OptionalString(size_t i, std::string_view name = "\n") {
    const Value* value = At(i, name);
    if (value == nullptr || value->is(Kind::kNone)) return nullptr;
    return String(i, name);
  }
  int64_t Integer(size_t i, std::string_view name, int64_t otherwise) {
    const Value* value = At(i, name);
    if (value == nullptr) return otherwise;
    if (!value->is_integer())
      heap_.Fail(Name() + ": expected an integer, found " + KindName(*value));
    return value->is_integer() ? value->as_integer() : otherwise;
  }
  std::string Name() const { return std::string(method_) + "()"; }

 private:
  Heap& heap_;
  std::string_view method_;
  const Arguments& arguments_;
};

Value Strings(Heap& heap, std::vector<MarkedText> parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (MarkedText& part : parts) {
    items.push_back(heap.String(std::move(part)));
    if (heap.failed()) break;
  }
  return heap.NewList(std::move(items));
}

bool HasProperty(std::string_view property, char32_t c) {
  for (const CodepointRange& range : UnicodeProperty(property)) {
    if (c >= range.lo && c <= range.hi) return true;
  }
  return false;
}

// Where `what` first (or last) stands, in code points; -1 when nowhere.
int64_t Find(const MarkedText& text, const MarkedText& what, bool last) {
  const size_t at = last ? text.bytes().rfind(what.bytes()) : text.bytes().find(what.bytes());
  if (at == std::string::npos) return -1;
  return static_cast<int64_t>(CountCodepoints(std::string_view(text.bytes()).substr(0, at)));
}

// The start or the end is one of the strings.
bool Affix(Heap& heap, Reader& reader, const MarkedText& text, bool front) {
  const Value* wanted = reader.At(0);
  std::vector<Value> options;
  if (wanted != nullptr && wanted->is_list() && wanted->list->type == List::Type::kTuple) {
    options = wanted->list->items;
  } else if (wanted != nullptr) {
    options = {*wanted};
  }
  for (const Value& option : options) {
    if (!option.is_string()) {
      heap.Fail(reader.Name() + ": expected a string or a tuple of strings, found " +
                KindName(option));
      return false;
    }
    const std::string& affix = option.string->bytes();
    if (front ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix)) return true;
  }
  if (wanted == nullptr) heap.Fail(reader.Name() + ": expected a string");
  return false;
}

Value ReplaceIn(Heap& heap, Reader& reader, const MarkedText& text, bool safe) {
  if (!reader.AtMost(3, {"count"})) return {};
  const MarkedText* from = reader.String(0);
  const MarkedText* to = reader.String(1);
  const int64_t most = reader.Integer(2, "count", -1);
  if (heap.failed()) return {};
  const bool escapes = safe && !reader.At(1)->safe;
  const MarkedText by = escapes ? EscapeHtml(*to) : *to;
  // What the longest result could take.
  const size_t growth = by.size() / std::max<size_t>(from->size(), 1) + 1;
  if (!heap.SpendBytes(text.size() * growth / 16)) return {};
  return heap.String(Replace(text, *from, by, most));
}

Value WithoutAffix(Heap& heap, Reader& reader, const MarkedText& text, bool front) {
  const MarkedText* affix = reader.AtMost(1) ? reader.String(0) : nullptr;
  if (affix == nullptr) return {};
  const size_t size = affix->size();
  if (front) {
    const bool there = text.bytes().starts_with(affix->bytes());
    return heap.String(text.Slice(there ? size : 0, text.size()));
  }
  const bool there = text.bytes().ends_with(affix->bytes());
  return heap.String(text.Slice(0, text.size() - (there ? size : 0)));
}

Value FindOrCount(Reader& reader, const MarkedText& text, std::string_view name) {
  const MarkedText* what = reader.AtMost(1) ? reader.String(0) : nullptr;
  if (what == nullptr) return {};
  if (name != "count") return Value::Integer(Find(text, *what, name == "rfind"));
  if (what->empty()) {
    return Value::Integer(static_cast<int64_t>(CountCodepoints(text.bytes())) + 1);
  }
  int64_t count = 0;
  for (size_t at = text.bytes().find(what->bytes()); at != std::string::npos;
       at = text.bytes().find(what->bytes(), at + what->size())) {
    ++count;
  }
  return Value::Integer(count);
}

Value Join(Heap& heap, Reader& reader, const MarkedText& text, bool safe) {
  const Value* items = reader.AtMost(1) ? reader.At(0) : nullptr;
  if (items == nullptr) {
    heap.Fail("join(): expected a list");
    return {};
  }
  MarkedText out;
  bool first = true;
  for (const Value& item : Iterate(heap, *items)) {
    if (!item.is_string()) {
      heap.Fail("join(): expected strings, found " + KindName(item));
      return {};
    }
    if (!first) out.Append(text);
    first = false;
    out.Append(safe && !item.safe ? EscapeHtml(*item.string) : *item.string);
    if (!heap.SpendBytes(item.string->size() + text.size())) return {};
  }
  return heap.String(std::move(out));
}

Value ConsistsOf(Heap& heap, Reader& reader, const MarkedText& text, bool space) {
  if (!reader.AtMost(0)) return {};
  const std::u32string all = DecodeCodepoints(text.bytes());
  bool good = !all.empty();
  for (const char32_t c : all) {
    if (space) {
      good = good && IsSpace(c);
    } else if (c < 0x80) {
      good = good && c >= '0' && c <= '9';
    } else if (good && HasProperty("N", c)) {
      good = HasProperty("Nd", c);
      if (!good) {
        heap.Fail(ErrorCode::kUnsupported, "isdigit(): the text has a digit of an unusual kind");
      }
    } else {
      good = false;
    }
  }
  return Value::Bool(good);
}

// What a method of a safe string makes is safe as well, in lists too.
Value AsSafe(const Value& made) {
  const auto mark = [](Value value) {
    value.safe = value.is_string();
    return value;
  };
  if (!made.is_list()) return mark(made);
  for (Value& item : made.list->items) item = mark(item);
  return made;
}

Value StringMethod(Heap& heap, const Value& value, std::string_view name,
                   const Arguments& arguments) {
  const MarkedText& text = *value.string;
  Reader reader(heap, name, arguments);
  heap.SpendBytes(text.size());
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    if (!reader.AtMost(1)) return {};
    const MarkedText* set = reader.OptionalString(0);
    return heap.String(Strip(text, set, name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    if (!reader.AtMost(2, {"sep", "maxsplit"})) return {};
    const MarkedText* separator = reader.OptionalString(0, "sep");
    const int64_t most = reader.Integer(1, "maxsplit", -1);
    if (separator != nullptr && separator->empty())
      heap.Fail(reader.Name() + ": the separator is empty");
    if (heap.failed()) return {};
    return Strings(heap, Split(text, separator, most, name == "rsplit"));
  }
  if (name == "splitlines") {
    if (!reader.AtMost(1, {"keepends"})) return {};
    const Value* keep = reader.At(0, "keepends");
    return Strings(heap, SplitLines(text, keep != nullptr && Truth(*keep)));
  }
  if (name == "startswith" || name == "endswith") {
    if (!reader.AtMost(1)) return {};
    return Value::Bool(Affix(heap, reader, text, name == "startswith"));
  }
  static constexpr std::pair<std::string_view, Case> kCases[] = {{"upper", Case::kUpper},
                                                                 {"lower", Case::kLower},
                                                                 {"title", Case::kTitle},
                                                                 {"capitalize", Case::kCapitalize}};
  for (const auto& [method, how] : kCases) {
    if (name != method) continue;
    if (!reader.AtMost(0)) return {};
    std::optional<MarkedText> mapped = WithCase(text, how);
    if (mapped) return heap.String(*std::move(mapped));
    heap.Fail(ErrorCode::kUnsupported,
              reader.Name() + ": the text has a letter whose case is not mapped");
    return {};
  }
  if (name == "replace") return ReplaceIn(heap, reader, text, value.safe);
  if (name == "removeprefix" || name == "removesuffix")
    return WithoutAffix(heap, reader, text, name == "removeprefix");
  if (name == "find" || name == "rfind" || name == "count") return FindOrCount(reader, text, name);
  if (name == "join") return Join(heap, reader, text, value.safe);
  if (name == "isdigit" || name == "isspace")
    return ConsistsOf(heap, reader, text, name == "isspace");
  if (name == "format") return FormatMethod(heap, value, arguments);
  heap.Fail(ErrorCode::kUnsupported,
            "strings have no method " + json::Quote(name) + " here" + kSupported);
  return {};
}

Value DictMethod(Heap& heap, const Value& value, std::string_view name,
                 const Arguments& arguments) {
  Reader reader(heap, name, arguments);
  const Dict& dict = *value.dict;
  if (name == "get") {
    if (!reader.AtMost(2)) return {};
    const Value* key = reader.At(0);
    if (key == nullptr) {
      heap.Fail("get(): expected a key");
      return {};
    }
    heap.Spend(static_cast<int64_t>(dict.entries.size() / 8));
    for (const auto& [known, found] : dict.entries) {
      if (Equal(heap, known, *key)) return found;
    }
    const Value* otherwise = reader.At(1);
    return otherwise == nullptr ? Value::None() : *otherwise;
  }
  if (name == "items" || name == "keys" || name == "values") {
    if (!reader.AtMost(0)) return {};
    std::vector<Value> items;
    for (const auto& [key, member] : dict.entries) {
      items.push_back(name == "keys"     ? key
                      : name == "values" ? member
                                         : heap.NewList({key, member}, List::Type::kTuple));
    }
    return heap.NewList(std::move(items), List::Type::kView);
  }
  const bool changes = HasMethod(value, name) && name != "copy" && name != "fromkeys";
  heap.Fail(ErrorCode::kUnsupported,
            changes ? "a template cannot change a mapping: " + reader.Name()
                    : "mappings have no method " + json::Quote(name) + " here" + kSupported);
  return {};
}

Value ListMethod(Heap& heap, const Value& value, std::string_view name,
                 const Arguments& arguments) {
  Reader reader(heap, name, arguments);
  if ((name == "index" || name == "count") && value.list->type <= List::Type::kRange) {
    const Value* wanted = reader.AtMost(1) ? reader.At(0) : nullptr;
    if (wanted == nullptr) {
      heap.Fail(reader.Name() + ": expected a value");
      return {};
    }
    int64_t count = 0;
    for (size_t i = 0; i < value.list->items.size(); ++i) {
      if (!Equal(heap, value.list->items[i], *wanted)) continue;
      if (name == "index") return Value::Integer(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") heap.Fail("index(): the value is not in the list");
    return Value::Integer(count);
  }
  const bool changes = HasMethod(value, name) && name != "copy";
  heap.Fail(ErrorCode::kUnsupported,
            changes ? "a template cannot change a list: " + reader.Name() + "; '+' makes a new one"
                    : "lists have no method " + json::Quote(name) + " here" + kSupported);
  return {};
}

}  // namespace

const Value* Arguments::Find(size_t position, std::string_view name) const {
  if (position < count) return positional + position;
  for (size_t i = 0; i < names->size(); ++i) {
    if ((*names)[i] == name) return named + i;
  }
  return nullptr;
}

Value CallMethod(Heap& heap, const Value& value, std::string_view name,
                 const Arguments& arguments) {
  switch (value.kind) {
    case Kind::kString: {
      const Value made = StringMethod(heap, value, name, arguments);
      return value.safe ? AsSafe(made) : made;
    }
    case Kind::kDict:
      if (!value.dict->is_namespace) return DictMethod(heap, value, name, arguments);
      break;
    case Kind::kList:
      return ListMethod(heap, value, name, arguments);
    case Kind::kLoop:
      if (name == "cycle" && arguments.count > 0 && arguments.names->empty()) {
        return arguments.positional[(value.loop->next - 1) % arguments.count];
      }
      break;
    default:
      break;
  }
  heap.Fail(
      value.undefined() || value.is(Kind::kNone) ? ErrorCode::kInvalid : ErrorCode::kUnsupported,
      "cannot call " + json::Quote(name) + " of " + KindName(value) + kSupported);
  return {};
}

}  // namespace pawl::jinja
