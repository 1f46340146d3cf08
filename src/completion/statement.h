// Where the statement at the cursor ends in what is written behind it.
//
//   StatementEnd end(Language::kTypeScript, "const a = f(");
//   size_t stop = end.Take("x);\nnext");          // 3: behind the ";"
#ifndef PAWL_SRC_COMPLETION_STATEMENT_H_
#define PAWL_SRC_COMPLETION_STATEMENT_H_

#include <cstddef>
#include <string_view>

#include "plugins/monitors/scan.h"

namespace pawl::completion {

// A value: copying it forks.
class StatementEnd {
 public:
  StatementEnd(monitors::Language language, std::string_view prefix);
  // The number of bytes of `bytes` that belong to the statement; npos: all, and it goes on.
  size_t Take(std::string_view bytes);

 private:
  bool Indented(char c);
  bool Continues() const;
  monitors::Scan scan_;
  monitors::Language language_;
  size_t depth_;
  bool some_ = false;  // there is more than white space
  char last_ = 0;      // the last byte that is no white space
  // Python: the indentation of the line with the cursor, and of the line that is being written
  // where that is inside of a block.
  size_t indent_ = 0, column_ = 0;
  bool block_ = false, line_begins_ = false;
};

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_STATEMENT_H_
