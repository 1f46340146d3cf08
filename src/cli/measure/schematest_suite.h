// The official JSON Schema test suite as it lies on disk (json-schema-org/JSON-Schema-Test-Suite):
// tests/DRAFT/*.json, tests/DRAFT/optional/*.json and tests/DRAFT/optional/format/*.json, each a
// list of schemas with instances.
#ifndef PAWL_SRC_CLI_MEASURE_SCHEMATEST_SUITE_H_
#define PAWL_SRC_CLI_MEASURE_SCHEMATEST_SUITE_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::cli {

// Where a file lies, which is what the suite asks of an implementation.
enum class Section { kRequired, kOptional, kFormats };
inline constexpr size_t kSections = 3;
const char* SectionName(Section section);  // "required", "optional", "formats"

struct SuiteDraft {
  std::string_view option;   // what --draft takes
  std::string_view folder;   // under tests/
  std::string_view dialect;  // for JsonSchemaOptions
};
inline constexpr std::array<SuiteDraft, 5> kSuiteDrafts = {
    {{"4", "draft4", "draft4"},
     {"6", "draft6", "draft6"},
     {"7", "draft7", "draft7"},
     {"2019-09", "draft2019-09", "2019-09"},
     {"2020-12", "draft2020-12", "2020-12"}}};

struct SuiteCase {
  std::string description;  // unique in its file: "GROUP: TEST", with " (2)" where it is not
  std::string instance;     // compact JSON, numbers and order of keys as in the file
  bool valid = false;
};

struct SuiteGroup {
  std::string schema;
  std::vector<SuiteCase> cases;
};

struct SuiteFile {
  std::string name;  // "draft7/optional/bignum.json"
  Section section = Section::kRequired;
  std::vector<SuiteGroup> groups;
};

// The files of one draft, the required ones first, each section by name. `suite`: the folder that
// holds tests/. Errors: kIo; kInvalid with the file and the place when it is not as the suite
// writes its files.
Result<std::vector<SuiteFile>> ReadSuite(const std::string& suite, const SuiteDraft& draft,
                                         bool with_formats);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_SCHEMATEST_SUITE_H_
