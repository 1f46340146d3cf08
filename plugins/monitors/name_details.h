// What a source says of a declaration in words: the comment above it, or the docstring in it.
//
//   NameDetail detail;
//   detail.documentation = CommentAbove(tree.text(), node->start);
#ifndef PAWL_PLUGINS_MONITORS_NAME_DETAILS_H_
#define PAWL_PLUGINS_MONITORS_NAME_DETAILS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::monitors {

// The text of the documentation comment (/** ... */) that ends before `start`, without its stars
// and indentation. Empty: there is none. At most kMostDocumentation bytes.
inline constexpr size_t kMostDocumentation = 4096;
std::string CommentAbove(std::string_view text, size_t start);
// The text of a string literal of Python as a docstring, without quotes and indentation.
std::string Docstring(std::string_view literal);
// One line of at most `most` bytes: white space becomes one space.
std::string OneLine(std::string_view text, size_t most = 200);

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_NAME_DETAILS_H_
