// A schema object becomes the conjunction of its keywords: each kind's keywords make one atom, the
// rest are operators over formulas. References are read from a work list, so neither long chains of
// references nor cycles recurse.
#include "schemas/schema_reader.h"

#include <algorithm>

#include "schemas/constant.h"
#include "schemas/reader_internal.h"

namespace pawl::schema {
namespace {

constexpr int kMaxReferenceChain = 1000;
constexpr int64_t kMaxSchemas = 500'000;

}  // namespace

std::string Path::ToString() const {
  std::vector<const Path*> chain;
  const Path* p = this;
  for (; p->parent != nullptr; p = p->parent) chain.push_back(p);
  std::string out(p->root);
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    out = json::PointerJoin(
        out, (*it)->index != SIZE_MAX ? std::to_string((*it)->index) : std::string((*it)->token));
  }
  return out;
}

Reader::Reader(const json::Value& document, const JsonSchemaOptions& options, Dialect dialect,
               SchemaTable& table)
    : document_(document),
      options_(options),
      dialect_(dialect),
      table_(table),
      formulas_(table.formulas),
      references_(document, dialect) {}

Result<FormulaId> Reader::ReadAll() {
  const FormulaId root = ReferenceTo({&document_, "", "#"});
  std::unordered_map<FormulaId, std::string> places;
  while (!open_.empty()) {
    const Open open = std::move(open_.front());
    open_.pop_front();
    places.emplace(open.formula, open.target.pointer);
    Path path;
    path.root = open.target.pointer;
    // The base URI of a target is the one inside it; Schema would apply its $id a second time,
    // which is harmless.
    auto formula = Schema(*open.target.value, path, open.target.base);
    if (!formula.ok()) return formula.error();
    formulas_.Define(open.formula, *formula);
  }
  const FormulaId bad = formulas_.FindBadReference(kMaxReferenceChain);
  if (bad != kTrueFormula) {
    const auto it = places.find(bad);
    return Error{ErrorCode::kInvalid,
                 "the reference leads back to itself without describing anything (or through too "
                 "many others)",
                 it == places.end() ? "#" : it->second};
  }
  return root;
}

FormulaId Reader::ReferenceTo(const References::Target& target) {
  const auto [it, fresh] = targets_.try_emplace(target.value, 0);
  if (fresh) {
    it->second = formulas_.NewReference();
    open_.push_back({target, it->second});
  }
  return it->second;
}

Result<FormulaId> Reader::Schema(const Value& value, const Path& path, const std::string& base) {
  if (value.type == json::Type::kTrue) return kTrueFormula;
  if (value.type == json::Type::kFalse) return kFalseFormula;
  if (value.type != json::Type::kObject) return Wrong(path, "a schema (an object or a boolean)");
  if (++schemas_ > kMaxSchemas)
    return Fail(ErrorCode::kLimit, path, "more than " + std::to_string(kMaxSchemas) + " schemas");
  if (depth_ >= options_.max_depth) {
    return Fail(
        ErrorCode::kLimit, path,
        "nested deeper than the limit of " + std::to_string(options_.max_depth) + " levels");
  }
  ++depth_;
  auto formula = ObjectSchema(value, path, references_.BaseInside(value, base));
  --depth_;
  return formula;
}

Result<FormulaId> Reader::ObjectSchema(const Value& schema, const Path& path,
                                       const std::string& base) {
  if (const Value* reference = schema.Find("$ref"); reference != nullptr && !At(Dialect::k2019)) {
    return Reference(*reference, {&path, "$ref"}, base);  // up to draft 7 its siblings do not count
  }
  if (Status status = CheckKeywords(schema, path); !status.ok()) return status.error();
  std::vector<FormulaId> parts;
  const auto add = [&](FormulaResult part) -> std::optional<Error> {
    if (!part.ok()) return part.error();
    parts.push_back(*part);
    return std::nullopt;
  };
  for (const auto& [name, value] : schema.members) {
    const Path at{&path, name};
    std::optional<Error> error;
    if (name == "$ref") {
      error = add(Reference(value, at, base));
    } else if (name == "$dynamicRef" && At(Dialect::k2020)) {
      if (value.type == json::Type::kString) {
        const size_t hash = value.text.find('#');
        const std::string anchor = hash == std::string::npos ? "" : value.text.substr(hash + 1);
        if (references_.DynamicAnchors(anchor) > 1) {
          return Fail(
              ErrorCode::kUnsupported, at,
              "\"$dynamicRef\" to an anchor that several resources define is not enforced yet");
        }
      }
      error = add(Reference(value, at, base));
    } else if (name == "$recursiveRef" && dialect_ == Dialect::k2019) {
      if (references_.has_recursive_anchor() && references_.resources() > 2) {
        return Fail(ErrorCode::kUnsupported, at,
                    "\"$recursiveRef\" across several resources is not enforced yet");
      }
      error = add(Reference(value, at, base));
    } else if (name == "type") {
      error = add(Types(value, at));
    } else if (name == "enum") {
      if (value.type != json::Type::kArray) return Wrong(at, "an array");
      std::vector<const Value*> values;
      for (const Value& item : value.items) values.push_back(&item);
      auto formula = EnumFormula(table_, values);
      if (!formula.ok()) return Fail(formula.error().code, at, formula.error().message);
      parts.push_back(*formula);
    } else if (name == "const" && At(Dialect::kDraft6)) {
      auto formula = ConstantFormula(table_, value);
      if (!formula.ok()) return Fail(formula.error().code, at, formula.error().message);
      parts.push_back(*formula);
    }
    if (error) return *error;
  }
  for (FormulaResult part : {Strings(schema, path), Numbers(schema, path)}) {
    if (auto error = add(std::move(part))) return *error;
  }
  if (auto error = add(Objects(schema, path, base))) return *error;
  if (auto error = add(Arrays(schema, path, base))) return *error;
  if (auto error = add(Dependencies(schema, path, base))) return *error;
  if (auto error = add(Combinations(schema, path, base))) return *error;
  if (auto error = add(Unevaluated(schema, path, base))) return *error;
  return formulas_.And(parts);
}

Result<FormulaId> Reader::Reference(const Value& text, const Path& path, const std::string& base) {
  if (text.type != json::Type::kString) return Wrong(path, "a string");
  auto target = references_.Resolve(base, text.text);
  if (!target.ok()) return Fail(target.error().code, path, target.error().message);
  return ReferenceTo(*target);
}

Result<std::vector<FormulaId>> Reader::SchemaList(const Value& value, const Path& path,
                                                  const std::string& base) {
  if (value.type != json::Type::kArray) return Wrong(path, "an array of schemas");
  std::vector<FormulaId> out;
  for (size_t i = 0; i < value.items.size(); ++i) {
    auto formula = Schema(value.items[i], {&path, {}, i}, base);
    if (!formula.ok()) return formula.error();
    out.push_back(*formula);
  }
  return out;
}

Result<FormulaId> Reader::Combinations(const Value& schema, const Path& path,
                                       const std::string& base) {
  std::vector<FormulaId> parts;
  for (const char* name : {"allOf", "anyOf", "oneOf"}) {
    const Value* value = schema.Find(name);
    if (value == nullptr) continue;
    auto kids = SchemaList(*value, {&path, name}, base);
    if (!kids.ok()) return kids.error();
    if (kids->empty()) return Wrong({&path, name}, "a non-empty array of schemas");
    parts.push_back(name[1] == 'l'                     ? formulas_.And(*kids)
                    : name[1] == 'n' && name[0] == 'a' ? formulas_.Or(*kids)
                                                       : formulas_.ExactlyOne(*kids));
  }
  if (const Value* value = schema.Find("not")) {
    auto formula = Schema(*value, {&path, "not"}, base);
    if (!formula.ok()) return formula.error();
    parts.push_back(formulas_.Not(*formula));
  }
  if (const Value* condition = schema.Find("if"); condition != nullptr && At(Dialect::kDraft7)) {
    auto formula = Schema(*condition, {&path, "if"}, base);
    if (!formula.ok()) return formula.error();
    if (const Value* then = schema.Find("then")) {
      auto consequence = Schema(*then, {&path, "then"}, base);
      if (!consequence.ok()) return consequence.error();
      parts.push_back(formulas_.Or(formulas_.Not(*formula), *consequence));
    }
    if (const Value* otherwise = schema.Find("else")) {
      auto alternative = Schema(*otherwise, {&path, "else"}, base);
      if (!alternative.ok()) return alternative.error();
      parts.push_back(formulas_.Or(*formula, *alternative));
    }
  }
  return formulas_.And(parts);
}

Result<ReadSchema> ReadJsonSchema(const json::Value& schema, const JsonSchemaOptions& options) {
  const auto dialect_option = [](const std::string& name) -> Result<Dialect> {
    const auto dialect = DialectOf(name);
    if (!dialect)
      return Error{ErrorCode::kInvalid,
                   "unknown dialect " + json::Quote(name) +
                       "; known: draft4, draft6, draft7, 2019-09, 2020-12",
                   ""};
    return *dialect;
  };
  auto dialect = dialect_option(options.force_dialect.empty() ? options.default_dialect
                                                              : options.force_dialect);
  if (!dialect.ok()) return dialect.error();
  ReadSchema out;
  out.table = std::make_unique<SchemaTable>();
  std::vector<std::string> notes;
  if (const json::Value* named = schema.Find("$schema");
      named != nullptr && options.force_dialect.empty()) {
    if (named->type != json::Type::kString)
      return Error{ErrorCode::kInvalid, "must be a string", "#/$schema"};
    if (const auto known = DialectOf(named->text)) {
      dialect = *known;
    } else {
      notes.push_back("#/$schema: unknown dialect " + json::Quote(named->text) + ", read as " +
                      options.default_dialect);
    }
  }
  Reader reader(schema, options, *dialect, *out.table);
  auto root = reader.ReadAll();
  if (!root.ok()) return root.error();
  out.table->root = *root;
  out.notes = reader.TakeNotes();
  out.notes.insert(out.notes.begin(), notes.begin(), notes.end());
  return out;
}

}  // namespace pawl::schema
