// unevaluatedProperties and unevaluatedItems.
#include "schemas/reader_internal.h"

namespace pawl::schema {

Result<FormulaId> Reader::Unevaluated(const Value& schema, const Path& path, const std::string&) {
  if (!At(Dialect::k2019)) return kTrueFormula;
  for (const char* name : {"unevaluatedProperties", "unevaluatedItems"}) {
    const Value* value = schema.Find(name);
    if (value == nullptr || value->type == json::Type::kTrue) continue;
    return Fail(ErrorCode::kUnsupported, {&path, name},
                "\"" + std::string(name) + "\" is not enforced yet");
  }
  return kTrueFormula;
}

}  // namespace pawl::schema
