// Values may be nested as deep as a template likes to build them, and may share parts, so whatever
// walks through them keeps its own stack and spends a step for each value it meets.
#include "src/text/chat/jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "src/base/utf8.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {
namespace {

using Kind = Value::Kind;

// Numbers above this are taken as an attempt to use up memory.
constexpr size_t kMaxText = size_t{64} << 20;

// A prompt's roles are words of the template's vocabulary rather than a user's text.
constexpr std::string_view kRoles[] = {"system", "user",      "assistant", "tool",
                                       "model",  "developer", "function",  "ipython"};

bool In(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value FromNumber(Heap& heap, const std::string& text) {
  if (text.find_first_of(".eE") != std::string::npos) {
    return Value::Float(std::strtod(text.c_str(), nullptr));
  }
  int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc()) return Value::Integer(integer);
  Value big = heap.String(MarkedText::Data(text));
  if (big.is_string()) big.kind = Kind::kBigInteger;
  return big;
}

std::string JsonFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return FloatRepr(value);
}

bool SameNumber(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() == b.as_integer();
  return a.as_real() == b.as_real();
}

std::optional<size_t> IndexIn(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

Value LoopAttribute(const Loop& loop, std::string_view name) {
  const auto size = static_cast<int64_t>(loop.items.size());
  const auto index = static_cast<int64_t>(loop.next) - 1;
  if (name == "index") return Value::Integer(index + 1);
  if (name == "index0") return Value::Integer(index);
  if (name == "revindex") return Value::Integer(size - index);
  if (name == "revindex0") return Value::Integer(size - index - 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 == size);
  if (name == "length") return Value::Integer(size);
  // Jinja counts the depth of recursive loops only.
  if (name == "depth") return Value::Integer(1);
  if (name == "depth0") return Value::Integer(0);
  if (name == "previtem" && index > 0) return loop.items[static_cast<size_t>(index - 1)];
  if (name == "nextitem" && index + 1 < size) return loop.items[static_cast<size_t>(index + 1)];
  return {};
}

}  // namespace

const Value* Dict::Find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.is_string() && name.string->bytes() == key) return &value;
  }
  return nullptr;
}

// ---- the heap ----

bool Heap::Spend(int64_t steps) {
  if (fuel_ < steps) {
    fuel_ = 0;
    Fail(ErrorCode::kLimit, "the template takes more steps than the limit allows");
    return false;
  }
  fuel_ -= steps;
  return true;
}

void Heap::Fail(ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message), ""};
}

Value Heap::String(MarkedText text) {
  if (!SpendBytes(text.size())) return {};
  return Value::String(&strings_.emplace_back(std::move(text)));
}

Value Heap::NewList(std::vector<Value> items, List::Type type) {
  if (!Spend(static_cast<int64_t>(items.size()) + 1)) return {};
  Value v = Value::Of(Kind::kList);
  v.list = &lists_.emplace_back(List{type, std::move(items)});
  return v;
}

Value Heap::NewDict(std::vector<std::pair<Value, Value>> entries, bool is_namespace) {
  if (!Spend(static_cast<int64_t>(entries.size()) + 1)) return {};
  Value v = Value::Of(Kind::kDict);
  v.dict = &dicts_.emplace_back(Dict{is_namespace, std::move(entries)});
  return v;
}

Value Heap::UndefinedOf(std::string_view name) {
  if (!SpendBytes(name.size())) return {};
  Value v;
  v.string = &strings_.emplace_back(std::string(name));
  return v;
}

Scope* Heap::NewScope(Scope* parent) {
  Spend(1);
  Scope* scope = &scopes_.emplace_back();
  scope->parent = parent;
  return scope;
}

Value Heap::NewMacro(int32_t index, Scope* scope) {
  Spend(1);
  Value v = Value::Of(Kind::kMacro);
  v.macro = &macros_.emplace_back(MacroValue{index, scope});
  return v;
}

Value Heap::FromJson(const json::Value& value, bool roles) {
  // Containers that are being filled, with the next child of each.
  struct Open {
    const json::Value* from;
    Value to;
    size_t next;
  };
  std::vector<Open> stack;
  const auto make = [&](const json::Value& from) {
    switch (from.type) {
      case json::Type::kNull:
        return Value::None();
      case json::Type::kFalse:
      case json::Type::kTrue:
        return Value::Bool(from.type == json::Type::kTrue);
      case json::Type::kNumber:
        return FromNumber(*this, from.text);
      case json::Type::kString:
        return String(MarkedText::Data(from.text));
      case json::Type::kArray:
      case json::Type::kObject: {
        const Value made = from.type == json::Type::kArray ? NewList({}) : NewDict({});
        if (!failed()) stack.push_back({&from, made, 0});
        return made;
      }
    }
    return Value::None();
  };
  const Value root = make(value);
  while (!stack.empty() && !failed()) {
    Open& open = stack.back();
    if (open.next == open.from->size()) {
      stack.pop_back();
      continue;
    }
    const size_t i = open.next++;
    const Value to = open.to;
    if (open.from->type == json::Type::kArray) {
      to.list->items.push_back(make(open.from->items[i]));
      continue;
    }
    const auto& [name, child] = open.from->members[i];
    const bool role =
        roles && stack.size() == 2 && name == "role" && child.type == json::Type::kString &&
        std::find(std::begin(kRoles), std::end(kRoles), child.text) != std::end(kRoles);
    const Value key = String(MarkedText::Data(name));
    to.dict->entries.emplace_back(key, role ? String(child.text) : make(child));
  }
  return failed() ? Value() : root;
}

// ---- what values are ----

std::string KindName(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return value.string == nullptr
                 ? "an undefined value"
                 : json::Quote(value.string->bytes().substr(0, 60)) + ", which is undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInteger:
    case Kind::kBigInteger:
      return "an integer";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      switch (value.list->type) {
        case List::Type::kTuple:
          return "a tuple";
        case List::Type::kGenerator:
          return "a sequence to go through (use |list)";
        default:
          return "a list";
      }
    case Kind::kDict:
      return value.dict->is_namespace ? "a namespace" : "a mapping";
    case Kind::kLoop:
      return "a loop variable";
    case Kind::kMacro:
      return "a macro";
    case Kind::kFunction:
    case Kind::kMethod:
      return "a function";
  }
  return "a value";
}

bool Truth(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInteger:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return !value.string->empty();
    case Kind::kList:
      return value.list->type == List::Type::kGenerator || !value.list->items.empty();
    case Kind::kDict:
      return value.dict->is_namespace || !value.dict->entries.empty();
    default:
      return true;
  }
}

bool Equal(Heap& heap, const Value& first, const Value& second) {
  std::vector<std::pair<Value, Value>> stack = {{first, second}};
  while (!stack.empty()) {
    const auto [a, b] = stack.back();
    stack.pop_back();
    if (!heap.Spend(1)) return false;
    if (a.is_number() && b.is_number()) {
      if (!SameNumber(a, b)) return false;
      continue;
    }
    if (a.kind != b.kind) return false;
    switch (a.kind) {
      case Kind::kUndefined:
      case Kind::kNone:
        break;
      case Kind::kString:
      case Kind::kBigInteger:
        if (!heap.SpendBytes(std::min(a.string->size(), b.string->size()))) return false;
        if (a.string->bytes() != b.string->bytes()) return false;
        break;
      case Kind::kList: {
        if (a.list == b.list) break;
        if (a.list->type != b.list->type || a.list->type == List::Type::kGenerator) return false;
        if (a.list->items.size() != b.list->items.size()) return false;
        for (size_t i = a.list->items.size(); i-- > 0;) {
          stack.emplace_back(a.list->items[i], b.list->items[i]);
        }
        break;
      }
      case Kind::kDict: {
        if (a.dict == b.dict) break;
        if (a.dict->is_namespace || b.dict->is_namespace) return false;
        if (a.dict->entries.size() != b.dict->entries.size()) return false;
        for (const auto& [key, value] : a.dict->entries) {
          if (!heap.Spend(static_cast<int64_t>(b.dict->entries.size()))) return false;
          const Value* other = nullptr;
          for (const auto& [name, candidate] : b.dict->entries) {
            const bool same = key.is_string() && name.is_string()
                                  ? key.string->bytes() == name.string->bytes()
                              : key.is_number() && name.is_number()
                                  ? SameNumber(key, name)
                                  : key.kind == name.kind && key.is(Kind::kNone);
            if (same) other = &candidate;
          }
          if (other == nullptr) return false;
          stack.emplace_back(value, *other);
        }
        break;
      }
      default:
        if (a.integer != b.integer) return false;
    }
  }
  return true;
}

bool Less(Heap& heap, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return a.as_integer() < b.as_integer();
    return a.as_real() < b.as_real();
  }
  if (a.is_string() && b.is_string()) {
    heap.SpendBytes(std::min(a.string->size(), b.string->size()));
    return a.string->bytes() < b.string->bytes();  // the order of UTF-8 is that of code points
  }
  heap.Fail("cannot order " + KindName(a) + " and " + KindName(b) +
            "; expected two numbers or two strings");
  return false;
}

bool Contains(Heap& heap, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::kString:
      if (!item.is_string()) {
        heap.Fail("'in' of a string needs a string; found " + KindName(item));
        return false;
      }
      heap.SpendBytes(container.string->size());
      return container.string->bytes().find(item.string->bytes()) != std::string::npos;
    case Kind::kUndefined:
      return false;
    case Kind::kDict:
      if (container.dict->is_namespace) break;
      for (const auto& [key, value] : container.dict->entries) {
        if (Equal(heap, key, item)) return true;
      }
      return false;
    case Kind::kList: {
      std::vector<Value>& items = container.list->items;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!Equal(heap, items[i], item)) continue;
        if (container.list->type == List::Type::kGenerator) {
          items.erase(items.begin(), items.begin() + static_cast<ptrdiff_t>(i) + 1);
        }
        return true;
      }
      if (container.list->type == List::Type::kGenerator) items.clear();
      return false;
    }
    default:
      break;
  }
  heap.Fail("'in' needs a string, a list or a mapping; found " + KindName(container));
  return false;
}

// ---- values as text ----

namespace {

// A value as one piece of text; containers are the caller's. False when it has none.
bool AppendScalar(const Value& value, bool repr, MarkedText& out) {
  switch (value.kind) {
    case Kind::kUndefined:
      if (repr) out.Append("Undefined");
      return true;
    case Kind::kNone:
      out.Append("None");
      return true;
    case Kind::kBool:
      out.Append(value.boolean ? "True" : "False");
      return true;
    case Kind::kInteger:
      out.Append(std::to_string(value.integer));
      return true;
    case Kind::kFloat:
      out.Append(FloatRepr(value.real));
      return true;
    case Kind::kBigInteger:
      out.Append(*value.string);
      return true;
    case Kind::kString:
      if (!repr) {
        out.Append(*value.string);
        return true;
      }
      if (value.safe) out.Append("Markup(");
      out.Append(Repr(*value.string));
      if (value.safe) out.Append(")");
      return true;
    default:
      return false;
  }
}

// A container that is being written, and its next child.
struct Open {
  Value value;
  size_t next;
  std::vector<size_t> order;  // of the members, when they are sorted
};

size_t SizeOf(const Value& container) {
  return container.is_list() ? container.list->items.size() : container.dict->entries.size();
}

bool TooLong(Heap& heap, const MarkedText& text) {
  if (text.size() <= kMaxText) return false;
  heap.Fail(ErrorCode::kLimit, "a text of more than 64 MiB");
  return true;
}

}  // namespace

MarkedText ToText(Heap& heap, const Value& value) {
  MarkedText out;
  if (AppendScalar(value, false, out)) return out;
  std::vector<Open> stack;
  const auto open = [&](const Value& v) {
    const size_t before = out.size();
    if (AppendScalar(v, true, out)) {
      heap.SpendBytes(out.size() - before);
      return;
    }
    const bool list =
        v.is_list() && (v.list->type == List::Type::kList || v.list->type == List::Type::kTuple);
    if (!list && !(v.is_dict() && !v.dict->is_namespace)) {
      return heap.Fail("cannot write " + KindName(v) +
                       " as text; expected a string, a number, a list or a mapping");
    }
    out.Append(v.is_dict() ? "{" : v.list->type == List::Type::kTuple ? "(" : "[");
    stack.push_back({v, 0, {}});
  };
  open(value);
  while (!stack.empty() && !heap.failed() && heap.Spend(1) && !TooLong(heap, out)) {
    const Value container = stack.back().value;
    const size_t i = stack.back().next++;
    if (i == SizeOf(container)) {
      const bool tuple = container.is_list() && container.list->type == List::Type::kTuple;
      out.Append(container.is_dict() ? "}" : !tuple ? "]" : i == 1 ? ",)" : ")");
      stack.pop_back();
      continue;
    }
    if (i > 0) out.Append(", ");
    if (container.is_list()) {
      open(container.list->items[i]);
    } else {
      AppendScalar(container.dict->entries[i].first, true, out);
      out.Append(": ");
      open(container.dict->entries[i].second);
    }
  }
  return out;
}

MarkedText ToJson(Heap& heap, const Value& value, const JsonStyle& style) {
  MarkedText out;
  std::vector<Open> stack;
  const auto new_line = [&] {
    if (!style.indent) return;
    out.Append("\n");
    for (size_t i = 0; i < stack.size(); ++i) out.Append(*style.indent);
    heap.SpendBytes(stack.size() * style.indent->size());
  };
  const auto open = [&](const Value& v) {
    const size_t before = out.size();
    switch (v.kind) {
      case Kind::kNone:
        out.Append("null");
        break;
      case Kind::kBool:
        out.Append(v.boolean ? "true" : "false");
        break;
      case Kind::kFloat:
        out.Append(JsonFloat(v.real));
        break;
      case Kind::kInteger:
      case Kind::kBigInteger:
        AppendScalar(v, false, out);
        break;
      case Kind::kString:
        out.Append(JsonQuote(*v.string, style.ensure_ascii));
        break;
      case Kind::kList:
        if (v.list->type != List::Type::kList && v.list->type != List::Type::kTuple) {
          return heap.Fail("cannot write " + KindName(v) + " as JSON");
        }
        out.Append(v.list->items.empty() ? "[]" : "[");
        if (!v.list->items.empty()) stack.push_back({v, 0, {}});
        break;
      case Kind::kDict: {
        if (v.dict->is_namespace) return heap.Fail("cannot write a namespace as JSON");
        out.Append(v.dict->entries.empty() ? "{}" : "{");
        if (v.dict->entries.empty()) break;
        Open members{v, 0, {}};
        if (style.sort_keys) {
          members.order.resize(v.dict->entries.size());
          for (size_t i = 0; i < members.order.size(); ++i) members.order[i] = i;
          std::stable_sort(members.order.begin(), members.order.end(), [&](size_t a, size_t b) {
            return Less(heap, v.dict->entries[a].first, v.dict->entries[b].first);
          });
        }
        stack.push_back(std::move(members));
        break;
      }
      default:
        return heap.Fail("cannot write " + KindName(v) + " as JSON");
    }
    heap.SpendBytes(out.size() - before);
  };
  open(value);
  while (!stack.empty() && !heap.failed() && heap.Spend(1) && !TooLong(heap, out)) {
    const Value container = stack.back().value;
    const size_t i = stack.back().next++;
    if (i == SizeOf(container)) {
      stack.pop_back();
      new_line();
      out.Append(container.is_dict() ? "}" : "]");
      continue;
    }
    if (i > 0) out.Append(style.item_separator);
    new_line();
    if (container.is_list()) {
      open(container.list->items[i]);
      continue;
    }
    const std::vector<size_t>& order = stack.back().order;
    const auto& [key, member] = container.dict->entries[order.empty() ? i : order[i]];
    switch (key.kind) {
      case Kind::kString:
        out.Append(JsonQuote(*key.string, style.ensure_ascii));
        break;
      case Kind::kNone:
        out.Append("\"null\"");
        break;
      case Kind::kBool:
        out.Append(key.boolean ? "\"true\"" : "\"false\"");
        break;
      case Kind::kFloat:
        out.Append("\"" + JsonFloat(key.real) + "\"");
        break;
      default:
        out.Append("\"");
        AppendScalar(key, false, out);
        out.Append("\"");
    }
    out.Append(style.key_separator);
    open(member);
  }
  return out;
}

// ---- the parts of values ----

std::vector<Value> Iterate(Heap& heap, const Value& value) {
  std::vector<Value> items;
  switch (value.kind) {
    case Kind::kUndefined:
      return items;
    case Kind::kList:
      heap.Spend(static_cast<int64_t>(value.list->items.size()));
      if (value.list->type == List::Type::kGenerator) {
        items.swap(value.list->items);
        return items;
      }
      return value.list->items;
    case Kind::kDict:
      if (value.dict->is_namespace) break;
      heap.Spend(static_cast<int64_t>(value.dict->entries.size()));
      for (const auto& entry : value.dict->entries) items.push_back(entry.first);
      return items;
    case Kind::kString: {
      const std::string& text = value.string->bytes();
      for (size_t at = 0; at < text.size() && !heap.failed();) {
        const auto length =
            static_cast<size_t>(DecodeUtf8(std::string_view(text).substr(at)).length);
        items.push_back(heap.String(value.string->Slice(at, at + length)));
        at += length;
      }
      return items;
    }
    default:
      break;
  }
  heap.Fail("cannot go through " + KindName(value) + "; expected a list, a mapping or a string");
  return items;
}

std::optional<size_t> LengthOf(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return CountCodepoints(value.string->bytes());
    case Kind::kList:
      if (value.list->type == List::Type::kGenerator) return std::nullopt;
      return value.list->items.size();
    case Kind::kDict:
      if (value.dict->is_namespace) return std::nullopt;
      return value.dict->entries.size();
    case Kind::kLoop:
      return value.loop->items.size();
    default:
      return std::nullopt;
  }
}

bool HasMethod(const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kString:
      return In({"strip",        "lstrip",   "rstrip",    "split",      "rsplit",    "splitlines",
                 "startswith",   "endswith", "upper",     "lower",      "title",     "capitalize",
                 "replace",      "find",     "rfind",     "count",      "join",      "removeprefix",
                 "removesuffix", "isdigit",  "isalpha",   "isalnum",    "isspace",   "isupper",
                 "islower",      "format",   "index",     "encode",     "zfill",     "ljust",
                 "rjust",        "center",   "partition", "rpartition", "swapcase",  "casefold",
                 "expandtabs",   "rindex",   "translate", "isnumeric",  "isdecimal", "isidentifier",
                 "isprintable",  "istitle",  "isascii",   "maketrans",  "format_map"},
                name);
    case Kind::kDict:
      return !value.dict->is_namespace && In({"items", "keys", "values", "get", "pop", "update",
                                              "copy", "clear", "popitem", "setdefault", "fromkeys"},
                                             name);
    case Kind::kList:
      return (value.list->type == List::Type::kList &&
              In({"append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear",
                  "copy"},
                 name)) ||
             (value.list->type <= List::Type::kRange && In({"index", "count"}, name));
    case Kind::kLoop:
      return In({"cycle", "changed"}, name);
    default:
      return false;
  }
}

Value Attribute(Heap& heap, const Value& value, std::string_view name) {
  if (value.undefined()) {
    heap.Fail("cannot take \"" + std::string(name) + "\" of " + KindName(value));
    return {};
  }
  if (HasMethod(value, name)) return Value::Of(Kind::kMethod);
  if (value.is(Kind::kLoop)) {
    const Value found = LoopAttribute(*value.loop, name);
    return found.undefined() ? heap.UndefinedOf(name) : found;
  }
  if (value.is_dict()) {
    heap.Spend(static_cast<int64_t>(value.dict->entries.size() / 8));
    if (const Value* found = value.dict->Find(name)) return *found;
  }
  return heap.UndefinedOf(name);
}

Value Item(Heap& heap, const Value& value, const Value& key) {
  if (value.undefined()) {
    heap.Fail("cannot take an item of " + KindName(value));
    return {};
  }
  if (value.is_dict()) {
    heap.Spend(static_cast<int64_t>(value.dict->entries.size() / 8));
    if (key.is_string()) {
      if (const Value* found = value.dict->Find(key.string->bytes())) return *found;
    } else {
      for (const auto& [name, item] : value.dict->entries) {
        if (Equal(heap, name, key)) return item;
      }
    }
  } else if (key.is_integer() && value.is_list() && value.list->type <= List::Type::kRange) {
    const auto index = IndexIn(key.as_integer(), value.list->items.size());
    if (index) return value.list->items[*index];
  } else if (key.is_integer() && value.is_string()) {
    const std::string_view text = value.string->bytes();
    heap.SpendBytes(text.size());
    const auto index = IndexIn(key.as_integer(), CountCodepoints(text));
    if (index) {
      const size_t at = ByteOfCodepoint(text, *index);
      const auto length = static_cast<size_t>(DecodeUtf8(text.substr(at)).length);
      return heap.String(value.string->Slice(at, at + length)).SafeAs(value);
    }
  }
  if (key.is_string()) {
    // As Jinja has it, x["name"] falls back to x.name.
    if (HasMethod(value, key.string->bytes())) return Value::Of(Kind::kMethod);
    if (value.is(Kind::kLoop)) return Attribute(heap, value, key.string->bytes());
    return heap.UndefinedOf(key.string->bytes());
  }
  return heap.UndefinedOf("an item");
}

Value SliceOf(Heap& heap, const Value& value, const Value& begin, const Value& end,
              const Value& step) {
  const bool list = value.is_list() && value.list->type <= List::Type::kRange;
  if (!list && !value.is_string()) {
    heap.Fail("cannot slice " + KindName(value) + "; expected a string or a list");
    return {};
  }
  for (const Value* part : {&begin, &end, &step}) {
    if (part->is(Kind::kNone) || part->is_integer()) continue;
    heap.Fail("the bounds of a slice must be integers or none; found " + KindName(*part));
    return {};
  }
  const auto size = static_cast<int64_t>(*LengthOf(value));
  const int64_t by = step.is(Kind::kNone) ? 1 : step.as_integer();
  if (by == 0) {
    heap.Fail("the step of a slice cannot be 0");
    return {};
  }
  // As Python's slice.indices.
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& part, int64_t otherwise) {
    if (part.is(Kind::kNone)) return otherwise;
    const int64_t at = part.as_integer();
    if (at < 0) return at < -size ? low : std::max(at + size, low);
    return std::min(at, high);
  };
  const int64_t from = bound(begin, by > 0 ? low : high), to = bound(end, by > 0 ? high : low);
  std::vector<size_t> picked;
  for (int64_t at = from; by > 0 ? at < to : at > to;) {
    picked.push_back(static_cast<size_t>(at));
    if (by > 0 ? by > to - at : by < to - at) break;
    at += by;
  }
  heap.Spend(static_cast<int64_t>(picked.size()));
  if (value.is_string()) {
    const std::string_view text = value.string->bytes();
    heap.SpendBytes(text.size());
    if (by == 1) {
      if (picked.empty()) return heap.String("").SafeAs(value);
      const size_t first = ByteOfCodepoint(text, picked.front());
      const size_t last = first + ByteOfCodepoint(text.substr(first), picked.size());
      return heap.String(value.string->Slice(first, last)).SafeAs(value);
    }
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.size();
         at += static_cast<size_t>(DecodeUtf8(text.substr(at)).length)) {
      starts.push_back(at);
    }
    starts.push_back(text.size());
    MarkedText out;
    for (const size_t i : picked) out.Append(*value.string, starts[i], starts[i + 1]);
    return heap.String(std::move(out)).SafeAs(value);
  }
  std::vector<Value> items;
  for (const size_t i : picked) items.push_back(value.list->items[i]);
  return heap.NewList(std::move(items), value.list->type);
}

}  // namespace pawl::jinja
