// Words of a language that are no names, wherever they stand.
#ifndef PAWL_SRC_COMPLETION_KEYWORDS_H_
#define PAWL_SRC_COMPLETION_KEYWORDS_H_

#include <string_view>

#include "plugins/monitors/syntax.h"

namespace pawl::completion {

bool IsKeyword(monitors::Language language, std::string_view word);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_KEYWORDS_H_
