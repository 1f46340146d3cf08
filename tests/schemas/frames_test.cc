// Frames alone: values read member by member and item by item, and what the atoms come to at the
// end, against the independent validator on the whole value.
#include "schemas/frames/frames.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schemas/formula/atoms.h"
#include "schemas/read/schema_reader.h"
#include "schemas/solve/solver.h"
#include "src/base/utf8.h"
#include "tests/oracle/json_schema_validator.h"
#include "tests/schemas/dead_ends.h"

namespace pawl::schema {
namespace {

// The truth of formulas on values through frames: no demand is made of a value, and what it
// fulfils is only recorded.
class Reader {
 public:
  Reader(SchemaTable& table, const JsonSchemaOptions& options)
      : table_(table), frames_(table, options), solver_(frames_, options) {}

  bool Truth(FormulaId formula, const json::Value& value) {
    switch (value.type) {
      case json::Type::kNull:
        return table_.formulas.ForKind(formula, kNullValue) == kTrueFormula;
      case json::Type::kTrue:
        return table_.formulas.ForKind(formula, kTrueValue) == kTrueFormula;
      case json::Type::kFalse:
        return table_.formulas.ForKind(formula, kFalseValue) == kTrueFormula;
      case json::Type::kString:
        return OfString(table_.formulas.ForKind(formula, kStringValue), value.text);
      case json::Type::kNumber:
        return OfNumber(table_.formulas.ForKind(formula, kNumberValue), value.text);
      case json::Type::kArray:
        return OfContainer(kArrayValue, formula, value);
      case json::Type::kObject:
        return OfContainer(kObjectValue, formula, value);
    }
    return false;
  }

 private:
  bool OfString(FormulaId f, const std::string& text) {
    const auto program = solver_.scalars().Program(table_.formulas.Atoms(f));
    const StringProgram::StateId state = program->After(DecodeCodepoints(text));
    return table_.formulas.Evaluate(f, [&](AtomId atom) { return program->Truth(state, atom); });
  }
  bool OfNumber(FormulaId f, const std::string& text) {
    if (table_.formulas.IsConstant(f)) return f == kTrueFormula;
    NumberProgram* const program = solver_.scalars().Number({f, {}, kNoFrame});
    if (program == nullptr) return false;
    const NumberProgram::StateId state = program->After(text);
    return state != 0 && program->Accepts(state);
  }
  bool OfContainer(Kind kind, FormulaId formula, const json::Value& value) {
    const FormulaId f = table_.formulas.ForKind(formula, kind);
    if (table_.formulas.IsConstant(f)) return f == kTrueFormula;
    FrameId frame = frames_.Open(kind, {kTrueFormula, {f}, kNoFrame});
    for (const auto& [name, member] : value.members)
      frame = AfterChild(WithKey(frame, name), member);
    for (const json::Value& item : value.items) frame = AfterChild(frames_.WithItem(frame), item);
    std::vector<bool> truth;
    EXPECT_TRUE(frames_.EndTruth(frames_[frame], truth));
    return truth.at(0);
  }
  FrameId WithKey(FrameId frame, const std::string& name) {
    const ObjectLayout& layout = frames_.layout(frames_[frame].layout);
    const NameId id = frames_.InternName(name);
    const auto rank = layout.rank_of.find(id);
    return frames_.WithKey(frame, *layout.program, layout.program->After(DecodeCodepoints(name)),
                           rank == layout.rank_of.end() ? -1 : rank->second, id);
  }
  FrameId AfterChild(FrameId pending, const json::Value& child) {
    EXPECT_NE(pending, kNoFrame);
    const Goal goal = frames_.PendingGoal(pending);
    EXPECT_EQ(goal.must, kTrueFormula);
    std::vector<bool> truth;
    for (const FormulaId track : goal.tracks) truth.push_back(Truth(track, child));
    const std::string canonical = CanonicalText(child);
    const FrameId after = frames_.AfterValue(pending, truth, &canonical);
    EXPECT_NE(after, kNoFrame);
    return after;
  }

  SchemaTable& table_;
  Frames frames_;
  Solver solver_;
};

TEST(FramesTest, WhatAContainerFulfilsIsKnownAtItsEnd) {
  JsonSchemaOptions options;
  options.order = JsonSchemaOptions::Order::kAny;
  options.canonical_spelling = false;
  options.allow_exponents = true;
  std::vector<json::Value> values;
  std::vector<std::string> texts;
  for (const std::string& text : property::SmallInstances()) {
    auto value = json::Parse(text);
    if (!value.ok() || (value->members.empty() && value->items.empty())) continue;
    values.push_back(*std::move(value));
    texts.push_back(text);
  }
  int valid = 0, invalid = 0;
  for (uint64_t i = 0; i < property::KeywordPairs(); ++i) {
    const std::string schema = json::Dump(property::SmallSchema(23, i));
    auto read = ReadJsonSchema(*json::Parse(schema), options);
    const auto oracle = oracle::Validator::Create(schema, {});
    if (!read.ok() || !oracle.ok()) continue;
    Reader reader(*read->table, options);
    for (size_t k = i % 7; k < values.size(); k += 7) {
      const bool expected = (*oracle)->Validate(texts[k]) == oracle::Verdict::kValid;
      ++(expected ? valid : invalid);
      EXPECT_EQ(reader.Truth(read->table->root, values[k]), expected) << schema << "\n" << texts[k];
    }
  }
  EXPECT_GE(valid, 1000);
  EXPECT_GE(invalid, 1000);
}

}  // namespace
}  // namespace pawl::schema
