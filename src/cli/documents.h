// The folder of --ref-dir: documents for references that leave the schema.
#ifndef PAWL_SRC_CLI_DOCUMENTS_H_
#define PAWL_SRC_CLI_DOCUMENTS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl::cli {

// The JSON files of a folder and its subfolders, each found by its "$id" (or "id") and by `base`
// followed by its path in the folder, in which percent escapes may stand for any character but the
// slash: a%20b.json is the file "a b.json".
class DocumentFolder {
 public:
  // Errors (kIo, kLimit) name the option and the folder.
  static Result<std::shared_ptr<const DocumentFolder>> Open(const std::string& folder,
                                                            const std::string& base);
  // The text for a URI without fragment. Errors: kIo.
  Result<std::string> Find(std::string_view uri) const;

 private:
  using Files = std::map<std::string, std::string, std::less<>>;
  std::string folder_;
  std::string base_;  // ends with a slash
  Files file_at_;     // by path in the folder
  Files file_of_;     // by identifier
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DOCUMENTS_H_
