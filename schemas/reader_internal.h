// The reader's own parts, shared by schema_reader.cc, reader_keywords.cc and reader_unevaluated.cc.
#ifndef PAWL_SCHEMAS_READER_INTERNAL_H_
#define PAWL_SCHEMAS_READER_INTERNAL_H_

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/json_schema_options.h"
#include "schemas/atoms.h"
#include "schemas/references.h"
#include "schemas/schema_reader.h"
#include "src/base/json.h"

namespace pawl::schema {

// Where the reader stands: a chain of tokens up to the root (or to a reference's target), made into
// a JSON Pointer only for messages.
struct Path {
  const Path* parent = nullptr;
  std::string_view token;
  size_t index = SIZE_MAX;  // used when token is empty
  std::string_view root = "#";
  std::string ToString() const;
};

class Reader {
 public:
  Reader(const json::Value& document, const JsonSchemaOptions& options, Dialect dialect,
         SchemaTable& table);
  Result<FormulaId> ReadAll();
  std::vector<std::string> TakeNotes() { return std::move(notes_); }

 private:
  using Value = json::Value;
  using FormulaResult = Result<FormulaId>;

  // One schema at `path`, under the base URI of its surroundings.
  FormulaResult Schema(const Value& value, const Path& path, const std::string& base);
  FormulaResult ObjectSchema(const Value& schema, const Path& path, const std::string& base);
  FormulaResult Reference(const Value& text, const Path& path, const std::string& base);
  // A formula that stands for the schema at `target`, which is read later.
  FormulaId ReferenceTo(const References::Target& target);

  // The keywords of one kind in `schema`; kTrueFormula when there are none.
  FormulaResult Types(const Value& value, const Path& path);
  FormulaResult Strings(const Value& schema, const Path& path);
  FormulaResult Numbers(const Value& schema, const Path& path);
  FormulaResult Arrays(const Value& schema, const Path& path, const std::string& base);
  FormulaResult Objects(const Value& schema, const Path& path, const std::string& base);
  FormulaResult Dependencies(const Value& schema, const Path& path, const std::string& base);
  FormulaResult Combinations(const Value& schema, const Path& path, const std::string& base);
  FormulaResult Format(const Value& value, const Path& path);
  FormulaResult Pattern(std::string_view pattern, const Path& path);
  FormulaResult Requires(const std::string& name);
  Result<std::vector<FormulaId>> SchemaList(const Value& value, const Path& path,
                                            const std::string& base);
  Status CheckKeywords(const Value& schema, const Path& path);

  // unevaluatedProperties / unevaluatedItems (reader_unevaluated.cc).
  struct Evaluated;
  FormulaResult Unevaluated(const Value& schema, const Path& path, const std::string& base);

  Result<uint64_t> Count(const Value& value, const Path& path);
  Result<Decimal> Number(const Value& value, const Path& path);
  Result<std::vector<std::string>> Names(const Value& value, const Path& path);
  Error Fail(ErrorCode code, const Path& path, std::string message) const {
    return {code, std::move(message), path.ToString()};
  }
  Error Wrong(const Path& path, const std::string& expected) const {
    return Fail(ErrorCode::kInvalid, path, "must be " + expected);
  }
  void Note(const Path& path, const std::string& text) {
    notes_.push_back(path.ToString() + ": " + text);
  }
  bool At(Dialect dialect) const { return dialect_ >= dialect; }

  const Value& document_;
  const JsonSchemaOptions& options_;
  Dialect dialect_;
  SchemaTable& table_;
  FormulaArena& formulas_;
  References references_;
  std::unordered_map<const Value*, FormulaId> targets_;
  struct Open {
    References::Target target;
    FormulaId formula;
  };
  std::deque<Open> open_;  // references to be read
  std::vector<std::string> notes_;
  int depth_ = 0;
  int64_t schemas_ = 0;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READER_INTERNAL_H_
