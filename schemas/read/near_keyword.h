// NearKeyword: which keyword a misspelt one is meant to be.
//
//   NearKeyword("propertis", {"properties", "items"});   // "properties"
//   NearKeyword("max_length", {"maxLength"});            // "maxLength"
#ifndef PAWL_SCHEMAS_READ_NEAR_KEYWORD_H_
#define PAWL_SCHEMAS_READ_NEAR_KEYWORD_H_

#include <span>
#include <string_view>

namespace pawl::schema {

// Case, '_' and '-' do not count. Two letters may be wrong, missing, too many or exchanged with
// their neighbours, in a name of less than eight letters one. "": none is near, or two are as near,
// or the name has less than four letters. The steps grow with the square of a keyword's length,
// times the keywords.
std::string_view NearKeyword(std::string_view name, std::span<const std::string_view> keywords);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_NEAR_KEYWORD_H_
