// The tokens of an HTML document with their bytes, as the HTML standard's tokenizer finds them
// (html.spec.whatwg.org, 13.2.5): tags with names in lower case, and characters with references
// resolved. Comments, declarations and attributes have no tokens.
//
//   HtmlTokens tokens(bytes);
//   while (const std::optional<HtmlToken> token = tokens.Next()) ...
#ifndef PAWL_SRC_INPUT_HTML_TOKENS_H_
#define PAWL_SRC_INPUT_HTML_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

struct HtmlToken {
  enum class Kind : uint8_t {
    kText,       // stands in the document as it is
    kReference,  // a character reference: `name` has what it stands for
    kBegin,
    kEnd,
  };
  Kind kind = Kind::kText;
  size_t begin = 0, end = 0;  // bytes of the document
  std::string name;           // of a tag, in lower case
  bool closes_itself = false;
  // Attributes with values, names in lower case; references in values are not resolved.
  std::vector<std::pair<std::string, std::string>> attributes;
};

class HtmlTokens {
 public:
  // `bytes`: UTF-8, and outlives this.
  explicit HtmlTokens(std::string_view bytes) : bytes_(bytes) {}
  std::optional<HtmlToken> Next();

 private:
  // What stands inside of an element is text up to its end tag.
  enum class Content : uint8_t { kMarkup, kText, kTextWithReferences, kScript };

  std::optional<HtmlToken> Tag();
  void SkipMarkup();
  size_t EndOfRawText() const;
  HtmlToken Characters(size_t end);

  const std::string_view bytes_;
  size_t at_ = 0;
  Content content_ = Content::kMarkup;
  std::string inside_;  // the element of `content_`
  size_t raw_end_ = 0;  // where its end tag begins
};

// The characters that a reference at the beginning of a text stands for, and its bytes, as in text
// (not in attributes); nullopt where there is none.
std::optional<std::pair<std::string, size_t>> HtmlReference(std::string_view text);

}  // namespace pawl

#endif  // PAWL_SRC_INPUT_HTML_TOKENS_H_
