// The ratchet of `pawl schematest`: a file that names every case that is not exact, with the
// reason. A case that fails and is not in it is a step back; one that is in it and passes has to be
// taken out, so that it can never fail again unseen.
#ifndef PAWL_SRC_CLI_MEASURE_SCHEMATEST_RATCHET_H_
#define PAWL_SRC_CLI_MEASURE_SCHEMATEST_RATCHET_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::cli {

// A case that is not exact.
struct Inexact {
  std::string file;         // "draft7/optional/bignum.json"
  std::string description;  // "GROUP: TEST"
  std::string kind;         // "refused", "valid_rejected", "invalid_accepted", "mask_differs"
  std::string detail;       // one line
};

class Ratchet {
 public:
  // Lines of file, description, kind and reason, separated by tabs; empty ones and those that begin
  // with '#' are skipped. Errors: kInvalid with place "line N".
  static Result<Ratchet> Parse(std::string_view text);

  struct Comparison {
    std::vector<Inexact> unexpected;  // not in the file, or there with another kind
    std::vector<Inexact> passing;     // in the file, but exact now (or gone from the suite)
  };
  // `ran`: whether the file of a line was part of this run.
  Comparison Compare(const std::vector<Inexact>& failures,
                     const std::function<bool(const std::string& file)>& ran) const;
  // The file after this run: lines of files that did not run stay, and so does the reason of a case
  // that fails as before.
  std::string Updated(const std::vector<Inexact>& failures,
                      const std::function<bool(const std::string& file)>& ran) const;

 private:
  const Inexact* Find(const Inexact& failure) const;
  std::vector<Inexact> lines_;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_SCHEMATEST_RATCHET_H_
