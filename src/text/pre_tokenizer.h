// PreTokenizer: the "pre_tokenizer" of a tokenizer.json, which cuts text into the words that
// merging works on. Immutable after Load; thread-safe.
#ifndef PAWL_SRC_TEXT_PRE_TOKENIZER_H_
#define PAWL_SRC_TEXT_PRE_TOKENIZER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/text/split_regex.h"

namespace pawl {

// A stretch of the text on its way to tokens.
struct Piece {
  std::string_view text;
  bool at_start = false;  // begins where the whole input begins
};

class PreTokenizer {
 public:
  // ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit,
  // CharDelimiterSplit, BertPreTokenizer, FixedLength, UnicodeScripts, Sequence; anything else is
  // an error. Behind ByteLevel stand only those that cut. `node` may be null or absent: a text is
  // one word.
  static PreTokenizer Load(const JsonReader& node);

  // Whether the words are to be read as bytes, with a vocabulary in the byte-level alphabet.
  bool byte_level() const { return byte_level_; }
  // Whether parts of a text may be in no word.
  bool removes() const;
  // Calls `take` with each word of the piece, none of them empty. The text of a word is valid
  // during the call.
  void Apply(const Piece& piece, const std::function<void(const Piece&)>& take) const;

 private:
  enum class Kind { kSplit, kScripts, kMetaspace, kPrefixSpace };
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
  enum class Scheme { kAlways, kFirst, kNever };
  struct Step {
    Kind kind = Kind::kSplit;
    SplitRegex pattern = {};
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    std::string replacement = {};
    Scheme scheme = Scheme::kAlways;
    bool on_alphabet = false;  // behind ByteLevel: sees each byte as its character of the alphabet
  };
  using Scratch = std::vector<std::vector<char32_t>>;  // units, for each step

  void Add(const JsonReader& node, const std::string& type);
  void AddByteLevel(const JsonReader& node);
  void AddPunctuation(Behavior behavior, const JsonReader& node);
  void AddFixedLength(const JsonReader& node);
  void AddMetaspace(const JsonReader& node);
  void AddSplit(std::string_view pattern, Behavior behavior, const JsonReader& node);
  static Behavior LoadBehavior(const JsonReader& node);
  static void Decode(const Step& step, std::string_view text, std::vector<char32_t>& units);
  template <typename Emit>
  static void Split(const Step& step, const Piece& piece, std::vector<char32_t>& units,
                    const Emit& emit);
  template <typename Emit>
  static void SplitScripts(const Step& step, const Piece& piece, std::vector<char32_t>& units,
                           const Emit& emit);
  void Run(size_t depth, const Piece& piece, Scratch& scratch,
           const std::function<void(const Piece&)>& take) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_PRE_TOKENIZER_H_
