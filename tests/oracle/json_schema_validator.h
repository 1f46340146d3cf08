// An independent JSON Schema validator, the oracle of the property tests: slow, recursive, as near
// to the words of the specification as can be. Drafts 4, 6, 7, 2019-09 and 2020-12. Shares no code
// with schemas/ and grammar/ but the JSON reader and exact decimals.
//
//   auto validator = pawl::oracle::Validator::Create(schema_text, {});
//   auto verdict = validator->Validate(instance_text);   // kValid, kInvalid or kCannotTell
#ifndef PAWL_TESTS_ORACLE_JSON_SCHEMA_VALIDATOR_H_
#define PAWL_TESTS_ORACLE_JSON_SCHEMA_VALIDATOR_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pawl/result.h"
#include "src/base/json.h"

namespace pawl::oracle {

enum class Dialect { kDraft4, kDraft6, kDraft7, k2019, k2020 };
std::optional<Dialect> DialectOf(
    std::string_view schema_uri);  // "$schema" as in the wild, or "draft7", "2020-12"

// Deep equality by value: 1 == 1.0, members in any order.
bool EqualValues(const json::Value& a, const json::Value& b);

enum class Verdict { kValid, kInvalid, kCannotTell };

struct ValidatorOptions {
  Dialect dialect = Dialect::k2020;  // without "$schema"
  bool force_dialect = false;        // `dialect` even where "$schema" says another
  bool assert_formats = true;
};

// Not thread-safe: remembers why.
class Validator {
 public:
  // Errors: the schema is not JSON.
  static Result<std::unique_ptr<Validator>> Create(std::string_view schema,
                                                   const ValidatorOptions& options);

  // Makes a document available to references.
  Status AddDocument(const std::string& uri, std::string_view text, Dialect dialect);

  // kInvalid for a text that is not JSON.
  Verdict Validate(std::string_view instance);
  Verdict Validate(const json::Value& instance);
  // Why the last verdict was not kValid: "instance place: reason", for messages.
  const std::string& reason() const { return reason_; }

 private:
  // A schema with a URI of its own: a document, or a subschema with an identifier.
  struct Resource {
    std::string uri;
    const json::Value* root = nullptr;
    Dialect dialect = Dialect::k2020;
    std::map<std::string, const json::Value*> anchors, dynamic_anchors;
  };
  struct Target {
    const json::Value* schema = nullptr;
    const Resource* resource = nullptr;
  };
  // Which parts of an instance were seen by a schema that holds.
  struct Seen {
    std::vector<bool> members, items;
    bool uncertain = false;  // a schema that cannot be decided might have seen more
    void Add(const Seen& other);
  };
  struct Context;
  using Path = std::string;

  Validator() = default;
  void Scan(const json::Value& schema, Resource* resource);
  Resource* NewResource(const std::string& uri, const json::Value& root, Dialect dialect);
  const Resource* Find(const std::string& uri) const;
  std::optional<Target> Resolve(const std::string& reference, const Resource& from);

  Verdict Evaluate(const json::Value& schema, const json::Value& instance, const Resource* resource,
                   const Path& path, Seen* seen);
  Verdict CheckType(const Context& c);
  Verdict CheckNumber(const Context& c);
  Verdict CheckString(const Context& c);
  Verdict CheckArray(const Context& c);
  Verdict CheckItems(const Context& c);
  Verdict CheckContains(const Context& c);
  Verdict CheckObject(const Context& c);
  Verdict CheckMembers(const Context& c);
  Verdict CheckDependencies(const Context& c);
  Verdict CheckCombinations(const Context& c);
  Verdict CheckReferences(const Context& c);
  Verdict CheckUnevaluated(const Context& c);
  Verdict Refuse(const Path& path, const std::string& why);
  Verdict Unknown(const Path& path, const std::string& why);
  Verdict FromOptional(std::optional<bool> holds, const Path& path, const std::string& why);

  ValidatorOptions options_;
  std::vector<std::unique_ptr<json::Value>> documents_;
  std::vector<std::unique_ptr<Resource>> resources_;
  std::unordered_map<const json::Value*, Resource*> resource_of_;
  const json::Value* schema_ = nullptr;
  std::vector<const Resource*> scope_;  // dynamic scope, outermost first
  int depth_ = 0;
  std::string reason_;
};

}  // namespace pawl::oracle

#endif  // PAWL_TESTS_ORACLE_JSON_SCHEMA_VALIDATOR_H_
