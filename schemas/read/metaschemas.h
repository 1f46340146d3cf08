// The metaschemas of the dialects: the schemas that schemas themselves fit, so that a "$ref" to
// "http://json-schema.org/draft-07/schema#" (a schema that asks for a schema) needs no network and
// no resolver.
//
// They are written out from one table of keywords (drafts 4, 6 and 7: the metaschema of each;
// drafts 2019-09 and 2020-12, section 8.1.2: one document for each vocabulary and one that applies
// them all). They say what the published ones demand; annotations (title, default) are left out.
#ifndef PAWL_SCHEMAS_METASCHEMAS_H_
#define PAWL_SCHEMAS_METASCHEMAS_H_

#include <optional>
#include <string>
#include <string_view>

namespace pawl::schema {

// The metaschema or vocabulary document with this URI (without a fragment), as JSON text; nullopt
// where the URI names none.
std::optional<std::string> Metaschema(std::string_view uri);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_METASCHEMAS_H_
