// A schema object becomes the conjunction of its keywords: each kind's keywords make one atom, the
// rest are operators over formulas. References are read from a work list, so neither long chains of
// references nor cycles recurse.
#include "schemas/read/schema_reader.h"

#include <algorithm>
#include <iterator>

#include "schemas/formula/atoms.h"
#include "schemas/limits.h"
#include "schemas/read/reader_internal.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

namespace {

// The JSON Pointer of `part`, which stands somewhere in `value`, itself at `pointer`.
std::optional<std::string> Find(const json::Value& value, const json::Value& part,
                                const std::string& pointer) {
  struct Visit {
    const json::Value* value;
    std::string pointer;
  };
  std::vector<Visit> open = {{&value, pointer}};
  while (!open.empty()) {
    const Visit visit = std::move(open.back());
    open.pop_back();
    if (visit.value == &part) return visit.pointer;
    for (size_t i = 0; i < visit.value->items.size(); ++i)
      open.push_back({&visit.value->items[i], json::PointerJoin(visit.pointer, std::to_string(i))});
    for (const auto& [name, member] : visit.value->members)
      open.push_back({&member, json::PointerJoin(visit.pointer, name)});
  }
  return std::nullopt;
}

// The depth of a document is bounded by its parser.
bool HasKey(const json::Value& value, std::string_view key) {
  const auto in = [key](const json::Value& part) { return HasKey(part, key); };
  return std::ranges::any_of(value.items, in) ||
         std::ranges::any_of(value.members, [&](const json::Member& member) {
           return member.first == key || in(member.second);
         });
}

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
               const FormatCache* formats, SchemaTable& table)
    : document_(document),
      options_(options),
      format_cache_(formats),
      table_(table),
      formulas_(table.formulas),
      references_(document, dialect, options),
      here_{&references_.root()},
      scopes_(1),
      scope_index_{{Scope(), 0}},
      may_copy_(options.verbatim != JsonSchemaOptions::Verbatim::kNone ||
                options.resolve_document != nullptr || HasKey(document, "x-pawl-source")) {}

Result<FormulaId> Reader::ReadAll() {
  if (const Value* named = document_.Find("$schema");
      named != nullptr && options_.force_dialect.empty() && !references_.Knows(named->text)) {
    notes_.push_back("#/$schema: $schema: unknown dialect " + json::Quote(named->text) +
                     ", read as " + options_.default_dialect);
  }
  const FormulaId root = FormulaOf(document_, here_, "#", Stands::kAlone);
  struct Definition {
    const Value* value;
    std::string pointer;
  };
  std::unordered_map<FormulaId, Definition> places;
  while (!open_.empty()) {
    const Open open = std::move(open_.front());
    open_.pop_front();
    places.emplace(open.formula, Definition{open.value, open.pointer});
    Path path;
    path.root = open.pointer;
    here_ = open.here;
    reading_ = open.formula;
    auto formula = Schema(*open.value, path, open.stands);
    if (!formula.ok()) return formula.error();
    formulas_.Define(open.formula, *formula);
  }
  for (const std::string& note : references_.notes()) notes_.push_back(note);
  if (!references_.status().ok()) return references_.status().error();
  if (const auto bad = formulas_.FindBadReference(limits::kReferenceChain)) {
    const auto it = places.find(bad->reference);
    const std::string place = it == places.end() ? "#" : it->second.pointer;
    if (bad->endless) {
      std::string used = place;
      const auto from = places.find(bad->from);
      for (const Use& use : uses_) {
        if (use.inside != bad->from || from == places.end()) continue;
        // What was read already is used in place of the reference to it, so the target may differ.
        const bool surely = use.target == bad->reference;
        if (!surely && used != place) continue;
        if (auto found = Find(*from->second.value, *use.value, from->second.pointer))
          used = *std::move(found);
        if (surely) break;
      }
      return Error{ErrorCode::kInvalid, "leads back to itself without describing anything", used};
    }
    return Error{ErrorCode::kLimit,
                 "leads through more than " + std::to_string(limits::kReferenceChain) +
                     " references (allOf, anyOf, oneOf, not and if on the way count too)",
                 place};
  }
  if (Status status = CheckUnique(); !status.ok()) return status.error();
  return root;
}

// Arrays and objects that a constant became: nothing in them is left open.
Status Reader::CheckUnique() {
  for (const auto& [items, pointer] : unique_) {
    int64_t constants = 0;
    for (const AtomId atom : formulas_.Atoms(formulas_.ForKind(items, kArrayValue))) {
      const ArrayAtom& array = table_.array(atom);
      constants += array.items == kFalseFormula && array.min_items == array.prefix.size();
    }
    for (const AtomId atom : formulas_.Atoms(formulas_.ForKind(items, kObjectValue))) {
      const ObjectAtom& object = table_.object(atom);
      constants += object.additional == kFalseFormula && object.patterns.empty() &&
                   object.required.size() == object.properties.size();
    }
    if (constants <= limits::kUniqueContainers) continue;
    return Error{ErrorCode::kLimit,
                 "more than " + std::to_string(limits::kUniqueContainers) +
                     " constants that are arrays or objects are among the items (strings and "
                     "numbers are not limited)",
                 pointer};
  }
  return {};
}

Reader::Here Reader::EnterResource(const Resource& resource, Here around) {
  const Scope& scope = scopes_[around.scope];
  const bool recursive = resource.recursive_anchor && !scope.contains(kRecursive);
  const bool named = std::any_of(resource.dynamic_anchors.begin(), resource.dynamic_anchors.end(),
                                 [&](const auto& anchor) { return !scope.contains(anchor.first); });
  if (!recursive && !named) return {&resource, around.scope, around.given, around.copying};
  Scope inner = scope;
  if (recursive) inner.emplace(kRecursive, &resource);
  for (const auto& [name, place] : resource.dynamic_anchors) inner.emplace(name, &resource);
  const auto [it, fresh] = scope_index_.try_emplace(inner, static_cast<ScopeId>(scopes_.size()));
  if (fresh) scopes_.push_back(std::move(inner));
  return {&resource, it->second, around.given, around.copying};
}

Reader::Here Reader::Enter(const Value& value, Here around) {
  return EnterResource(references_.Inside(value, *around.resource), around);
}

FormulaId Reader::FormulaOf(const Value& value, Here around, const std::string& pointer,
                            Stands stands) {
  if (value.is_bool()) return value.type == json::Type::kTrue ? kTrueFormula : kFalseFormula;
  const Here here = Enter(value, around);
  const Place key = PlaceOf(value, here, stands);
  if (const auto it = read_.find(key); it != read_.end()) return it->second;
  const auto [it, fresh] = asked_.try_emplace(key, kTrueFormula);
  if (fresh) {
    it->second = formulas_.NewReference();
    open_.push_back({&value, here, stands, pointer, it->second});
  }
  return it->second;
}

Result<FormulaId> Reader::Schema(const Value& value, const Path& path, Stands stands) {
  if (value.type == json::Type::kTrue) return kTrueFormula;
  if (value.type == json::Type::kFalse) return kFalseFormula;
  if (value.type != json::Type::kObject) return Wrong(path, "a schema (an object or a boolean)");
  const Here around = here_;
  const Here here = Enter(value, around);
  const Place key = PlaceOf(value, here, stands);
  if (const auto it = read_.find(key); it != read_.end()) return it->second;
  StopScope::Step();
  if (++schemas_ > limits::kSubschemas)
    return Fail(ErrorCode::kLimit, path,
                "more than " + std::to_string(limits::kSubschemas) + " schemas");
  if (depth_ >= options_.max_depth) {
    return Fail(
        ErrorCode::kLimit, path,
        "nested deeper than the limit of " + std::to_string(options_.max_depth) + " schemas");
  }
  ++depth_;
  here_ = here;
  auto formula = ObjectSchema(value, path, stands);
  here_ = around;
  --depth_;
  if (formula.ok()) read_.emplace(key, *formula);
  return formula;
}

Reader::Stands Reader::Inside(const Value& schema, Stands stands) const {
  int choices = 0;
  for (const auto& [name, value] : schema.members) {
    if (name == "properties" || name == "patternProperties" || name == "additionalProperties" ||
        name == "unevaluatedProperties" || name == "if" || name == "dependentSchemas" ||
        name == "dependencies" || (name == "allOf" && value.items.size() != 1))
      return Stands::kInPlace;
    choices += name == "anyOf" || name == "oneOf" || name == "allOf" || name == "$ref" ||
               name == "$dynamicRef" || name == "$recursiveRef";
  }
  return choices == 1 ? stands : Stands::kInPlace;
}

Result<FormulaId> Reader::ObjectSchema(const Value& schema, const Path& path, Stands stands) {
  if (options_.list_annotations) ListAnnotations(schema, path);
  if (const Value* reference = schema.Find("$ref"); reference != nullptr && !At(Dialect::k2019)) {
    // Up to draft 7 its siblings do not count.
    return Reference("$ref", *reference, {&path, "$ref"}, stands);
  }
  const Stands inside = Inside(schema, stands);
  // Schema() puts here_ back.
  if (ReadsKeys() && !here_.given) here_.given = JudgesKeys(schema, path);
  if (Status status = CheckKeywords(schema, path); !status.ok()) return status.error();
  std::vector<FormulaId> parts;
  const auto add = [&](FormulaResult part) { return Take(parts.emplace_back(), std::move(part)); };
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    const Path at{&path, name};
    std::optional<Error> error;
    if (name == "$ref" || (name == "$dynamicRef" && At(Dialect::k2020)) ||
        (name == "$recursiveRef" && dialect() == Dialect::k2019)) {
      error = add(Reference(name, value, at, inside));
    } else if (name == "type") {
      error = add(Types(value, at));
    } else if (name == "enum") {
      if (value.type != json::Type::kArray) return Wrong(at, "an array");
      std::vector<const Value*> values;
      for (const Value& item : value.items) values.push_back(&item);
      if (auto many = TooManyContainers(values, at)) return *many;
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
  for (const auto read : {&Reader::Strings, &Reader::Numbers, &Reader::Objects, &Reader::Arrays,
                          &Reader::Dependencies, &Reader::Source}) {
    if (auto error = add((this->*read)(schema, path))) return *error;
  }
  if (auto error = add(Combinations(schema, path, inside))) return *error;
  if (auto error = add(Unevaluated(schema, path))) return *error;
  if (!options_.additional_properties && stands == Stands::kAlone && inside == Stands::kInPlace) {
    if (auto error = add(Closed(schema, path))) return *error;
  }
  const FormulaId whole = formulas_.And(parts);
  const bool named = schema.Find("x-pawl-source") != nullptr;
  if (here_.copying == Copying::kAllowed && (named || IsVerbatim(schema))) {
    const Path keyword{&path, "x-pawl-source"};
    table_.source_fields.emplace_back(whole, (named ? keyword : path).ToString());
  }
  return whole;
}

Result<References::Target> Reader::Referred(const std::string& keyword, const Value& text,
                                            Here here) {
  if (text.type != json::Type::kString) return Error{ErrorCode::kInvalid, "must be a string", ""};
  auto target = references_.Resolve(*here.resource, text.text);
  if (!target.ok()) return target;
  // A dynamic reference to a dynamic anchor means the outermost anchor of that name in the scope.
  const Scope& scope = scopes_[here.scope];
  const Resource& found = *target->resource;
  if (keyword == "$dynamicRef") {
    const auto own = found.dynamic_anchors.find(target->anchor);
    const auto outermost = scope.find(target->anchor);
    if (target->anchor.empty() || own == found.dynamic_anchors.end() ||
        own->second.value != target->value || outermost == scope.end())
      return target;
    const Resource::Place& place = outermost->second->dynamic_anchors.at(target->anchor);
    return References::Target{place.value, outermost->second, place.pointer, ""};
  }
  if (keyword == "$recursiveRef" && found.recursive_anchor && found.root == target->value) {
    const auto outermost = scope.find(kRecursive);
    if (outermost != scope.end()) {
      const Resource& resource = *outermost->second;
      return References::Target{resource.root, &resource, resource.pointer, ""};
    }
  }
  return target;
}

Result<FormulaId> Reader::Reference(const std::string& keyword, const Value& text, const Path& path,
                                    Stands stands) {
  auto target = Referred(keyword, text, here_);
  if (!target.ok()) return Fail(target.error().code, path, target.error().message);
  const FormulaId formula =
      FormulaOf(*target->value, EnterResource(*target->resource, here_), target->pointer, stands);
  uses_.push_back({reading_, formula, &text});
  return formula;
}

Result<std::vector<FormulaId>> Reader::SchemaList(const Value& value, const Path& path,
                                                  Stands stands) {
  if (value.type != json::Type::kArray) return Wrong(path, "an array of schemas");
  std::vector<FormulaId> out;
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (auto e = Take(out.emplace_back(), Schema(value.items[i], {&path, {}, i}, stands)))
      return *e;
  }
  return out;
}

std::optional<Error> Reader::TooManyContainers(const std::vector<const Value*>& constants,
                                               const Path& at) const {
  const auto containers = std::count_if(constants.begin(), constants.end(), [](const Value* value) {
    return value->type == json::Type::kArray || value->type == json::Type::kObject;
  });
  if (containers <= limits::kConstantContainers) return std::nullopt;
  return Fail(ErrorCode::kLimit, at,
              "more than " + std::to_string(limits::kConstantContainers) +
                  " constants that are arrays or objects (strings and numbers are not limited)");
}

// Of the branches as a validator reads them one holds, and in that one fields are copied.
Result<FormulaId> Reader::ExactlyOne(const Value& value, const Path& path, Stands stands,
                                     const std::vector<FormulaId>& kids) {
  if (!may_copy_ || here_.copying != Copying::kAllowed) return formulas_.ExactlyOne(kids);
  const Copying before = std::exchange(here_.copying, Copying::kPlain);
  auto plain = SchemaList(value, path, stands);
  here_.copying = before;
  if (!plain.ok()) return plain.error();
  return formulas_.And(formulas_.ExactlyOne(*plain), formulas_.Or(kids));
}

Result<FormulaId> Reader::Combinations(const Value& schema, const Path& path, Stands inside) {
  std::vector<FormulaId> parts;
  for (const char* name : {"allOf", "anyOf", "oneOf"}) {
    const Value* value = schema.Find(name);
    if (value == nullptr) continue;
    auto kids = SchemaList(*value, {&path, name}, inside);
    if (!kids.ok()) return kids.error();
    if (kids->empty()) return Wrong({&path, name}, "a non-empty array of schemas");
    std::vector<const Value*> constants;
    for (const Value& kid : value->items) {
      const Value* constant = kid.Find("const");
      if (constant != nullptr) constants.push_back(constant);
    }
    if (auto many = TooManyContainers(constants, {&path, name})) return *many;
    const std::string_view which = name;
    if (which == "oneOf") {
      auto one = ExactlyOne(*value, {&path, name}, inside, *kids);
      if (!one.ok()) return one.error();
      parts.push_back(*one);
    } else {
      parts.push_back(which == "allOf" ? formulas_.And(*kids) : formulas_.Or(*kids));
    }
  }
  if (const Value* value = schema.Find("not")) {
    auto formula = DeniedSchema(*value, {&path, "not"}, Stands::kInPlace);
    if (!formula.ok()) return formula.error();
    parts.push_back(formulas_.Not(*formula));
  }
  if (const Value* condition = schema.Find("if"); condition != nullptr && At(Dialect::kDraft7)) {
    auto formula = DeniedSchema(*condition, {&path, "if"}, Stands::kInPlace);
    if (!formula.ok()) return formula.error();
    for (const auto& [name, unless] :
         {std::pair("then", formulas_.Not(*formula)), std::pair("else", *formula)}) {
      const Value* branch = schema.Find(name);
      if (branch == nullptr) continue;
      FormulaId consequence = kTrueFormula;
      if (auto e = Take(consequence, Schema(*branch, {&path, name}, Stands::kInPlace))) return *e;
      parts.push_back(formulas_.Or(unless, consequence));
    }
  }
  return formulas_.And(parts);
}

Result<ReadSchema> ReadJsonSchema(const json::Value& schema, const JsonSchemaOptions& options,
                                  const FormatCache* formats) {
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
  if (const json::Value* named = schema.Find("$schema");
      named != nullptr && named->type != json::Type::kString && options.force_dialect.empty())
    return Error{ErrorCode::kInvalid, "must be a string", "#/$schema"};
  Reader reader(schema, options, *dialect, formats, *out.table);
  auto root = reader.ReadAll();
  if (!root.ok()) return root.error();
  out.table->root = *root;
  out.notes = reader.TakeNotes();
  out.has_object_unions = reader.has_object_unions();
  return out;
}

// What of a schema demands nothing, and why: for those who want to know that each word of theirs
// was understood. Unknown keywords and formats are noted where they are read, in any case; here
// come the known ones that are annotations by the specification, and those that would demand
// something in another dialect, next to another keyword or under other options.

bool IsAnnotation(std::string_view keyword) {
  constexpr std::string_view kNames[] = {
      "$comment", "title",     "description",     "default",          "examples",     "deprecated",
      "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"};
  return std::ranges::find(kNames, keyword) != std::end(kNames);
}

// Empty: it is no annotation, or noted by those who read it.
std::string Reader::WhyAnnotation(const std::string& name, const Value& value,
                                  const Value& schema) const {
  if (IsAnnotation(name)) return "an annotation by the specification";
  if (Ignored(name)) return "the $vocabulary of the metaschema leaves it without meaning";
  if (name == "format") {
    if (!options_.assert_formats) return "formats are annotations by option";
    if (value.text == "float" || value.text == "double")
      return json::Quote(value.text) + " allows every number";
    return "";
  }
  const auto without = [&](std::string_view other) { return schema.Find(other) == nullptr; };
  if (name == "if" && At(Dialect::kDraft7) && without("then") && without("else"))
    return "without then and else it has no effect";
  if ((name == "then" || name == "else") && At(Dialect::kDraft7) && without("if"))
    return "without if it has no effect";
  if ((name == "minContains" || name == "maxContains") && At(Dialect::k2019) && without("contains"))
    return "without contains it has no effect";
  if (name == "additionalItems") {
    const Value* items = schema.Find("items");
    const bool tuple = items != nullptr && items->type == json::Type::kArray;
    return tuple ? "" : "without an array under items it has no effect";
  }
  if (dialect() == Dialect::kDraft4 && ((name == "exclusiveMinimum" && without("minimum")) ||
                                        (name == "exclusiveMaximum" && without("maximum"))))
    return "in draft 4 it has no effect without its bound";
  if (name == "$vocabulary") return "it tells of a metaschema, not of values";
  if ((name == "id" && At(Dialect::kDraft6)) || (name == "$id" && !At(Dialect::kDraft6)) ||
      ((name == "$anchor" || name == "$dynamicAnchor") && !At(Dialect::k2019)) ||
      (name == "$recursiveAnchor" && dialect() != Dialect::k2019))
    return "not a keyword of this dialect";
  return "";
}

void Reader::ListAnnotations(const Value& schema, const Path& path) {
  const bool reference = !At(Dialect::k2019) && schema.Find("$ref") != nullptr;
  for (const auto& [name, value] : schema.members) {
    // Definitions and the dialect do count next to a reference.
    if (reference &&
        (name == "$ref" || name == "$schema" || name == "$defs" || name == "definitions"))
      continue;
    const std::string why = reference ? "beside $ref, where nothing counts up to draft 7"
                                      : WhyAnnotation(name, value, schema);
    if (why.empty() || noted_.contains(&value)) continue;
    if (++listed_ <= limits::kAnnotationNotes) {
      Note(value, {&path, name}, why);
    } else {
      noted_.insert(&value);  // counted once
    }
  }
}

std::vector<std::string> Reader::TakeNotes() {
  if (listed_ > limits::kAnnotationNotes)
    notes_.push_back("and " + std::to_string(listed_ - limits::kAnnotationNotes) +
                     " more annotations");
  return std::move(notes_);
}

}  // namespace pawl::schema
