// Unique items whose later places few values fit: what may come next, byte by byte, against all
// arrays that fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "schemas/machine/schema_machine.h"
#include "schemas/read/schema_reader.h"
#include "tests/schemas/property_generators.h"

namespace pawl::schema {
namespace {

using Places = std::vector<std::vector<std::string>>;

// All arrays of different values, `least` at least, of which each is one of its place's.
void ListArrays(const Places& places, size_t least, std::vector<std::string>& values,
                std::set<std::string>& out) {
  if (values.size() >= least) {
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? "," : "") + value;
    out.insert(text + "]");
  }
  if (values.size() == places.size()) return;
  for (const std::string& value : places[values.size()]) {
    if (std::find(values.begin(), values.end(), value) != values.end()) continue;
    values.push_back(value);
    ListArrays(places, least, values, out);
    values.pop_back();
  }
}

std::string Prefix(const Places& places) {
  std::string out;
  for (const std::vector<std::string>& place : places) {
    std::string list;
    for (const std::string& value : place) list += (list.empty() ? "" : ",") + value;
    out += (out.empty() ? "" : ",") + (R"({"enum":[)" + list + "]}");
  }
  return R"("prefixItems":[)" + out + R"(],"items":false)";
}

TEST(LaterPlacesTest, WhatMayComeIsWhatLeadsToAnArray) {
  const std::vector<std::string> all = {"1",  "12",        "\"a\"", "\"b\"", "\"ab\"",
                                        "[]", "{\"k\":1}", "null",  "true"};
  property::Dice dice(11);
  int impossible = 0, bytes = 0;
  for (int round = 0; round < 600; ++round) {
    Places places(static_cast<size_t>(dice.Between(2, 4)));
    const int distinct = dice.Between(2, 9);
    for (std::vector<std::string>& place : places) {
      std::set<std::string> some;
      for (int n = dice.Between(1, 3); n > 0; --n)
        some.insert(all[static_cast<size_t>(dice.Between(0, distinct - 1))]);
      place.assign(some.begin(), some.end());
    }
    const size_t least = static_cast<size_t>(dice.Between(0, static_cast<int>(places.size())));
    const std::string bounds = Prefix(places) + R"(,"minItems":)" + std::to_string(least);
    const bool or_empty = dice.Between(0, 2) == 0, or_contains = dice.Between(0, 3) == 0;
    std::string schema = R"({"type":"array","uniqueItems":true,)";
    schema += or_empty ? R"("anyOf":[{)" + bounds + R"(},{"maxItems":0}])" : bounds;
    // Says nothing, but is counted.
    if (or_contains) schema += R"(,"contains":{"const":7},"minContains":0)";
    schema += "}";
    std::set<std::string> texts;
    std::vector<std::string> values;
    ListArrays(places, least, values, texts);
    if (or_empty) texts.insert("[]");

    JsonSchemaOptions options;
    options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    auto read = ReadJsonSchema(*json::Parse(schema), options);
    ASSERT_TRUE(read.ok()) << schema;
    SchemaMachine machine(std::move(read->table), options);
    ASSERT_EQ(machine.Start() != Machine::kDead, !texts.empty()) << schema;
    if (texts.empty()) {
      ++impossible;
      continue;
    }
    std::set<std::string> prefixes;
    for (const std::string& text : texts) {
      for (size_t n = 0; n <= text.size(); ++n) prefixes.insert(text.substr(0, n));
    }
    for (const std::string& prefix : prefixes) {
      Machine::Key key = machine.Start();
      for (const char c : prefix) key = machine.Step(key, static_cast<uint8_t>(c));
      ASSERT_NE(key, Machine::kDead) << schema << " " << prefix;
      for (const char c : std::string_view("12\"ab[]{}k:,nulltre")) {
        const bool leads = prefixes.contains(prefix + c);
        ASSERT_EQ(machine.Step(key, static_cast<uint8_t>(c)) != Machine::kDead, leads)
            << schema << " after " << prefix << " " << c;
      }
      bytes += static_cast<int>(prefix.size());
    }
    EXPECT_EQ(machine.undecided(), 0u) << schema;
  }
  EXPECT_GE(impossible, 20);
  EXPECT_GE(bytes, 5000);
}

}  // namespace
}  // namespace pawl::schema
