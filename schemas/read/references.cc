// One index of resources, filled document by document as references lead there. Nothing is fetched
// here: what is not in the schema comes from the caller, counted in documents and bytes.
#include "schemas/read/references.h"

#include <algorithm>
#include <vector>

#include "schemas/limits.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

struct Uri {
  std::string_view scheme, authority, path, query, fragment;
  bool has_scheme = false, has_authority = false, has_query = false, has_fragment = false;
};

// RFC 3986 appendix B, by hand.
Uri Split(std::string_view text) {
  Uri uri;
  if (const size_t hash = text.find('#'); hash != std::string_view::npos) {
    uri.fragment = text.substr(hash + 1);
    uri.has_fragment = true;
    text = text.substr(0, hash);
  }
  if (const size_t mark = text.find('?'); mark != std::string_view::npos) {
    uri.query = text.substr(mark + 1);
    uri.has_query = true;
    text = text.substr(0, mark);
  }
  const size_t colon = text.find_first_of(":/");
  if (colon != std::string_view::npos && colon > 0 && text[colon] == ':') {
    uri.scheme = text.substr(0, colon);
    uri.has_scheme = true;
    text = text.substr(colon + 1);
  }
  if (text.starts_with("//")) {
    text = text.substr(2);
    const size_t slash = std::min(text.find('/'), text.size());
    uri.authority = text.substr(0, slash);
    uri.has_authority = true;
    text = text.substr(slash);
  }
  uri.path = text;
  return uri;
}

// RFC 3986 section 5.2.4.
std::string RemoveDots(std::string_view path) {
  std::vector<std::string_view> out;
  const bool absolute = path.substr(0, 1) == "/";
  bool ends_in_folder = false;
  for (size_t i = absolute ? 1 : 0; i <= path.size();) {
    const size_t slash = std::min(path.find('/', i), path.size());
    const std::string_view part = path.substr(i, slash - i);
    const bool last = slash == path.size();
    if (part == "..") {
      if (!out.empty()) out.pop_back();
    } else if (part != ".") {
      if (!last || !part.empty()) out.push_back(part);
    }
    if (last) ends_in_folder = part.empty() || part == "." || part == "..";
    i = slash + 1;
  }
  std::string joined = absolute ? "/" : "";
  for (size_t i = 0; i < out.size(); ++i) {
    if (i > 0) joined += '/';
    joined += out[i];
  }
  if (ends_in_folder && !out.empty()) joined += '/';
  return joined;
}

std::string WithoutFragment(std::string_view uri) {
  return std::string(uri.substr(0, uri.find('#')));
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Error Ambiguous(const std::string& name, const std::string& first, const std::string& second) {
  return Error{
      ErrorCode::kInvalid,
      "two schemas that differ are named " + json::Quote(name) + ": " + first + " and by " + second,
      ""};
}

}  // namespace

std::optional<Dialect> DialectOf(std::string_view name) {
  if (!name.empty() && name.back() == '#') name.remove_suffix(1);
  for (const std::string_view part : {"http://", "https://", "json-schema.org/", "draft/"}) {
    if (name.starts_with(part)) name.remove_prefix(part.size());
  }
  constexpr std::string_view kFile = "/schema";
  if (name.ends_with(kFile)) name.remove_suffix(kFile.size());
  if (name == "draft-04" || name == "draft4") return Dialect::kDraft4;
  if (name == "draft-06" || name == "draft6") return Dialect::kDraft6;
  if (name == "draft-07" || name == "draft7") return Dialect::kDraft7;
  if (name == "2019-09" || name == "draft2019-09") return Dialect::k2019;
  if (name == "2020-12" || name == "draft2020-12") return Dialect::k2020;
  return std::nullopt;
}

std::string ResolveUri(std::string_view base_text, std::string_view reference) {
  const Uri base = Split(base_text), r = Split(reference);
  const Uri* scheme = &r;
  const Uri* authority = &r;
  std::string path;
  std::string_view query = r.query;
  bool has_query = r.has_query;
  if (r.has_scheme || r.has_authority) {
    path = RemoveDots(r.path);
    if (!r.has_scheme) scheme = &base;
    if (r.has_scheme && !r.has_authority) path = std::string(r.path);  // urn:... is opaque
  } else {
    scheme = authority = &base;
    if (r.path.empty()) {
      path = std::string(base.path);
      if (!r.has_query) {
        query = base.query;
        has_query = base.has_query;
      }
    } else if (r.path[0] == '/') {
      path = RemoveDots(r.path);
    } else {
      const size_t slash = base.path.rfind('/');
      std::string merged = slash == std::string_view::npos
                               ? (base.has_authority ? "/" : "") + std::string(r.path)
                               : std::string(base.path.substr(0, slash + 1)) + std::string(r.path);
      path = RemoveDots(merged);
    }
  }
  std::string out;
  if (scheme->has_scheme) out += std::string(scheme->scheme) + ":";
  if (authority->has_authority) out += "//" + std::string(authority->authority);
  out += path;
  if (has_query) out += "?" + std::string(query);
  if (r.has_fragment) out += "#" + std::string(r.fragment);
  return out;
}

References::References(const json::Value& document, Dialect dialect,
                       const JsonSchemaOptions& options)
    : options_(options) {
  Index(document, "", {dialect});
}

Language References::LanguageInside(const json::Value& value, Language around) {
  const json::Value* named = value.Find("$schema");
  if (named == nullptr || !options_.force_dialect.empty()) return around;
  return LanguageOf(named->text, around).value_or(around);
}

bool References::Knows(const std::string& schema_uri) {
  return LanguageOf(schema_uri, {}).has_value();
}

std::optional<Language> References::LanguageOf(const std::string& schema_uri, Language around) {
  if (const auto dialect = DialectOf(schema_uri)) return Language{*dialect};
  const auto [it, fresh] = languages_.try_emplace(schema_uri);
  if (!fresh || !options_.resolve_document) return it->second;
  const auto metaschema = Fetch(WithoutFragment(schema_uri));
  if (!metaschema.ok()) return std::nullopt;
  Language language = around;
  if (const json::Value* own = metaschema->Find("$schema"))
    language.dialect = DialectOf(own->text).value_or(around.dialect);
  if (const json::Value* vocabularies = metaschema->Find("$vocabulary")) {
    language.validation = false;
    for (const auto& [name, required] : vocabularies->members) {
      const size_t slash = name.rfind('/');
      const std::string_view folder = std::string_view(name).substr(0, slash);
      const bool known = folder == "https://json-schema.org/draft/2019-09/vocab" ||
                         folder == "https://json-schema.org/draft/2020-12/vocab";
      if (known && name.substr(slash) == "/validation") language.validation = true;
      if (!known && required.type == json::Type::kTrue && status_.ok()) {
        status_ = Error{
            ErrorCode::kUnsupported,
            "its metaschema requires the vocabulary " + json::Quote(name) + ", which is not known",
            "#/$schema"};
      }
    }
  }
  return languages_[schema_uri] = language;
}

std::optional<std::string> References::IdOf(const json::Value& value, Dialect dialect) const {
  if (value.type != json::Type::kObject) return std::nullopt;
  // Up to draft 7 nothing next to "$ref" counts.
  if (dialect < Dialect::k2019 && value.Find("$ref") != nullptr) return std::nullopt;
  const json::Value* id = value.Find(dialect == Dialect::kDraft4 ? "id" : "$id");
  if (id == nullptr || id->type != json::Type::kString || id->text.empty()) return std::nullopt;
  return id->text;
}

const Resource& References::Inside(const json::Value& value, const Resource& around) const {
  if (value.type != json::Type::kObject) return around;
  const auto it = by_root_.find(&value);
  return it == by_root_.end() ? around : *it->second;
}

Resource& References::AddResource(std::string uri, const Visit& visit, Language language) {
  Resource& resource = resources_.emplace_back();
  resource.uri = std::move(uri);
  resource.document = visit.resource == nullptr ? &resource : visit.resource->document;
  resource.root = visit.value;
  resource.pointer = visit.pointer;
  resource.language = language;
  const json::Value* recursive = visit.value->Find("$recursiveAnchor");
  resource.recursive_anchor = language.dialect == Dialect::k2019 && recursive != nullptr &&
                              recursive->type == json::Type::kTrue;
  if (visit.proper) proper_.insert(visit.value);
  if (const auto [it, fresh] = by_uri_.emplace(resource.uri, &resource); !fresh)
    it->second->twin = Twice(visit, language.dialect == Dialect::kDraft4 ? "id" : "$id",
                             *it->second->root, it->second->pointer);
  by_root_.emplace(visit.value, &resource);
  return resource;
}

std::string References::Twice(const Visit& visit, const char* keyword, const json::Value& before,
                              const std::string& before_at) {
  const json::Value& value = *visit.value;
  const bool matters = visit.proper && proper_.contains(&before) && &before != &value;
  if (!matters || json::Dump(before) == json::Dump(value)) return "";
  std::string place = json::PointerJoin(visit.pointer, keyword);
  notes_.push_back(place + ": " + keyword + ": the schema at " + before_at +
                   " has the same identifier and differs");
  return place;
}

// First the places where keywords have schemas, then all others: an identifier in an unknown
// keyword counts only when no proper one has that name.
void References::Index(const json::Value& root, const std::string& uri, Language around) {
  const Language language = LanguageInside(root, around);
  const std::optional<std::string> id = IdOf(root, language.dialect);
  const bool named = id && (*id)[0] != '#';
  Visit first{&root, nullptr, uri + "#"};
  first.resource =
      &AddResource(named ? WithoutFragment(ResolveUri(uri, *id)) : uri, first, language);
  by_uri_.emplace(uri, first.resource);
  std::deque<Visit> schemas = {std::move(first)}, others;
  while (!schemas.empty() || !others.empty()) {
    std::deque<Visit>& queue = schemas.empty() ? others : schemas;
    Visit visit = std::move(queue.front());
    queue.pop_front();
    if (visit.value->type == json::Type::kObject) {
      IndexSchema(std::move(visit), schemas, others);
    } else if (visit.value->type == json::Type::kArray) {
      for (size_t i = 0; i < visit.value->items.size(); ++i) {
        others.push_back({&visit.value->items[i], visit.resource,
                          json::PointerJoin(visit.pointer, std::to_string(i)), false});
      }
    }
  }
}

void References::IndexSchema(Visit visit, std::deque<Visit>& schemas, std::deque<Visit>& others) {
  const json::Value& value = *visit.value;
  Language language = visit.resource->language;
  if (&value != visit.resource->root) language = LanguageInside(value, language);
  if (const std::optional<std::string> id = IdOf(value, language.dialect)) {
    const size_t hash = id->find('#');
    if (hash != 0 && &value != visit.resource->root) {
      visit.resource =
          &AddResource(WithoutFragment(ResolveUri(visit.resource->uri, *id)), visit, language);
    }
    if (visit.resource->language.dialect < Dialect::k2019 && hash != std::string::npos &&
        hash + 1 < id->size()) {
      if (visit.proper) proper_.insert(&value);
      const auto [it, fresh] = visit.resource->anchors.emplace(
          id->substr(hash + 1), Resource::Place{&value, visit.pointer});
      if (!fresh)
        it->second.twin = Twice(visit, language.dialect == Dialect::kDraft4 ? "id" : "$id",
                                *it->second.value, it->second.pointer);
    }
  }
  if (visit.resource->language.dialect >= Dialect::k2019) {
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const json::Value* anchor = value.Find(keyword);
      if (anchor == nullptr || anchor->type != json::Type::kString) continue;
      const Resource::Place place{&value, visit.pointer};
      if (visit.proper) proper_.insert(&value);
      const auto [it, fresh] = visit.resource->anchors.emplace(anchor->text, place);
      if (!fresh) it->second.twin = Twice(visit, keyword, *it->second.value, it->second.pointer);
      if (keyword[1] == 'd' && visit.resource->language.dialect == Dialect::k2020)
        visit.resource->dynamic_anchors.emplace(anchor->text, place);
    }
  }
  const auto any_of = [](std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [name, member] : value.members) {
    if (any_of(name, {"enum", "const", "default", "examples"})) continue;
    const std::string pointer = json::PointerJoin(visit.pointer, name);
    if (any_of(name, {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties",
                      "dependencies"})) {
      for (const auto& [key, inner] : member.members)
        schemas.push_back({&inner, visit.resource, json::PointerJoin(pointer, key), visit.proper});
    } else if (member.type == json::Type::kArray &&
               any_of(name, {"allOf", "anyOf", "oneOf", "prefixItems", "items"})) {
      for (size_t i = 0; i < member.items.size(); ++i) {
        schemas.push_back({&member.items[i], visit.resource,
                           json::PointerJoin(pointer, std::to_string(i)), visit.proper});
      }
    } else if (any_of(name, {"additionalItems", "additionalProperties", "contains", "else", "if",
                             "then", "items", "not", "propertyNames", "unevaluatedItems",
                             "unevaluatedProperties", "contentSchema"})) {
      schemas.push_back({&member, visit.resource, pointer, visit.proper});
    } else if (member.type == json::Type::kObject || member.type == json::Type::kArray) {
      others.push_back({&member, visit.resource, pointer, false});
    }
  }
}

// The caller's documents come first, so that a metaschema of theirs is obeyed.
Result<std::string> References::TextOf(const std::string& uri) const {
  std::string reason;
  if (options_.resolve_document) {
    Result<std::string> text = options_.resolve_document(uri);
    if (text.ok()) return text;
    reason = " (" + text.error().ToString() + ")";
  }
  if (std::optional<std::string> text = Metaschema(uri)) return *std::move(text);
  return Error{ErrorCode::kUnsupported, ", which is not available" + reason, ""};
}

Result<json::Value> References::Fetch(const std::string& uri) {
  if (++fetched_ > options_.max_documents) {
    return Error{ErrorCode::kLimit,
                 ": more than " + std::to_string(options_.max_documents) + " documents", ""};
  }
  Result<std::string> text = TextOf(uri);
  if (!text.ok()) return text.error();
  fetched_bytes_ += static_cast<int64_t>(text->size());
  if (fetched_bytes_ > options_.max_schema_bytes) {
    return Error{
        ErrorCode::kLimit,
        ": more than " + std::to_string(options_.max_schema_bytes) + " bytes of other documents",
        ""};
  }
  json::ParseLimits limits;
  limits.max_depth = 2 * options_.max_depth + 8;
  auto document = json::Parse(*text, limits);
  if (!document.ok()) return Error{document.error().code, ": " + document.error().ToString(), ""};
  return document;
}

Status References::Load(const std::string& uri, Language around) {
  auto document = Fetch(uri);
  if (!document.ok()) {
    return Error{document.error().code,
                 "reference to another document, " + json::Quote(uri) + document.error().message,
                 ""};
  }
  documents_.push_back(std::move(*document));
  Index(documents_.back(), uri, around);
  return {};
}

Result<References::Target> References::Resolve(const Resource& from, std::string_view reference) {
  const std::string uri = ResolveUri(from.uri, reference);
  const size_t hash = uri.find('#');
  const std::string document = uri.substr(0, hash);
  const std::string fragment =
      hash == std::string::npos ? "" : PercentDecode(std::string_view(uri).substr(hash + 1));
  const Resource* resource = &from;
  if (document != from.uri) {
    auto found = by_uri_.find(document);
    if (found == by_uri_.end()) {
      if (Status status = Load(document, from.language); !status.ok()) return status.error();
      found = by_uri_.find(document);
    }
    resource = found->second;
    if (!resource->twin.empty()) return Ambiguous(document, resource->pointer, resource->twin);
  }
  Target target{resource->root, resource, resource->pointer, ""};
  if (fragment.empty()) return target;
  if (fragment[0] != '/') {
    const auto anchor = resource->anchors.find(fragment);
    if (anchor == resource->anchors.end())
      return Error{ErrorCode::kInvalid, "there is no anchor " + json::Quote(fragment), ""};
    const Resource::Place& place = anchor->second;
    if (!place.twin.empty()) return Ambiguous(fragment, place.pointer, place.twin);
    return Target{place.value, resource, place.pointer, fragment};
  }
  if (auto found = Follow(*resource, fragment)) return *std::move(found);
  // Schemas in the field give an identifier to a part of theirs, and go on pointing from the top of
  // the document as if they had not. By RFC 3986 such a reference leads nowhere, so there is
  // nothing that it could mean but that.
  if (reference.starts_with('#')) {
    if (auto found = Follow(*from.document, fragment)) return *std::move(found);
  }
  return Error{ErrorCode::kInvalid,
               "reference to a place that does not exist: " + json::Quote(reference), ""};
}

const json::Value* References::MemberOf(const json::Value& object, const std::string& name) {
  if (object.members.size() < limits::kIndexedMembers) return object.Find(name);
  const auto [it, fresh] = members_.try_emplace(&object);
  if (fresh) {
    for (const auto& [key, value] : object.members) it->second.emplace(key, &value);
  }
  const auto found = it->second.find(name);
  return found == it->second.end() ? nullptr : found->second;
}

std::optional<References::Target> References::Follow(const Resource& resource,
                                                     const std::string& pointer) {
  Target target{resource.root, &resource, resource.pointer, ""};
  for (const std::string& token : json::PointerTokens(pointer)) {
    const bool object = target.value->type == json::Type::kObject;
    const json::Value* next =
        object ? MemberOf(*target.value, token) : json::ItemAt(*target.value, token);
    if (next == nullptr) return std::nullopt;
    target.pointer = json::PointerJoin(target.pointer, token);
    target.value = next;
    target.resource = &Inside(*next, *target.resource);
  }
  return target;
}

}  // namespace pawl::schema
