// The reader's own parts, shared by schema_reader.cc and reader_*.cc.
#ifndef PAWL_SCHEMAS_READ_READER_INTERNAL_H_
#define PAWL_SCHEMAS_READ_READER_INTERNAL_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "schemas/formula/atoms.h"
#include "schemas/read/references.h"
#include "schemas/read/schema_reader.h"
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

// Puts what a function read into `out`, or tells why there is nothing.
template <typename Out, typename T>
std::optional<Error> Take(Out& out, Result<T> read) {
  if (!read.ok()) return read.error();
  out = *std::move(read);
  return std::nullopt;
}

class Reader {
 public:
  Reader(const json::Value& document, const JsonSchemaOptions& options, Dialect dialect,
         const FormatCache* formats, SchemaTable& table);
  Result<FormulaId> ReadAll();
  std::vector<std::string> TakeNotes();
  // With Keys::kAll: a value may fit several branches of objects, which differ in the keys that may
  // be left out.
  bool has_object_unions() const { return has_object_unions_; }

 private:
  using Value = json::Value;
  using FormulaResult = Result<FormulaId>;

  // The dynamic scope, as far as it can matter: for each dynamic anchor the outermost of the
  // resources entered so far that has it ("$recursiveAnchor" counts as one, called kRecursive).
  using Scope = std::map<std::string, const Resource*>;
  using ScopeId = uint32_t;  // index into scopes_; 0: empty
  static constexpr const char* kRecursive = "#";
  // What a schema means depends on where it stands and on how one came there.
  // Whether a field may be copied from a text: not under not, if or propertyNames. kPlain reads a
  // schema as a validator does, to which the keyword says nothing: what oneOf excludes.
  enum class Copying : uint8_t { kAllowed, kRefused, kPlain };
  struct Here {
    const Resource* resource;
    ScopeId scope = 0;
    // With Keys::kAll or Nulls::kDrop: keys are asked for as the schema has them, because something
    // around it may judge which keys are there (reader_keys.cc).
    bool given = false;
    Copying copying = Copying::kAllowed;
  };
  // Whether a schema speaks of a value for itself, or together with others of the same value. Only
  // the former closes its objects (JsonSchemaOptions::additional_properties).
  enum class Stands : uint8_t { kAlone, kInPlace };
  // Inside `value`, which is a resource of its own or not.
  Here Enter(const Value& value, Here around);
  Here EnterResource(const Resource& resource, Here around);

  // One schema at `path`, in the surroundings here_.
  FormulaResult Schema(const Value& value, const Path& path, Stands stands = Stands::kAlone);
  FormulaResult ObjectSchema(const Value& schema, const Path& path, Stands stands);
  // The schema that a "$ref", "$dynamicRef" or "$recursiveRef" at a place in `here` means. Errors
  // have no place.
  Result<References::Target> Referred(const std::string& keyword, const Value& text, Here here);
  FormulaResult Reference(const std::string& keyword, const Value& text, const Path& path,
                          Stands stands);
  // The formula of the schema `value`, which stands in `around`: what was read already, or a
  // reference that stands for it until it is read. `pointer`: its place.
  FormulaId FormulaOf(const Value& value, Here around, const std::string& pointer,
                      Stands stands = Stands::kInPlace);
  // How what `schema` applies in place stands: alone where `schema` does nothing but choose or
  // refer.
  Stands Inside(const Value& schema, Stands stands) const;
  // Keys::kAll and Nulls::kDrop (reader_keys.cc). Whether something else than the object's own keys
  // judges which keys are there; then everything inside is read as it was given. Notes what stays
  // optional.
  bool ReadsKeys() const {
    return options_.keys == JsonSchemaOptions::Keys::kAll ||
           options_.nulls == JsonSchemaOptions::Nulls::kDrop;
  }
  bool JudgesKeys(const Value& schema, const Path& path);
  bool IsTagged(const Value& branches) const;
  const Value* BranchOf(const Value& branch) const;
  // Asks for the keys of `atom`.
  void AskForKeys(const Path& path, ObjectAtom& atom);
  // Nothing but what is evaluated may be there, though the schema does not say so.
  FormulaResult Closed(const Value& schema, const Path& path);

  // The keywords of one kind in `schema`; kTrueFormula when there are none.
  FormulaResult Types(const Value& value, const Path& path);
  FormulaResult Strings(const Value& schema, const Path& path);
  FormulaResult Numbers(const Value& schema, const Path& path);
  FormulaResult Arrays(const Value& schema, const Path& path);
  FormulaResult Objects(const Value& schema, const Path& path);
  // "x-pawl-source", and fields that the option `verbatim` makes so (reader_source.cc).
  FormulaResult Source(const Value& schema, const Path& path);
  bool IsVerbatim(const Value& schema) const;
  Result<std::vector<std::u32string>> FormatsInSource(const std::string& format);
  std::vector<std::string> NamedTypes(const Value& schema) const;
  // A schema in whose place no field is copied from a text.
  FormulaResult DeniedSchema(const Value& value, const Path& path, Stands stands) {
    const Copying before =
        std::exchange(here_.copying, may_copy_ ? Copying::kRefused : Copying::kAllowed);
    FormulaResult formula = Schema(value, path, stands);
    here_.copying = before;
    return formula;
  }
  FormulaResult Dependencies(const Value& schema, const Path& path);
  FormulaResult ExactlyOne(const Value& value, const Path& path, Stands stands,
                           const std::vector<FormulaId>& kids);
  FormulaResult Combinations(const Value& schema, const Path& path, Stands inside);
  std::optional<Error> TooManyContainers(const std::vector<const Value*>& constants,
                                         const Path& at) const;
  FormulaResult Format(const Value& value, const Path& path);
  FormulaResult Pattern(std::string_view pattern, const Path& path);
  FormulaId Present(const std::string& name);
  Result<std::vector<FormulaId>> SchemaList(const Value& value, const Path& path,
                                            Stands stands = Stands::kAlone);
  Status CheckKeywords(const Value& schema, const Path& path);
  Status CheckForm(const std::string& name, const Value& value, const Path& path);

  // unevaluatedProperties / unevaluatedItems (reader_unevaluated.cc).
  struct Evaluated;
  struct Visit;
  FormulaResult Unevaluated(const Value& schema, const Path& path);
  Result<std::vector<Evaluated>> Evaluations(const Value& schema, const Path& path);
  void AddEvaluation(const Visit& visit, Here here, bool is_top, const Path& path, Evaluated& sum);
  FormulaResult UnevaluatedProperties(const std::vector<Evaluated>& seen, FormulaId value,
                                      const Path& path);
  FormulaResult UnevaluatedItems(const std::vector<Evaluated>& seen, FormulaId value,
                                 const Path& path);

  Result<uint64_t> Count(const Value& value, const Path& path);
  Result<Decimal> Number(const Value& value, const Path& path);
  Result<std::vector<std::string>> Names(const Value& value, const Path& path);
  Error Fail(ErrorCode code, const Path& path, std::string message) const {
    return {code, std::move(message), path.ToString()};
  }
  Error Wrong(const Path& path, const std::string& expected) const {
    return Fail(ErrorCode::kInvalid, path, "must be " + expected);
  }
  // A remark on the keyword `value` at `path`, once for each place.
  void Note(const Value& value, const Path& path, const std::string& why) {
    if (noted_.insert(&value).second)
      notes_.push_back(path.ToString() + ": " + std::string(path.token) + ": " + why);
  }
  // The keyword that a name is a misspelling of; "": of none. Schemas may have any number of names,
  // so it looks at kMostHints of them.
  std::string_view MeantBy(std::string_view name);
  static constexpr int kMostHints = 1000;
  // With list_annotations (schema_reader.cc): the keywords of `schema` that demand nothing.
  void ListAnnotations(const Value& schema, const Path& path);
  std::string WhyAnnotation(const std::string& name, const Value& value, const Value& schema) const;
  Dialect dialect() const { return here_.resource->language.dialect; }
  // Keywords that the metaschema leaves without meaning.
  bool Ignored(std::string_view keyword) const;
  bool IgnoresNone() const { return here_.resource->language.validation; }
  bool At(Dialect first) const { return dialect() >= first; }

  const Value& document_;
  const JsonSchemaOptions& options_;
  const FormatCache* format_cache_;  // may be nullptr
  SchemaTable& table_;
  std::map<std::string, FormulaId> formats_;  // those met, which are slow to make
  std::map<std::string, std::vector<std::u32string>> found_formats_;  // FormatsInSource, by format
  FormulaArena& formulas_;
  References references_;
  Here here_;
  std::vector<Scope> scopes_;
  std::map<Scope, ScopeId> scope_index_;
  // By schema and the scope inside it: formulas of what has been read, references to the rest.
  using Place = std::tuple<const Value*, ScopeId, Stands, bool, Copying>;
  std::map<Place, FormulaId> read_, asked_;
  Place PlaceOf(const Value& value, Here here, Stands stands) const {
    return {&value, here.scope, options_.additional_properties ? Stands::kAlone : stands,
            here.given, here.copying};
  }
  struct Open {
    const Value* value;
    Here here;  // inside it
    Stands stands;
    std::string pointer;
    FormulaId formula;
  };
  std::deque<Open> open_;  // references to be read
  // The values of "$ref" and its like that were met: in what definition, and what they lead to.
  struct Use {
    FormulaId inside, target;
    const Value* value;
  };
  std::vector<Use> uses_;
  FormulaId reading_ = kTrueFormula;  // the reference whose definition is being read
  // What the items of arrays under uniqueItems are, and where that stands.
  struct Unique {
    FormulaId items;
    std::string pointer;
  };
  std::vector<Unique> unique_;
  Status CheckUnique();
  std::unordered_map<std::string, FormulaId> present_;
  std::vector<std::string> notes_;
  std::unordered_set<const Value*> noted_;
  int hints_ = 0;
  size_t listed_ = 0;     // by ListAnnotations
  size_t left_open_ = 0;  // notes of Closed
  bool has_object_unions_ = false;
  int depth_ = 0;
  int64_t schemas_ = 0;
  // Some field may be copied from a text. Elsewhere it makes no difference what is denied, and a
  // definition is read once.
  const bool may_copy_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_READER_INTERNAL_H_
