// References: finding what "$ref" names, within the schema and the documents that it refers to.
//
// Each document is indexed once: every "$id" (draft 4: "id") opens a resource with a base URI and a
// dialect of its own, every "$anchor" names a place in its resource. A reference is resolved
// against the base URI of the place where it stands (RFC 3986 section 5.2), its fragment is a JSON
// Pointer (RFC 6901) or an anchor. A URI that no resource has is asked of the caller's
// JsonSchemaOptions::resolve_document.
#ifndef PAWL_SCHEMAS_READ_REFERENCES_H_
#define PAWL_SCHEMAS_READ_REFERENCES_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::schema {

enum class Dialect { kDraft4 = 4, kDraft6 = 6, kDraft7 = 7, k2019 = 8, k2020 = 9 };

// The dialect that a "$schema" value or an option name means; nullopt when it is none we know.
std::optional<Dialect> DialectOf(std::string_view name);

// An absolute or relative URI reference, resolved against `base`. Neither needs to be valid; the
// algorithm is RFC 3986's.
std::string ResolveUri(std::string_view base, std::string_view reference);

// What the keywords of a schema mean: its dialect, and whether its metaschema has the vocabulary of
// type, minimum, required and the like (a "$vocabulary" without it makes them annotations).
struct Language {
  Dialect dialect = Dialect::k2020;
  bool validation = true;
};

// A schema with a URI of its own: a document, or a subschema with an identifier.
struct Resource {
  std::string uri;  // without fragment; empty for a document that has none
  const json::Value* root = nullptr;
  std::string pointer;  // JSON Pointer of the root, for messages; after the URI in other documents
  Language language;
  const Resource* document = nullptr;  // the outermost one of the same document
  struct Place {
    const json::Value* value;
    std::string pointer;
    std::string twin = {};  // identifier of another schema that has the same name; empty: none
  };
  std::string twin;  // the same for `uri`
  std::unordered_map<std::string, Place> anchors;
  std::map<std::string, Place> dynamic_anchors;  // "$dynamicAnchor"; also in anchors
  bool recursive_anchor = false;                 // "$recursiveAnchor": true at the root
};

class References {
 public:
  // `document` and `options` must outlive this object; so must what it hands out.
  References(const json::Value& document, Dialect dialect, const JsonSchemaOptions& options);

  struct Target {
    const json::Value* value = nullptr;
    const Resource* resource = nullptr;  // the innermost one that `value` is in
    std::string pointer;                 // of `value`, for messages
    std::string anchor;                  // the name by which it was found, if any
  };
  // Errors: kInvalid when the place does not exist; kUnsupported when it is in a document that is
  // not available; kLimit. No place.
  Result<Target> Resolve(const Resource& from, std::string_view reference);

  // "$schema" is one we know, or its metaschema is available.
  bool Knows(const std::string& schema_uri);
  // An error when a metaschema requires a vocabulary that we do not know.
  const Status& status() const { return status_; }
  // Identifiers that two schemas have which differ, as Grammar::notes() has them. Schemas in the
  // field have many; only a reference to one has no meaning.
  const std::vector<std::string>& notes() const { return notes_; }
  const Resource& root() const { return resources_.front(); }
  // The resource inside `value`, given that of its surroundings.
  const Resource& Inside(const json::Value& value, const Resource& around) const;

 private:
  struct Visit {
    const json::Value* value;
    Resource* resource;
    std::string pointer;
    bool proper = true;  // keywords lead there, not an unknown one
  };
  // The identifier at `keyword` of the schema visited names `before` too. A place to tell when they
  // differ, empty when they do not.
  std::string Twice(const Visit& visit, const char* keyword, const json::Value& before,
                    const std::string& before_at);
  // The place that a JSON Pointer leads to from the root of the resource.
  std::optional<Target> Follow(const Resource& resource, const std::string& pointer);
  // Member of an object; those of large ones are indexed, since all of their members may be asked.
  const json::Value* MemberOf(const json::Value& object, const std::string& name);
  Resource& AddResource(std::string uri, const Visit& visit, Language language);
  void Index(const json::Value& root, const std::string& uri, Language around);
  void IndexSchema(Visit visit, std::deque<Visit>& schemas, std::deque<Visit>& others);
  Status Load(const std::string& uri, Language around);
  Result<std::string> TextOf(const std::string& uri) const;
  Result<json::Value> Fetch(const std::string& uri);
  std::optional<std::string> IdOf(const json::Value& value, Dialect dialect) const;
  Language LanguageInside(const json::Value& value, Language around);
  std::optional<Language> LanguageOf(const std::string& schema_uri, Language around);

  const JsonSchemaOptions& options_;
  std::deque<json::Value> documents_;  // other than the schema
  int fetched_ = 0;
  int64_t fetched_bytes_ = 0;
  std::unordered_map<std::string, std::optional<Language>> languages_;  // by "$schema"
  Status status_;
  std::vector<std::string> notes_;
  std::deque<Resource> resources_;
  std::unordered_map<std::string, Resource*> by_uri_;
  std::unordered_set<const json::Value*> proper_;  // schemas with identifiers that keywords lead to
  std::unordered_map<const json::Value*, Resource*> by_root_;
  std::unordered_map<const json::Value*, std::unordered_map<std::string_view, const json::Value*>>
      members_;  // of large objects
};

// The metaschema or vocabulary document with this URI (without a fragment), as JSON text; nullopt
// where the URI names none. So a "$ref" to "http://json-schema.org/draft-07/schema#" (a schema that
// asks for a schema) needs no network and no resolver. They say what the published ones demand;
// annotations (title, default) are left out.
std::optional<std::string> Metaschema(std::string_view uri);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_REFERENCES_H_
