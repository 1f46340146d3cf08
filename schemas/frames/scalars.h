// Scalars: the searches over strings and numbers that goals need, each made once per distinct goal.
#ifndef PAWL_SCHEMAS_FRAMES_SCALARS_H_
#define PAWL_SCHEMAS_FRAMES_SCALARS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/formula/merging.h"
#include "schemas/frames/frames.h"
#include "schemas/limits.h"
#include "schemas/scalar/number_program.h"
#include "schemas/scalar/string_search.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class Scalars {
 public:
  // `around_accepts(frame, truth)`: whether the frame around can live with these outcomes of its
  // tracks.
  using AroundAccepts = std::function<bool(FrameId, const std::vector<bool>&)>;
  Scalars(SchemaTable& table, const JsonSchemaOptions& options, AroundAccepts around_accepts)
      : table_(table),
        options_(options),
        around_accepts_(std::move(around_accepts)),
        merging_(table) {
    table_.spending->max_steps = limits::kStringQuestions * options.step_fuel;
    table_.spending->max_bytes = static_cast<size_t>(limits::kBytesPerStep * options.step_fuel);
  }

  // A string value that meets the goal. The reference stays valid.
  StringSearch& String(const Goal& goal);
  // A number that meets the goal. nullptr when its conditions exceed a limit (the compiler checks
  // beforehand).
  NumberProgram* Number(const Goal& goal);

  // Outcomes of the goal's tracks for a string or number that ends in this state.
  std::vector<bool> StringTruth(const Goal& goal, StringProgram::StateId state);
  std::vector<bool> NumberTruth(const Goal& goal, NumberProgram::StateId state);

  // What decides the shortest string that fulfils the formula, where it is a format and no more;
  // empty: it is not. For SchemaTable::witnesses. REQUIRES: of ForKind.
  std::string FormatOf(FormulaId formula);

  // Some regex ran into its limits, so "nothing fits" may be wrong.
  bool overflow() const;

  std::shared_ptr<StringProgram> Program(const std::vector<AtomId>& atoms);

  size_t MemoryBytes() const { return HeapBytes(merging_, programs_, strings_, numbers_); }
  // Programs and searches are few, or there are few states in each.
  size_t GrowthHint() const {
    return program_bytes_ + strings_.size() * 600 + numbers_.size() * 2000;
  }

 private:
  // Formulas of the goal for one kind; goals that agree on these share a search.
  using Shape = std::tuple<FormulaId, std::vector<FormulaId>, FrameId>;
  struct StringEntry {
    std::shared_ptr<StringProgram> program;
    std::unique_ptr<StringSearch> search;
    size_t MemoryBytes() const { return HeapBytes(search); }  // the program is in programs_
  };
  StringEntry SearchFor(const Shape& shape);
  Shape ShapeFor(const Goal& goal, Kind kind);
  std::vector<FormulaId> TracksOf(const Goal& goal, Kind kind);
  template <typename TruthOf>
  std::vector<bool> Truths(const std::vector<FormulaId>& tracks, const TruthOf& truth_of);
  template <typename TruthOf>
  bool Fits(const Shape& shape, const TruthOf& truth_of);
  // What the formula says of one kind, in as few atoms as that takes.
  FormulaId OfKind(FormulaId formula, Kind kind) {
    return merging_.Of(table_.formulas.ForKind(formula, kind));
  }
  std::vector<AtomId> AtomsOf(const Shape& shape);
  // A string formula less what is not written of it: see SchemaTable::written and
  // JsonSchemaOptions::max_string. REQUIRES: of ForKind.
  FormulaId AsWritten(FormulaId must);
  // Grammar::Bind comes later.
  bool WaitsForSource() const;
  // The same less the strings that contain one of JsonSchemaOptions::excluded_texts.
  FormulaId WithoutExcluded(FormulaId must);

  SchemaTable& table_;
  const JsonSchemaOptions& options_;
  AroundAccepts around_accepts_;
  Merging merging_;
  std::map<std::vector<AtomId>, std::shared_ptr<StringProgram>> programs_;
  size_t program_bytes_ = 0;  // when they were made
  std::map<Shape, StringEntry> strings_;
  std::map<Shape, std::unique_ptr<NumberProgram>> numbers_;
  std::string options_key_;  // once it was asked for
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FRAMES_SCALARS_H_
