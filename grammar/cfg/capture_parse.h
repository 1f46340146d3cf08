// CaptureParse: which parts of a whole text the rules with captures stand for.
//
//   auto parse = CaptureParse::Create(ir, vocabulary);
//   auto captures = parse->Run(pieces, vocabulary);     // pawl/grammar.h says which derivation
//
// Nothing of this is done while an output is written: the text is parsed once more when somebody
// asks. Linear in the text for grammars that are LR, also with left and right recursion, where a
// rule with a capture does not end in itself (then as many captures end at each place as there are
// ends).
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_CAPTURE_PARSE_H_
#define PAWL_GRAMMAR_CFG_CAPTURE_PARSE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/cfg/program.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

namespace captures {
class ForwardPass;
class BackwardPass;
class DerivationWalk;
}  // namespace captures

class CaptureParse {
 public:
  // Errors as CompileCfg's. `ir` is shared with the machine of the grammar.
  static Result<std::unique_ptr<CaptureParse>> Create(std::shared_ptr<GrammarIr> ir,
                                                      const Vocabulary& vocabulary);
  // What the machine of the grammar has too aside.
  size_t MemoryBytes() const { return HeapBytes(program_, before_, before_return_, empty_rank_); }

  // The captures of a complete text, in the order in which they end, the inner ones first.
  // Errors: kInvalid where the text is not in the language, kLimit where it is too ambiguous.
  Result<std::vector<Capture>> Run(std::span<const OutputPiece> pieces,
                                   const Vocabulary& vocabulary);

 private:
  friend class captures::ForwardPass;
  friend class captures::BackwardPass;
  friend class captures::DerivationWalk;

  CaptureParse(std::shared_ptr<GrammarIr> ir, CfgProgram program);
  void FindPredecessors();
  void FindEmptyWays();

  std::shared_ptr<GrammarIr> ir_;
  CfgProgram program_;
  std::vector<std::vector<uint32_t>> before_;         // by node: those that lead to it
  std::vector<std::vector<uint32_t>> before_return_;  // by routine: those that lead to its end
  std::vector<uint32_t> empty_rank_;  // by node: how far from its routine's end without text
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CAPTURE_PARSE_H_
