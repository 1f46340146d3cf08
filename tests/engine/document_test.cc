// Chunks of documents and the merge of their records, against slow methods on random input.
#include "src/engine/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/base/source_text.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using json::Value;

size_t WordsOf(std::string_view part) {
  size_t words = 0;
  bool inside = false;
  for (const char c : part) {
    const bool space = c == ' ' || c == '\n';
    words += !space && !inside ? 1 : 0;
    inside = !space;
  }
  return words;
}

// ---- Chunks ----

std::string RandomText(std::mt19937& random, size_t pieces) {
  static const std::vector<std::string> kPieces = {"word ",
                                                   "Ann",
                                                   " ",
                                                   "Öl ",
                                                   ". ",
                                                   ".\n",
                                                   "\n\n",
                                                   "# head\n",
                                                   "3.14 ",
                                                   "e.g. it ",
                                                   "。",
                                                   "漢字",
                                                   "long" + std::string(40, 'g'),
                                                   "! Next ",
                                                   "\f",
                                                   "\r\n"};
  std::string out;
  for (size_t i = 0; i < pieces; ++i) out += kPieces[random() % kPieces.size()];
  return out;
}

TEST(DocumentChunksTest, ChunksCoverTheTextInOrderAndWithinTheirTokens) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const std::string text = RandomText(random, random() % 300);
    const size_t most = 1 + random() % 60;
    const int passes = 1 + static_cast<int>(random() % 3);
    // Bytes as tokens: what no tokenizer does worse.
    const auto count = [&](std::string_view part) {
      return round % 2 == 0 ? part.size() : WordsOf(part);
    };
    DocumentChunks chunks(text, {.max_tokens = most, .passes = passes}, count);
    std::vector<std::vector<bool>> covered(static_cast<size_t>(passes),
                                           std::vector<bool>(text.size(), false));
    size_t begin = 0, end = 0;
    int pass = 0, number = 0;
    while (const auto chunk = chunks.Next()) {
      ASSERT_EQ(chunk->number, number++);
      ASSERT_LT(chunk->begin, chunk->end);
      ASSERT_LE(chunk->end, text.size());
      if (chunk->pass == pass && chunk->number > 0) {
        ASSERT_GT(chunk->begin, begin) << text;
        ASSERT_GT(chunk->end, end) << "round " << round << ", " << most << " tokens, pass " << pass
                                   << ", from " << begin << " and " << chunk->begin << ": " << text;
      }
      ASSERT_GE(chunk->pass, pass);
      pass = chunk->pass, begin = chunk->begin, end = chunk->end;
      const std::string_view part = chunk->TextOf(text);
      EXPECT_EQ(FindInvalidUtf8(part), std::string::npos);
      EXPECT_EQ(std::string(" \n\t\r\f").find(part.front()), std::string::npos);
      EXPECT_EQ(std::string(" \n\t\r\f").find(part.back()), std::string::npos);
      EXPECT_EQ(chunk->begin_character,
                static_cast<int64_t>(DecodeCodepoints(text.substr(0, begin)).size()));
      EXPECT_EQ(chunk->end_character,
                static_cast<int64_t>(DecodeCodepoints(text.substr(0, end)).size()));
      // A single character may have more tokens than a chunk.
      const bool single = DecodeCodepoints(part).size() == 1;
      EXPECT_LE(single ? 0 : count(part), std::max<size_t>(most, 4));
      for (size_t i = begin; i < end; ++i) covered[static_cast<size_t>(pass)][i] = true;
    }
    for (const std::vector<bool>& of_pass : covered) {
      for (size_t i = 0; i < text.size(); ++i) {
        const bool blank = std::string(" \n\t\r\f").find(text[i]) != std::string::npos;
        EXPECT_TRUE(blank || of_pass[i]) << i << " of " << text;
      }
    }
  }
}

// The bug: a word that is longer than a chunk was cut, and what was left of it taken for a word.
TEST(DocumentChunksTest, SpansOfChunksAreSpansOfTheDocument) {
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {"ab",
                                           "1",
                                           "23",
                                           ".",
                                           ",",
                                           "'",
                                           " ",
                                           "-",
                                           "é",
                                           "\u0301",
                                           "漢",
                                           "_",
                                           "long" + std::string(9, 'g')};
  int cuts = 0, spans = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = "x";
    for (size_t n = random() % 60; n > 0; --n) text += pieces[random() % pieces.size()];
    SourceText whole(text, SourceText::Spaces::kAsGiven);
    DocumentChunks chunks(text, {.max_tokens = 2 + random() % 12},
                          [](std::string_view part) { return part.size(); });
    while (const auto chunk = chunks.Next()) {
      cuts += int{chunk->cut_begin} + int{chunk->cut_end};
      const std::string part = WithCuts(chunk->TextOf(text), {chunk->cut_begin, chunk->cut_end});
      SourceText source(part, SourceText::Spaces::kAsGiven);
      const auto first = static_cast<size_t>(chunk->begin_character);
      for (size_t i = 0; i < source.text().size(); ++i) {
        const bool begins = source.BeginsAt(SpanKind::kSpan, i);
        const bool ends = source.EndsAt(SpanKind::kSpan, i + 1);
        spans += int{begins};
        EXPECT_TRUE(!begins || whole.BeginsAt(SpanKind::kSpan, first + i)) << text << ": " << part;
        EXPECT_TRUE(!ends || whole.EndsAt(SpanKind::kSpan, first + i + 1)) << text << ": " << part;
        // Where no word is cut the borders are the same ones.
        if (!chunk->cut_begin && !chunk->cut_end) {
          EXPECT_EQ(begins, whole.BeginsAt(SpanKind::kSpan, first + i)) << text << ": " << part;
        }
        EXPECT_TRUE(source.BeginsAt(SpanKind::kChars, i));
      }
    }
  }
  EXPECT_GT(cuts, 100);
  EXPECT_GT(spans, 1000);
}

TEST(DocumentChunksTest, BordersAreThoseOfParagraphsAndSentences) {
  const std::string text =
      "First one. It has two sentences.\n\nA second paragraph of the text is here. And so on, of "
      "3.5 words.\n\nThe third and last one has a few more words.";
  DocumentChunks chunks(text, {.max_tokens = 14}, WordsOf);
  std::vector<std::string> all;
  while (const auto chunk = chunks.Next()) all.emplace_back(chunk->TextOf(text));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], "First one. It has two sentences.\n\nA second paragraph of the text is here.");
  EXPECT_TRUE(all[1].ends_with("3.5 words.")) << all[1];
  EXPECT_TRUE(all[2].ends_with("The third and last one has a few more words.")) << all[2];
  // What stands at a border is in both chunks.
  EXPECT_TRUE(all[1].find("here. And") != std::string::npos) << all[1];
  // A further pass has other borders.
  DocumentChunks again(text, {.max_tokens = 14, .passes = 2}, WordsOf);
  std::map<int, std::vector<size_t>> ends;
  while (const auto chunk = again.Next()) ends[chunk->pass].push_back(chunk->end);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_NE(ends[0], ends[1]);
}

// Bug: chunks of few tokens ended inside of numbers, whose ends were then read as values.
TEST(DocumentChunksTest, NumbersAndWordsAreWhole) {
  std::string text, word;
  for (int i = 0; i < 60; ++i)
    text += std::to_string(100 + i) + (i % 2 == 0 ? ",240.50 " : ",240,000,000.75 ");
  for (int i = 0; i < 40; ++i) word += "part" + std::to_string(i) + "-";
  text += word;
  const auto bytes = [](std::string_view part) { return part.size(); };
  DocumentChunks chunks(text, {.max_tokens = 24}, bytes);
  const auto is_word = [](char c) { return c != ' ' && c != '-'; };
  int number = 0;
  while (const auto chunk = chunks.Next()) {
    ++number;
    for (const size_t at : {chunk->begin, chunk->end}) {
      if (at == 0 || at == text.size()) continue;
      EXPECT_FALSE(is_word(text[at - 1]) && is_word(text[at])) << chunk->TextOf(text);
    }
  }
  EXPECT_GT(number, 40);
}

// ---- Merging ----

struct Part {
  Value record;
  std::vector<ValueDetails> details;
  int64_t begin, end;
};

// Keys a, b: scalars; l: a list of records, some with a list; o: an object with a list of scalars.
Value RandomRecord(std::mt19937& random) {
  const auto scalar = [&]() -> std::string {
    static const std::vector<std::string> kValues = {"1",    "1.0",  "\"x\"", "\"y\"",
                                                     "null", "true", "[]",    "{}"};
    return kValues[random() % kValues.size()];
  };
  const auto list = [&](bool records) {
    std::string out = "[";
    for (size_t i = random() % 4; i > 0; --i) {
      const std::string k = random() % 2 == 0 ? "\"p\"" : "\"q\"";
      const std::string own = random() % 2 == 0 ? "" : ",\"m\":[" + k + ",[" + k + "]]";
      out += records ? "{\"k\":" + k + ",\"n\":" + std::to_string(random() % 2) + own + "}" : k;
      out += i > 1 ? "," : "";
    }
    return out + "]";
  };
  std::string out;
  const auto add = [&](const char* key, const std::string& value) {
    if (random() % 5 == 0) return;
    out += (out.empty() ? "\"" : ",\"") + std::string(key) + "\":" + value;
  };
  add("a", scalar());
  add("b", scalar());
  add("l", list(true));
  add("u", list(false));
  if (random() % 2 == 0) add("o", "{\"t\":" + list(false) + ",\"s\":" + scalar() + "}");
  return *json::Parse("{" + out + "}");
}

void AddRandomDetails(std::mt19937& random, const Value& value, const std::string& pointer,
                      Part& part) {
  for (const json::Member& one : value.members) {
    AddRandomDetails(random, one.second, json::PointerJoin(pointer, one.first), part);
  }
  for (size_t i = 0; i < value.items.size(); ++i) {
    AddRandomDetails(random, value.items[i], json::PointerJoin(pointer, std::to_string(i)), part);
  }
  if (value.size() > 0 || pointer.empty()) return;
  ValueDetails& detail = part.details.emplace_back();
  detail.pointer = pointer;
  if (random() % 6 != 0) detail.probability = static_cast<double>(random() % 8) / 8;
  if (random() % 3 != 0) {
    const int64_t at = part.begin + static_cast<int64_t>(random() % 8);
    detail.span = {at, at + 1 + static_cast<int64_t>(random() % 3), at, at};
  }
}

// The rules of docs/extraction.md, value by value over all parts.
class SlowMerge {
 public:
  explicit SlowMerge(const std::vector<Part>& parts) : parts_(parts) {}

  Value At(const std::string& pointer) {
    // The kinds of values there: 0 scalars, 1 objects, 2 lists.
    double best[3] = {-2, -2, -2};
    size_t first[3] = {0, 0, 0};
    bool there[3] = {false, false, false}, null = false;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const Value* value = In(p, pointer);
      if (value == nullptr) continue;
      null = null || value->type == json::Type::kNull;
      if (value->type == json::Type::kNull) continue;
      const int kind = value->type == json::Type::kObject  ? 1
                       : value->type == json::Type::kArray ? 2
                                                           : 0;
      if (!there[kind]) first[kind] = p;
      there[kind] = true;
      best[kind] = std::max(best[kind], Probability(p, *value, pointer));
    }
    int chosen = -1;
    for (const int kind : {0, 1, 2}) {
      if (!there[kind]) continue;
      const bool better = chosen < 0 || best[kind] > best[chosen] ||
                          (best[kind] == best[chosen] && first[kind] < first[chosen]);
      if (better) chosen = kind;
    }
    if (chosen < 0) return Value();
    return chosen == 0 ? Scalar(pointer) : chosen == 1 ? Object(pointer) : List(pointer);
  }

 private:
  const Value* In(size_t part, const std::string& pointer) const {
    const Value* at = &parts_[part].record;
    for (const std::string& token : json::PointerTokens(pointer)) {
      at = at->type == json::Type::kArray ? json::ItemAt(*at, token) : at->Find(token);
      if (at == nullptr) return nullptr;
    }
    return at;
  }
  const ValueDetails* Detail(size_t part, const std::string& pointer) const {
    for (const ValueDetails& one : parts_[part].details) {
      if (one.pointer == pointer) return &one;
    }
    return nullptr;
  }
  double Probability(size_t part, const Value& value, const std::string& pointer) const {
    if (value.size() == 0) {
      const ValueDetails* detail = Detail(part, pointer);
      return detail == nullptr ? -1 : detail->probability.value_or(-1);
    }
    double out = 1;
    for (const ValueDetails& one : parts_[part].details) {
      if (one.pointer.starts_with(pointer + "/")) out *= one.probability.value_or(0);
    }
    return out;
  }

  // Different values in the order in which they come, each with its best probability.
  Value Scalar(const std::string& pointer) {
    std::vector<std::pair<const Value*, double>> values;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const Value* value = In(p, pointer);
      if (value == nullptr || value->type == json::Type::kNull ||
          value->type == json::Type::kArray || value->type == json::Type::kObject) {
        continue;
      }
      const double probability = Probability(p, *value, pointer);
      size_t same = 0;
      while (same < values.size() && CanonicalJson(*values[same].first) != CanonicalJson(*value)) {
        ++same;
      }
      if (same == values.size()) values.emplace_back(value, probability);
      if (probability > values[same].second) values[same] = {value, probability};
    }
    size_t best = 0;
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i].second > values[best].second) best = i;
    }
    return *values[best].first;
  }

  Value Object(const std::string& pointer) {
    Value out;
    out.type = json::Type::kObject;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const Value* value = In(p, pointer);
      if (value == nullptr) continue;
      for (const json::Member& member : value->members) {
        if (out.Find(member.first) != nullptr) continue;
        out.members.emplace_back(member.first, At(json::PointerJoin(pointer, member.first)));
      }
    }
    return out;
  }

  struct Item {
    size_t part, index;
    std::vector<size_t> users;  // parts that have it
    int64_t place;
  };
  bool Same(const std::string& pointer, size_t part, size_t index, const Item& item) const {
    const std::string mine = pointer + "/" + std::to_string(index);
    const std::string other = pointer + "/" + std::to_string(item.index);
    if (CanonicalJson(*In(part, mine)) != CanonicalJson(*In(item.part, other))) return false;
    bool mine_placed = false, other_placed = false, touch = false;
    const auto overlap = [](int64_t a, int64_t b, int64_t c, int64_t d) { return a < d && c < b; };
    for (const ValueDetails& a : parts_[part].details) {
      if ((a.pointer + "/").starts_with(mine + "/"))
        mine_placed = mine_placed || a.span.has_value();
    }
    for (const ValueDetails& b : parts_[item.part].details) {
      if (!(b.pointer + "/").starts_with(other + "/") || !b.span) continue;
      other_placed = true;
      const ValueDetails* a = Detail(part, mine + b.pointer.substr(other.size()));
      if (a != nullptr && a->span) {
        touch = touch || overlap(a->span->begin, a->span->end, b.span->begin, b.span->end);
      }
    }
    if (mine_placed && other_placed) return touch;
    const auto touches_chunk = [&](size_t placed_part, const std::string& at, const Part& chunk) {
      for (const ValueDetails& one : parts_[placed_part].details) {
        if (!(one.pointer + "/").starts_with(at + "/") || !one.span) continue;
        if (overlap(one.span->begin, one.span->end, chunk.begin, chunk.end)) return true;
      }
      return false;
    };
    if (mine_placed) return touches_chunk(part, mine, parts_[item.part]);
    if (other_placed) return touches_chunk(item.part, other, parts_[part]);
    return overlap(parts_[part].begin, parts_[part].end, parts_[item.part].begin,
                   parts_[item.part].end);
  }

  Value List(const std::string& pointer) {
    std::vector<Item> items;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const Value* value = In(p, pointer);
      if (value == nullptr || value->type != json::Type::kArray) continue;
      size_t behind = 0;
      for (size_t i = 0; i < value->items.size(); ++i) {
        size_t same = 0;
        while (same < items.size() &&
               (std::ranges::find(items[same].users, p) != items[same].users.end() ||
                !Same(pointer, p, i, items[same]))) {
          ++same;
        }
        if (same < items.size()) {
          items[same].users.push_back(p);
          behind = std::max(behind, same + 1);
          continue;
        }
        int64_t place = parts_[p].begin;
        bool placed = false;
        const std::string at = pointer + "/" + std::to_string(i);
        for (const ValueDetails& one : parts_[p].details) {
          if (!(one.pointer + "/").starts_with(at + "/") || !one.span) continue;
          place = placed ? std::min(place, one.span->begin) : one.span->begin;
          placed = true;
        }
        size_t to = behind;
        while (to < items.size() && items[to].place <= place) ++to;
        items.insert(items.begin() + static_cast<ptrdiff_t>(to), Item{p, i, {p}, place});
        behind = to + 1;
      }
    }
    Value out;
    out.type = json::Type::kArray;
    for (const Item& item : items) {
      out.items.push_back(*In(item.part, pointer + "/" + std::to_string(item.index)));
    }
    return out;
  }

  const std::vector<Part>& parts_;
};

TEST(DocumentMergeTest, RandomRecordsAgainstTheRules) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Part> parts;
    DocumentMerge merge("{}");
    for (size_t i = 1 + random() % 4; i > 0; --i) {
      const auto begin = static_cast<int64_t>(random() % 12);
      Part part{RandomRecord(random), {}, begin, begin + 10};
      AddRandomDetails(random, part.record, "", part);
      merge.Add({part.record, part.details, part.begin, part.end});
      parts.push_back(std::move(part));
    }
    const MergedRecord merged = merge.Take();
    const std::string record = json::Dump(merged.record);
    std::string of;
    for (const Part& part : parts) of += "\n" + json::Dump(part.record);
    ASSERT_EQ(record, json::Dump(SlowMerge(parts).At(""))) << of;
    // Each detail is that of an equal value of a part, and each value that stays has one.
    std::vector<std::string> pointers;
    for (const ValueDetails& one : merged.details) pointers.push_back(one.pointer);
    Part all{merged.record, {}, 0, 0};
    AddRandomDetails(random, merged.record, "", all);
    std::vector<std::string> wanted;
    for (const ValueDetails& one : all.details) wanted.push_back(one.pointer);
    ASSERT_EQ(pointers, wanted) << record << of;
    // A part alone is the record.
    EXPECT_TRUE(parts.size() > 1 || record == json::Dump(parts[0].record)) << of;
  }
}

ValueDetails DetailOf(const char* pointer, double probability, int64_t begin, int64_t end) {
  ValueDetails out;
  out.pointer = pointer;
  out.probability = probability;
  out.span = {begin, end, begin, end};
  return out;
}

TEST(DocumentMergeTest, ConflictsKeepTheOtherValues) {
  DocumentMerge merge(R"({"properties":{"tags":{"maxItems":2},"u":{"$ref":"#/$defs/u"}},
    "$defs":{"u":{"uniqueItems":true}}})");
  merge.Add({*json::Parse(R"({"v":"Acme","w":null,"tags":["a","b"],"u":[1]})"),
             {DetailOf("/v", 0.5, 0, 4), DetailOf("/tags/0", 1, 5, 6), DetailOf("/tags/1", 1, 7, 8),
              DetailOf("/u/0", 1, 9, 10)},
             0,
             20});
  merge.Add({*json::Parse(R"({"v":"Bolt","w":3,"tags":["b","b"],"u":[1.0,2]})"),
             {DetailOf("/v", 0.75, 30, 34), DetailOf("/w", 0.1, 35, 36),
              DetailOf("/tags/0", 1, 7, 8), DetailOf("/tags/1", 0.5, 40, 41)},
             5,
             50});
  const MergedRecord merged = merge.Take();
  EXPECT_EQ(json::Dump(merged.record), R"({"v":"Bolt","w":3,"tags":["a","b"],"u":[1,2]})");
  EXPECT_EQ(ConflictsJson(merged.conflicts),
            R"("conflicts":{"/v":[{"value":"Acme","probability":0.5,"span":[0,4],)"
            R"("byte_span":[0,4]}],"/tags":[{"value":"b","probability":0.5}]})");
  EXPECT_EQ(ConflictsJson({}), "\"conflicts\":{}");
}

}  // namespace
}  // namespace pawl
