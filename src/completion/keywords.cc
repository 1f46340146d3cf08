// Reserved words alone: a word such as `async` or `record` may be the name of something too, and a
// list of names must not lose it.
#include "src/completion/keywords.h"

namespace pawl::completion {

bool IsKeyword(monitors::Language language, std::string_view word) {
  using monitors::Language;
  // With a space on both sides of each word.
  static constexpr std::string_view kPython =
      " False None True and as assert async await break class continue def del elif else except "
      "finally for from global if import in is lambda nonlocal not or pass raise return try while "
      "with yield ";
  static constexpr std::string_view kJava =
      " abstract assert boolean break byte case catch char class const continue default do double "
      "else enum extends false final finally float for goto if implements import instanceof int "
      "interface long native new null package private protected public return short static "
      "strictfp "
      "super switch synchronized this throw throws transient true try void volatile while ";
  static constexpr std::string_view kTypeScript =
      " break case catch class const continue debugger default delete do else enum export extends "
      "false finally for function if import in instanceof new null return super switch this throw "
      "true try typeof var void while with ";
  static constexpr std::string_view kCpp =
      " alignas alignof auto bool break case catch char class const const_cast constexpr continue "
      "decltype default delete do double dynamic_cast else enum explicit export extern false float "
      "for friend goto if inline int long mutable namespace new noexcept nullptr operator private "
      "protected public register reinterpret_cast return short signed sizeof static static_assert "
      "static_cast struct switch template this thread_local throw true try typedef typeid typename "
      "union unsigned using virtual void volatile wchar_t while ";
  const std::string_view all = language == Language::kPython       ? kPython
                               : language == Language::kJava       ? kJava
                               : language == Language::kTypeScript ? kTypeScript
                                                                   : kCpp;
  for (size_t at = all.find(word); !word.empty() && at != std::string_view::npos;
       at = all.find(word, at + 1)) {
    if (all[at - 1] == ' ' && all[at + word.size()] == ' ') return true;
  }
  return false;
}

}  // namespace pawl::completion
