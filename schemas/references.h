// References: finding what "$ref" names, within one document.
//
// The document is indexed once: every "$id" (draft 4: "id") opens a resource with its own base URI,
// every
// "$anchor" names a place in its resource. A reference is resolved against the base URI of the
// place where it stands (RFC 3986 section 5.2), its fragment is a JSON Pointer (RFC 6901) or an
// anchor.
#ifndef PAWL_SCHEMAS_REFERENCES_H_
#define PAWL_SCHEMAS_REFERENCES_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::schema {

enum class Dialect { kDraft4 = 4, kDraft6 = 6, kDraft7 = 7, k2019 = 8, k2020 = 9 };

// The dialect that a "$schema" value or an option name means; nullopt when it is none we know.
std::optional<Dialect> DialectOf(std::string_view name);

// An absolute or relative URI reference, resolved against `base`. Neither needs to be valid; the
// algorithm is RFC 3986's.
std::string ResolveUri(std::string_view base, std::string_view reference);

class References {
 public:
  // Both must outlive this object.
  References(const json::Value& document, Dialect dialect);

  struct Target {
    const json::Value* value;
    std::string base;     // base URI at the target
    std::string pointer;  // JSON Pointer of the target in the document, for messages
  };
  // Errors: kInvalid when the place does not exist; kUnsupported when it is in another document. No
  // place.
  Result<Target> Resolve(std::string_view base, std::string_view reference) const;

  // The base URI inside `value`, given that of its surroundings.
  std::string BaseInside(const json::Value& value, std::string_view base) const;
  // Places named "$dynamicAnchor": name; how many resources say "$recursiveAnchor": true.
  int DynamicAnchors(const std::string& name) const;
  bool has_recursive_anchor() const { return recursive_anchors_ > 0; }
  int resources() const { return static_cast<int>(resources_.size()); }

 private:
  void Index(const json::Value& root);
  std::optional<std::string> IdOf(const json::Value& value) const;

  const json::Value& document_;
  Dialect dialect_;
  struct Place {
    const json::Value* value;
    std::string pointer;
  };
  std::unordered_map<std::string, Place> resources_;  // by absolute URI without fragment
  std::unordered_map<std::string, Place> anchors_;    // by URI#anchor
  std::unordered_map<std::string, int> dynamic_anchors_;
  int recursive_anchors_ = 0;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_REFERENCES_H_
