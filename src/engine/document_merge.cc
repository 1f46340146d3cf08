// A tree of nodes takes the parts one after the other, so the work is about that of reading them.
// Items of lists are found by their canonical text. What a list's order is follows from the places
// of its items: that of the chunks, and inside a chunk that of the model.
#include "src/engine/document_merge.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <unordered_map>
#include <utility>

#include "schemas/number/decimal.h"
#include "src/engine/record_values.h"

namespace pawl {
namespace {

constexpr double kUnknown = -1;  // below each probability

double ProbabilityOf(const ValueDetails* detail) {
  return detail == nullptr ? kUnknown : detail->probability.value_or(kUnknown);
}

bool Overlap(int64_t begin, int64_t end, int64_t other_begin, int64_t other_end) {
  return begin < other_end && other_begin < end;
}

// What schemas at a place say of a list, along the keywords that lead to a member.
class ListRuleFinder {
 public:
  explicit ListRuleFinder(const json::Value& root) : root_(root) {}

  void At(const json::Value& schema, std::span<const std::string> tokens) {
    if (++steps_ > kMostSteps || schema.type != json::Type::kObject) return;
    if (tokens.empty()) {
      Own(schema);
    } else if (const json::Value* const properties = schema.Find("properties");
               properties != nullptr && properties->Find(tokens.front()) != nullptr) {
      At(*properties->Find(tokens.front()), tokens.subspan(1));
    } else if (const json::Value* const more = schema.Find("additionalProperties")) {
      At(*more, tokens.subspan(1));
    }
    if (const json::Value* const target = ReferenceTarget(root_, schema)) At(*target, tokens);
    for (const char* const name : {"allOf", "anyOf", "oneOf"}) {
      const json::Value* const list = schema.Find(name);
      if (list == nullptr) continue;
      for (const json::Value& one : list->items) At(one, tokens);
    }
  }

  const ListRules& rules() const { return rules_; }

 private:
  static constexpr int kMostSteps = 2'000;

  void Own(const json::Value& schema) {
    if (const json::Value* const most = schema.Find("maxItems")) {
      const Result<Decimal> value = Decimal::Parse(most->text);
      if (value.ok() && value->IsInteger() && !value->negative() && value->ToString().size() < 10) {
        rules_.most = std::min<size_t>(rules_.most, std::stoul("0" + value->ToString()));
      }
    }
    const json::Value* const unique = schema.Find("uniqueItems");
    rules_.unique = rules_.unique || (unique != nullptr && unique->type == json::Type::kTrue);
  }

  const json::Value& root_;
  ListRules rules_;
  int steps_ = 0;
};

}  // namespace

ListRules ListRulesAt(const json::Value& schema, std::string_view pointer) {
  const std::vector<std::string> tokens = json::PointerTokens(pointer);
  ListRuleFinder finder(schema);
  finder.At(schema, tokens);
  return finder.rules();
}

std::string CanonicalJson(const json::Value& value) {
  switch (value.type) {
    case json::Type::kNumber: {
      const Result<Decimal> number = Decimal::Parse(value.text);
      return number.ok() ? number->ToString() : value.text;
    }
    case json::Type::kArray: {
      std::string out = "[";
      for (const json::Value& item : value.items) {
        out += (out.size() > 1 ? "," : "") + CanonicalJson(item);
      }
      return out + "]";
    }
    case json::Type::kObject: {
      std::vector<const json::Member*> members;
      for (const json::Member& member : value.members) members.push_back(&member);
      std::ranges::sort(members, {}, [](const json::Member* one) { return one->first; });
      std::string out = "{";
      for (const json::Member* const member : members) {
        out += (out.size() > 1 ? "," : "") + json::Quote(member->first) + ":" +
               CanonicalJson(member->second);
      }
      return out + "}";
    }
    default:
      return json::Dump(value);
  }
}

// ---- The tree ----

struct DocumentMerge::Node {
  // A value that is no list and no object with members.
  struct Candidate {
    json::Value value;
    std::string canonical;
    std::optional<ValueDetails> detail;
    double probability() const { return ProbabilityOf(detail ? &*detail : nullptr); }
  };
  struct Item {
    json::Value record;
    std::vector<ValueDetails> details;  // pointers from the item on
    int64_t place = 0;                  // its first character, or its chunk's
    int64_t chunk_begin = 0, chunk_end = 0;
    size_t part = 0, taken_by = 0;  // the parts that it came with, and that had it last
  };
  struct List {
    std::vector<std::unique_ptr<Item>> items;
    std::unordered_multimap<std::string, Item*> by_value;
    std::optional<ListRules> rules;
    std::optional<ValueDetails> empty;
    double probability = kUnknown;
    size_t first = 0;  // part
  };
  struct Object {
    std::vector<std::pair<std::string, std::unique_ptr<Node>>> members;
    std::unordered_map<std::string, size_t> by_name;
    std::optional<ValueDetails> empty;
    double probability = kUnknown;
    size_t first = 0;
  };
  std::optional<Candidate> null;
  std::vector<Candidate> scalars;  // different ones
  size_t first_scalar = 0;
  std::optional<List> list;
  std::optional<Object> object;
};

// A part on its way into the tree, or the record on its way out.
class DocumentMerge::Merger {
 public:
  Merger(const json::Value& schema, size_t number) : schema_(schema), number_(number) {}

  void SetPart(DocumentPart part) {
    part_ = std::move(part);
    for (size_t i = 0; i < part_.details.size(); ++i) by_pointer_[part_.details[i].pointer] = i;
  }
  const json::Value& record() const { return part_.record; }

  void Add(Node& node, const json::Value& value, const std::string& pointer) {
    if (value.type == json::Type::kArray) return AddList(node, value, pointer);
    if (value.type == json::Type::kObject) return AddObject(node, value, pointer);
    Node::Candidate one{value, CanonicalJson(value), {}};
    if (const ValueDetails* const detail = DetailAt(pointer)) one.detail = *detail;
    if (value.type == json::Type::kNull) {
      if (!node.null || one.probability() > node.null->probability()) node.null = std::move(one);
      return;
    }
    if (node.scalars.empty()) node.first_scalar = number_;
    const auto same = std::ranges::find(node.scalars, one.canonical, &Node::Candidate::canonical);
    if (same == node.scalars.end()) {
      node.scalars.push_back(std::move(one));
    } else if (one.probability() > same->probability()) {
      *same = std::move(one);
    }
  }

  // What stands at the pointer of the record. `out`: nullptr where it is no part of the record.
  json::Value Resolve(const Node& node, const std::string& pointer, MergedRecord* out) {
    const Node::Candidate* best = nullptr;
    for (const Node::Candidate& one : node.scalars) {
      if (best == nullptr || one.probability() > best->probability()) best = &one;
    }
    // Of values of several types the most probable one, of equal ones the first.
    struct Choice {
      double probability;
      size_t first;
      int kind;
    };
    std::vector<Choice> kinds;
    if (best != nullptr) kinds.push_back({best->probability(), node.first_scalar, 0});
    if (node.object) kinds.push_back({node.object->probability, node.object->first, 1});
    if (node.list) kinds.push_back({node.list->probability, node.list->first, 2});
    std::ranges::stable_sort(kinds, [](const Choice& a, const Choice& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.first < b.first;
    });
    if (kinds.empty()) {
      if (!node.null) return {};
      AddDetail(node.null->detail, pointer, out);
      return node.null->value;
    }
    if (out != nullptr) AddConflicts(node, best, kinds.front().kind, pointer, *out);
    switch (kinds.front().kind) {
      case 0:
        AddDetail(best->detail, pointer, out);
        return best->value;
      case 1:
        return ResolveObject(*node.object, pointer, out);
      default:
        return ResolveList(*node.list, pointer, out);
    }
  }

 private:
  const ValueDetails* DetailAt(const std::string& pointer) const {
    const auto found = by_pointer_.find(pointer);
    return found == by_pointer_.end() ? nullptr : &part_.details[found->second];
  }

  // The product over the values below.
  double ProbabilityBelow(const json::Value& value, const std::string& pointer) const {
    double out = 1;
    const auto below = [&](const json::Value& one, const std::string& token) {
      out *= std::max(0.0, ProbabilityBelow(one, json::PointerJoin(pointer, token)));
    };
    if (value.size() == 0) return ProbabilityOf(DetailAt(pointer));
    for (const json::Member& member : value.members) below(member.second, member.first);
    for (size_t i = 0; i < value.items.size(); ++i) below(value.items[i], std::to_string(i));
    return out;
  }

  void DetailsBelow(const json::Value& value, const std::string& pointer, size_t cut,
                    std::vector<ValueDetails>& out) const {
    if (value.size() == 0) {
      if (const ValueDetails* const detail = DetailAt(pointer)) {
        out.push_back(*detail);
        out.back().pointer.erase(0, cut);
      }
      return;
    }
    for (const json::Member& member : value.members) {
      DetailsBelow(member.second, json::PointerJoin(pointer, member.first), cut, out);
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      DetailsBelow(value.items[i], json::PointerJoin(pointer, std::to_string(i)), cut, out);
    }
  }

  void AddObject(Node& node, const json::Value& value, const std::string& pointer) {
    if (!node.object) node.object.emplace(Node::Object()).first = number_;
    Node::Object& object = *node.object;
    object.probability = std::max(object.probability, ProbabilityBelow(value, pointer));
    if (value.members.empty()) {
      const ValueDetails* const detail = DetailAt(pointer);
      if (detail != nullptr && !object.empty) object.empty = *detail;
    }
    for (const json::Member& member : value.members) {
      const auto [found, fresh] = object.by_name.try_emplace(member.first, object.members.size());
      if (fresh) object.members.emplace_back(member.first, std::make_unique<Node>());
      Add(*object.members[found->second].second, member.second,
          json::PointerJoin(pointer, member.first));
    }
  }

  std::unique_ptr<Node::Item> ItemOf(const json::Value& value, const std::string& pointer) const {
    auto item = std::make_unique<Node::Item>();
    item->record = value;
    DetailsBelow(value, pointer, pointer.size(), item->details);
    item->chunk_begin = item->place = part_.begin;
    item->chunk_end = part_.end;
    bool placed = false;
    for (const ValueDetails& detail : item->details) {
      if (!detail.span) continue;
      item->place = placed ? std::min(item->place, detail.span->begin) : detail.span->begin;
      placed = true;
    }
    item->part = item->taken_by = number_;
    return item;
  }

  // Two equal items of different chunks stand at the same place: a value of both has places that
  // overlap. An item of which no value has a place stands somewhere in its chunk.
  static bool SamePlace(const Node::Item& a, const Node::Item& b) {
    const auto placed = [](const Node::Item& item) {
      return std::ranges::any_of(item.details,
                                 [](const ValueDetails& one) { return one.span.has_value(); });
    };
    const bool a_placed = placed(a), b_placed = placed(b);
    if (!a_placed && !b_placed) {
      return Overlap(a.chunk_begin, a.chunk_end, b.chunk_begin, b.chunk_end);
    }
    if (a_placed && b_placed) {
      for (const ValueDetails& one : a.details) {
        if (!one.span) continue;
        const auto other = std::ranges::find(b.details, one.pointer, &ValueDetails::pointer);
        if (other == b.details.end() || !other->span) continue;
        if (Overlap(one.span->begin, one.span->end, other->span->begin, other->span->end)) {
          return true;
        }
      }
      return false;
    }
    const Node::Item& with = a_placed ? a : b;
    const Node::Item& without = a_placed ? b : a;
    return std::ranges::any_of(with.details, [&](const ValueDetails& one) {
      return one.span &&
             Overlap(one.span->begin, one.span->end, without.chunk_begin, without.chunk_end);
    });
  }

  // The first item of the list that this one is; end() where it is none.
  static size_t SameItem(const Node::List& list, const Node::Item& item,
                         const std::string& canonical) {
    size_t at = list.items.size();
    const auto [from, to] = list.by_value.equal_range(canonical);
    for (auto it = from; it != to; ++it) {
      const Node::Item& other = *it->second;
      const bool unique = list.rules->unique;
      if (!unique && (other.taken_by == item.part || !SamePlace(other, item))) continue;
      const auto found = std::ranges::find_if(
          list.items, [&](const std::unique_ptr<Node::Item>& one) { return one.get() == &other; });
      at = std::min(at, static_cast<size_t>(found - list.items.begin()));
    }
    return at;
  }

  void AddList(Node& node, const json::Value& value, const std::string& pointer) {
    if (!node.list) node.list.emplace(Node::List()).first = number_;
    Node::List& list = *node.list;
    if (!list.rules) list.rules = ListRulesAt(schema_, pointer);
    list.probability = std::max(list.probability, ProbabilityBelow(value, pointer));
    if (value.items.empty()) {
      const ValueDetails* const detail = DetailAt(pointer);
      if (detail != nullptr && !list.empty) list.empty = *detail;
    }
    size_t behind = 0;  // the items of this part so far
    for (size_t i = 0; i < value.items.size(); ++i) {
      auto item = ItemOf(value.items[i], json::PointerJoin(pointer, std::to_string(i)));
      std::string canonical = CanonicalJson(value.items[i]);
      if (const size_t same = SameItem(list, *item, canonical); same < list.items.size()) {
        list.items[same]->taken_by = number_;
        behind = std::max(behind, same + 1);
        continue;
      }
      // In front of the first item of another part that stands behind it.
      size_t at = behind;
      while (at < list.items.size() && list.items[at]->place <= item->place) ++at;
      list.by_value.emplace(std::move(canonical), item.get());
      list.items.insert(list.items.begin() + static_cast<ptrdiff_t>(at), std::move(item));
      behind = at + 1;
    }
  }

  static void AddDetail(const std::optional<ValueDetails>& detail, const std::string& pointer,
                        MergedRecord* out) {
    if (out == nullptr || !detail) return;
    out->details.push_back(*detail);
    out->details.back().pointer = pointer;
  }

  static ValueConflict ConflictOf(const std::string& pointer, const json::Value& value,
                                  double probability) {
    ValueConflict out;
    out.pointer = pointer;
    out.value = json::Dump(value);
    if (probability >= 0) out.probability = probability;
    return out;
  }

  // The values that did not become `best`, most probable first.
  void AddConflicts(const Node& node, const Node::Candidate* best, int kind,
                    const std::string& pointer, MergedRecord& out) {
    std::vector<ValueConflict> others;
    for (const Node::Candidate& one : node.scalars) {
      if (kind == 0 && &one == best) continue;
      others.push_back(ConflictOf(pointer, one.value, one.probability()));
      if (one.detail) others.back().span = one.detail->span;
    }
    if (node.object && kind != 1) {
      others.push_back(ConflictOf(pointer, ResolveObject(*node.object, pointer, nullptr),
                                  node.object->probability));
    }
    if (node.list && kind != 2) {
      others.push_back(
          ConflictOf(pointer, ResolveList(*node.list, pointer, nullptr), node.list->probability));
    }
    std::ranges::stable_sort(others, std::ranges::greater(), [](const ValueConflict& one) {
      return one.probability.value_or(kUnknown);
    });
    std::ranges::move(others, std::back_inserter(out.conflicts));
  }

  json::Value ResolveObject(const Node::Object& object, const std::string& pointer,
                            MergedRecord* out) {
    json::Value value;
    value.type = json::Type::kObject;
    if (object.members.empty()) AddDetail(object.empty, pointer, out);
    for (const auto& [name, node] : object.members) {
      value.members.emplace_back(name, Resolve(*node, json::PointerJoin(pointer, name), out));
    }
    return value;
  }

  json::Value ResolveList(const Node::List& list, const std::string& pointer, MergedRecord* out) {
    json::Value value;
    value.type = json::Type::kArray;
    const size_t most = std::min(list.rules->most, list.items.size());
    if (most == 0) AddDetail(list.empty, pointer, out);
    for (size_t i = 0; i < list.items.size(); ++i) {
      const Node::Item& item = *list.items[i];
      if (i >= most) {
        if (out == nullptr) break;
        double probability = item.details.empty() ? kUnknown : 1;
        for (const ValueDetails& one : item.details)
          probability *= std::max(0.0, ProbabilityOf(&one));
        out->conflicts.push_back(ConflictOf(pointer, item.record, probability));
        continue;
      }
      value.items.push_back(item.record);
      if (out == nullptr) continue;
      const std::string at = json::PointerJoin(pointer, std::to_string(i));
      for (const ValueDetails& detail : item.details) {
        out->details.push_back(detail);
        out->details.back().pointer.insert(0, at);
      }
    }
    return value;
  }

  const json::Value& schema_;
  const size_t number_;  // of the part, from 1
  DocumentPart part_;
  std::unordered_map<std::string, size_t> by_pointer_;
};

DocumentMerge::DocumentMerge(std::string_view schema) : root_(std::make_unique<Node>()) {
  if (Result<json::Value> read = json::Parse(schema); read.ok()) schema_ = *std::move(read);
}
DocumentMerge::~DocumentMerge() = default;
DocumentMerge::DocumentMerge(DocumentMerge&&) noexcept = default;
DocumentMerge& DocumentMerge::operator=(DocumentMerge&&) noexcept = default;

void DocumentMerge::Add(DocumentPart part) {
  Merger merger(schema_, ++parts_);
  merger.SetPart(std::move(part));
  merger.Add(*root_, merger.record(), "");
}

MergedRecord DocumentMerge::Take() {
  MergedRecord out;
  Merger merger(schema_, parts_);
  out.record = merger.Resolve(*root_, "", &out);
  return out;
}

std::string ConflictsJson(std::span<const ValueConflict> conflicts) {
  std::string out;
  const auto pair = [](const char* name, int64_t begin, int64_t end) {
    return std::string(",\"") + name + "\":[" + std::to_string(begin) + "," + std::to_string(end) +
           "]";
  };
  for (size_t i = 0; i < conflicts.size(); ++i) {
    const ValueConflict& one = conflicts[i];
    const bool fresh = i == 0 || conflicts[i - 1].pointer != one.pointer;
    if (fresh) out += (out.empty() ? "" : "],") + json::Quote(one.pointer) + ":[";
    char digits[40] = "null";
    if (one.probability) std::snprintf(digits, sizeof digits, "%.9g", *one.probability);
    out += (fresh ? "{\"value\":" : ",{\"value\":") + one.value + ",\"probability\":" + digits;
    if (one.span) {
      out += pair("span", one.span->begin, one.span->end) +
             pair("byte_span", one.span->begin_byte, one.span->end_byte);
    }
    out += "}";
  }
  return "\"conflicts\":{" + out + (out.empty() ? "}" : "]}");
}

}  // namespace pawl
