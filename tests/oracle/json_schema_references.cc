// Identifiers and references of the oracle. Every schema of a document is visited once through the
// keywords that hold schemas; it belongs to the nearest enclosing resource, and a resource's URI is
// its identifier resolved against the enclosing one (JSON Schema core, sections 8.2 and 9.1). A
// reference is resolved against its resource's URI, and its fragment is nothing, a JSON Pointer
// from the resource's root, or an anchor.
#include <algorithm>
#include <array>
#include <utility>

#include "tests/oracle/json_schema_validator.h"
#include "tests/oracle/uri.h"

namespace pawl::oracle {

using json::Type;
using json::Value;

std::optional<Dialect> DialectOf(std::string_view uri) {
  static constexpr std::pair<std::string_view, Dialect> kNames[] = {
      {"draft4", Dialect::kDraft4}, {"draft-04", Dialect::kDraft4},
      {"draft6", Dialect::kDraft6}, {"draft-06", Dialect::kDraft6},
      {"draft7", Dialect::kDraft7}, {"draft-07", Dialect::kDraft7},
      {"2019-09", Dialect::k2019},  {"2020-12", Dialect::k2020}};
  for (const auto& [name, dialect] : kNames) {
    if (uri == name) return dialect;
    const size_t at = uri.find(name);
    if (uri.find("json-schema.org/") != uri.npos && at != uri.npos && uri[at - 1] == '/' &&
        uri.substr(at + name.size(), 1) == "/") {
      return dialect;
    }
  }
  return std::nullopt;
}

Result<std::unique_ptr<Validator>> Validator::Create(std::string_view schema,
                                                     const ValidatorOptions& options) {
  std::unique_ptr<Validator> validator(new Validator());
  validator->options_ = options;
  Status added = validator->AddDocument("", schema, options.dialect);
  if (!added.ok()) return added.error();
  validator->schema_ = validator->documents_[0].get();
  return validator;
}

Status Validator::AddDocument(const std::string& uri, std::string_view text, Dialect dialect) {
  Result<Value> parsed = json::Parse(text);
  if (!parsed.ok()) return parsed.error();
  documents_.push_back(std::make_unique<Value>(std::move(*parsed)));
  const Value& root = *documents_.back();
  const Value* named = root.Find("$schema");
  if (named != nullptr && !options_.force_dialect)
    dialect = DialectOf(named->text).value_or(dialect);
  Scan(root, NewResource(uri, root, dialect));
  return {};
}

Validator::Resource* Validator::NewResource(const std::string& uri, const Value& root,
                                            Dialect dialect) {
  auto resource = std::make_unique<Resource>();
  resource->uri = uri;
  resource->root = &root;
  resource->dialect = dialect;
  resources_.push_back(std::move(resource));
  return resources_.back().get();
}

const Validator::Resource* Validator::Find(const std::string& uri) const {
  for (const auto& resource : resources_) {
    if (resource->uri == uri) return resource.get();
  }
  return nullptr;
}

void Validator::Scan(const Value& schema, Resource* resource) {
  if (schema.type == Type::kObject) {
    const bool reference_only =
        resource->dialect <= Dialect::kDraft7 && schema.Find("$ref") != nullptr;
    const Value* id = schema.Find(resource->dialect == Dialect::kDraft4 ? "id" : "$id");
    const Value* named = schema.Find("$schema");
    if (named != nullptr && &schema != resource->root && !options_.force_dialect) {
      // A resource of another dialect may spell its identifier otherwise.
      if (const auto dialect = DialectOf(named->text))
        id = schema.Find(*dialect == Dialect::kDraft4 ? "id" : "$id");
    }
    if (id != nullptr && id->type == Type::kString && !reference_only && !id->text.empty()) {
      if (id->text[0] == '#') {
        if (resource->dialect <= Dialect::kDraft7)
          resource->anchors.emplace(id->text.substr(1), &schema);
      } else {
        Dialect dialect = resource->dialect;
        if (named != nullptr && !options_.force_dialect)
          dialect = DialectOf(named->text).value_or(dialect);
        resource =
            NewResource(WithoutFragment(ResolveUri(resource->uri, id->text)), schema, dialect);
      }
    }
    if (resource->dialect >= Dialect::k2019) {
      const Value* anchor = schema.Find("$anchor");
      if (anchor != nullptr) resource->anchors.emplace(anchor->text, &schema);
      const Value* dynamic = schema.Find("$dynamicAnchor");
      if (dynamic != nullptr) {
        resource->anchors.emplace(dynamic->text, &schema);
        resource->dynamic_anchors.emplace(dynamic->text, &schema);
      }
    }
  }
  resource_of_[&schema] = resource;
  static constexpr std::array kSchema = {"additionalItems",
                                         "additionalProperties",
                                         "contains",
                                         "contentSchema",
                                         "else",
                                         "if",
                                         "then",
                                         "items",
                                         "not",
                                         "propertyNames",
                                         "unevaluatedItems",
                                         "unevaluatedProperties"};
  static constexpr std::array kList = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
  static constexpr std::array kMap = {
      "$defs",      "definitions", "dependentSchemas", "patternProperties",
      "properties", "dependencies"};
  for (const auto& [key, value] : schema.members) {
    const auto is = [&key = key](const char* name) { return key == name; };
    const bool container = value.type == Type::kObject || value.is_bool();
    if (container && std::any_of(kSchema.begin(), kSchema.end(), is)) Scan(value, resource);
    if (value.type == Type::kArray && std::any_of(kList.begin(), kList.end(), is)) {
      for (const Value& item : value.items) Scan(item, resource);
    }
    if (value.type == Type::kObject && std::any_of(kMap.begin(), kMap.end(), is)) {
      for (const auto& [name, item] : value.members) {
        if (item.type == Type::kObject || item.is_bool()) Scan(item, resource);
      }
    }
  }
}

std::optional<Validator::Target> Validator::Resolve(const std::string& reference,
                                                    const Resource& from) {
  const std::string uri = ResolveUri(from.uri, reference);
  const Resource* resource = WithoutFragment(uri) == from.uri ? &from : Find(WithoutFragment(uri));
  if (resource == nullptr) return std::nullopt;
  const std::string fragment = PercentDecode(FragmentOf(uri));
  Target target{resource->root, resource};
  if (!fragment.empty() && fragment[0] != '/') {
    const auto anchor = resource->anchors.find(fragment);
    if (anchor == resource->anchors.end()) return std::nullopt;
    target.schema = anchor->second;
  }
  for (size_t at = 0; !fragment.empty() && fragment[0] == '/' && at < fragment.size();) {
    const size_t end = std::min(fragment.find('/', at + 1), fragment.size());
    std::string token;
    for (size_t i = at + 1; i < end; ++i) {
      const bool escaped = fragment[i] == '~' && i + 1 < end;
      token += !escaped ? fragment[i] : fragment[i + 1] == '1' ? '/' : '~';
      i += escaped;
    }
    at = end;
    const Value* next = target.schema->Find(token);
    if (target.schema->type == Type::kArray && !token.empty() &&
        token.find_first_not_of("0123456789") == std::string::npos && token.size() < 7) {
      const auto index = static_cast<size_t>(std::stoul(token));
      if (index < target.schema->items.size()) next = &target.schema->items[index];
    }
    if (next == nullptr) return std::nullopt;
    target.schema = next;
    const auto known = resource_of_.find(next);
    if (known != resource_of_.end()) target.resource = known->second;
  }
  auto known = resource_of_.find(target.schema);
  if (known == resource_of_.end()) {
    // A schema in a place that no keyword makes one.
    Scan(*target.schema, const_cast<Resource*>(target.resource));
    known = resource_of_.find(target.schema);
  }
  target.resource = known->second;
  return target;
}

}  // namespace pawl::oracle
