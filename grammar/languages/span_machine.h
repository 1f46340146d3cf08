// SpanMachine: the spans of a text, and the empty text, as an automaton over bytes.
//
// A state is the places at which the text goes on like what was read (SourceText::Occurrences), so
// nothing is made ahead of time but the sorted places.
#ifndef PAWL_GRAMMAR_LANGUAGES_SPAN_MACHINE_H_
#define PAWL_GRAMMAR_LANGUAGES_SPAN_MACHINE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"
#include "grammar/masks/machine_masks.h"
#include "grammar/regex/regex_machine.h"
#include "pawl/result.h"
#include "src/base/memory_size.h"
#include "src/base/source_text.h"

namespace pawl {

class SpanMachine : public Machine {
 public:
  // `utf8`: valid. White space stays as it is.
  SpanMachine(std::string_view utf8, SpanKind kind);

  Key Start() override { return MakeKey(1, kStart); }
  uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override;
  Key StepFrame(Key, uint8_t) override { return kDead; }  // the whole text is one lexeme
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  bool Ends(Key state) override;
  MachineMasks* Masks(const Vocabulary& vocabulary) override;
  size_t MemoryBytes() const override {
    return text_.MemoryBytes() + HeapBytes(places_, index_) +
           (regex_ == nullptr ? 0 : regex_->MemoryBytes());
  }
  size_t GrowthHint() const override {
    return text_.MemoryBytes() + places_.size() * 48 +
           (regex_ == nullptr ? 0 : regex_->GrowthHint());
  }

  // The same texts as a regex, for what takes terms (pawl/combine.h): made at the first call, in
  // seconds for a million characters. kLimit where the text is too long for that.
  Result<RegexMachine*> AsRegex();

  // What was read: its occurrences, and the bytes of a character that has begun.
  struct Place {
    SourceText::Occurrences at;
    uint32_t value = 0;
    uint8_t missing = 0, length = 0;
    friend bool operator==(const Place&, const Place&) = default;
    // The characters that may have begun. REQUIRES: missing > 0.
    std::pair<char32_t, char32_t> Range() const;
  };
  const Place& place(Key state) const { return places_[LexemeOf(state)]; }
  SourceText& text() { return text_; }
  SpanKind kind() const { return kind_; }

 private:
  static constexpr uint32_t kStart = 1;
  uint32_t Intern(const Place& place);

  SourceText text_;
  const SpanKind kind_;
  std::vector<Place> places_;  // by lexeme
  HashIndex index_;
  std::unique_ptr<MachineMasks> masks_;
  std::shared_ptr<RegexMachine> regex_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_SPAN_MACHINE_H_
