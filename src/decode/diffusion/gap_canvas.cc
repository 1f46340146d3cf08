// The known output is found gap by gap: the shortest text that Infill knows to leave an output of
// the whole, with the texts before it in place. The lattice may then find better ones.
#include "src/decode/diffusion/gap_canvas.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pawl/combine.h"

namespace pawl {
namespace {

std::string BytesOf(const Vocabulary& vocabulary, std::span<const TokenId> tokens) {
  std::string bytes;
  for (const TokenId token : tokens) bytes += vocabulary.bytes(token);
  return bytes;
}

// As the tokenizer writes it, where that is these bytes.
std::vector<TokenId> SpellingOf(const Vocabulary& vocabulary, const Encoder& encode,
                                std::string_view text) {
  std::vector<TokenId> tokens;
  if (encode) tokens = encode(text);
  if (encode && BytesOf(vocabulary, tokens) == text) return tokens;
  return vocabulary.FewestTokens(text);
}

Error GapError(ErrorCode code, size_t gap, const std::string& message, const char* member) {
  return {code, "gap " + std::to_string(gap + 1) + " " + message,
          std::string("diffusion.") + member};
}

}  // namespace

Status LayOutGaps(const GenerateOptions& options, const Encoder& encode, int most, FillTask& task) {
  const DiffusionOptions& given = options.diffusion;
  const Grammar* const of = task.constraint == nullptr ? nullptr : task.constraint->grammar();
  if (of == nullptr) {
    return Error{ErrorCode::kUnsupported, "need a grammar of the whole text", "diffusion.gaps"};
  }
  const Grammar whole = *of;  // the constraint goes on from here
  const Vocabulary& vocabulary = *task.vocabulary;
  for (const TokenId token : SpellingOf(vocabulary, encode, given.prefix)) {
    task.constraint = task.constraint->Next(token);
    if (task.constraint == nullptr) {
      return Error{ErrorCode::kUnsatisfiable, "is no beginning of an output", "diffusion.prefix"};
    }
  }
  const auto count = static_cast<int>(given.gaps.size());
  // The witness is found gap by gap, which takes time that grows with the square of their number.
  constexpr int kMostGaps = 64;
  if (count > kMostGaps) {
    return Error{ErrorCode::kLimit,
                 "are " + std::to_string(count) + ", and at most " + std::to_string(kMostGaps) +
                     " are filled together",
                 "diffusion.gaps"};
  }
  const int masks = given.gap_tokens.value_or(std::max(1, options.max_tokens / count));
  Infilling texts = {given.prefix, given.gaps};
  const auto too_long = [most](int64_t length) {
    return Error{ErrorCode::kLimit,
                 "the canvas with its gaps takes at least " + std::to_string(length) +
                     " positions, but the model has " + std::to_string(most) + " behind the prompt",
                 "diffusion.gap_tokens"};
  };
  for (size_t gap = 0; gap < given.gaps.size(); ++gap) {
    const Result<Grammar> fills = Infill(whole, texts);
    if (!fills.ok()) {
      return GapError(fills.error().code, gap, "cannot be filled: " + fills.error().message,
                      "gaps");
    }
    if (const auto length = static_cast<int64_t>(task.canvas.size()) + masks; length > most)
      return too_long(length);
    const auto at = ForLoop(MakeConstraint(*fills), vocabulary);
    std::optional<std::vector<TokenId>> fill = at->Completion(masks);
    if (!fill || static_cast<int>(fill->size()) > masks) {
      return GapError(ErrorCode::kLimit, gap,
                      "has no output that is known to fit " + std::to_string(masks) + " tokens",
                      "gap_tokens");
    }
    texts.Fill(BytesOf(vocabulary, *fill));
    fill->resize(static_cast<size_t>(masks), kBlank);
    const std::vector<TokenId> behind = SpellingOf(vocabulary, encode, given.gaps[gap]);
    if (behind.empty() && !given.gaps[gap].empty()) {
      return GapError(ErrorCode::kUnsupported, gap, "is in front of a text without tokens", "gaps");
    }
    const auto add = [&](std::vector<TokenId>& to, std::span<const TokenId> tokens) {
      to.insert(to.end(), tokens.begin(), tokens.end());
    };
    task.canvas.resize(task.canvas.size() + fill->size(), kNoToken);
    task.gap_of.resize(task.canvas.size(), static_cast<int>(gap));
    add(task.witness, *fill);
    add(task.canvas, behind);
    task.gap_of.resize(task.canvas.size(), -1);
    add(task.witness, behind);
  }
  task.length = static_cast<int>(task.canvas.size());
  return task.length <= most ? Status() : too_long(task.length);
}

}  // namespace pawl
