// GrammarAccess: the machine of a Grammar, for those who make grammars of grammars.
#ifndef PAWL_GRAMMAR_GRAMMAR_ACCESS_H_
#define PAWL_GRAMMAR_GRAMMAR_ACCESS_H_

#include <memory>
#include <mutex>

#include "grammar/machine.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct GrammarAccess {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<std::mutex> lock;  // of all grammars that share parts of the machine
  std::shared_ptr<const Vocabulary> vocabulary;

  static GrammarAccess Of(const Grammar& grammar);
  // A grammar that shares parts with the one this came from.
  Grammar Make(std::shared_ptr<Machine> made) const;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_GRAMMAR_ACCESS_H_
