// A line of the file is a case and a reason. Reading keeps the order, writing sorts, so that two
// versions differ in as few lines as the results do.
#include "src/cli/measure/schematest_ratchet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace pawl::cli {
namespace {

constexpr std::string_view kHeader =
    "# Cases of the JSON Schema test suite that Pawl does not decide as the suite does.\n"
    "# pawl schematest --ratchet FILE fails on any other; --update-ratchet rewrites it and keeps\n"
    "# the reasons. Columns, separated by tabs: file, case, what happens, reason.\n";

bool SameCase(const Inexact& a, const Inexact& b) {
  return a.file == b.file && a.description == b.description;
}

bool Contains(const std::vector<Inexact>& list, const Inexact& wanted) {
  return std::any_of(list.begin(), list.end(),
                     [&wanted](const Inexact& one) { return SameCase(one, wanted); });
}

}  // namespace

Result<Ratchet> Ratchet::Parse(std::string_view text) {
  Ratchet ratchet;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    constexpr size_t kColumns = 4;
    std::array<std::string, kColumns> columns;
    size_t column = 0;
    for (; column + 1 < kColumns; ++column) {
      const size_t tab = line.find('\t');
      if (tab == std::string_view::npos) break;
      columns[column] = line.substr(0, tab);
      line.remove_prefix(tab + 1);
    }
    columns[column] = line;
    if (column + 1 < kColumns) {
      return Error{ErrorCode::kInvalid, "must be file, case, kind and reason with tabs between",
                   fmt::format("line {}", number)};
    }
    ratchet.lines_.push_back({columns[0], columns[1], columns[2], columns[3]});
  }
  return ratchet;
}

const Inexact* Ratchet::Find(const Inexact& failure) const {
  const auto it = std::find_if(lines_.begin(), lines_.end(), [&failure](const Inexact& line) {
    return SameCase(line, failure) && line.kind == failure.kind;
  });
  return it == lines_.end() ? nullptr : &*it;
}

Ratchet::Comparison Ratchet::Compare(
    const std::vector<Inexact>& failures,
    const std::function<bool(const std::string& file)>& ran) const {
  Comparison out;
  for (const Inexact& failure : failures) {
    if (Find(failure) == nullptr) out.unexpected.push_back(failure);
  }
  for (const Inexact& line : lines_) {
    if (ran(line.file) && !Contains(failures, line)) out.passing.push_back(line);
  }
  return out;
}

std::string Ratchet::Updated(const std::vector<Inexact>& failures,
                             const std::function<bool(const std::string& file)>& ran) const {
  std::vector<Inexact> lines;
  for (const Inexact& line : lines_) {
    if (!ran(line.file)) lines.push_back(line);
  }
  for (const Inexact& failure : failures) {
    const Inexact* known = Find(failure);
    lines.push_back(known != nullptr ? *known : failure);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Inexact& a, const Inexact& b) {
    return std::tie(a.file, a.description) < std::tie(b.file, b.description);
  });
  std::string out(kHeader);
  for (const Inexact& line : lines) {
    out += fmt::format("{}\t{}\t{}\t{}\n", line.file, line.description, line.kind, line.detail);
  }
  return out;
}

}  // namespace pawl::cli
