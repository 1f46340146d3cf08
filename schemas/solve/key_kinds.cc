// The states of a layout's program are walked in breadth. Those that the same conditions are true
// of are one kind. Then each kind's keys are listed; where they are many, a few of them.
#include "schemas/solve/key_kinds.h"

#include <map>
#include <set>

#include "schemas/limits.h"
#include "schemas/unique/distinct.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

std::vector<bool> TruthOf(const ObjectLayout& layout, const StringProgram& program,
                          StringProgram::StateId state) {
  std::vector<bool> truth;
  for (const AtomId atom : layout.program->atoms()) truth.push_back(program.Truth(state, atom));
  return truth;
}

bool IsNamed(const ObjectLayout& layout, const StringProgram& program,
             StringProgram::StateId state) {
  return layout.has_names && program.Literal(state, layout.names_atom) >= 0;
}

}  // namespace

std::unique_ptr<KeyKinds> KeyKinds::Of(Frames& frames, const ObjectLayout& layout, int64_t fuel) {
  StringProgram& program = *layout.program;
  auto out = std::make_unique<KeyKinds>();
  std::map<std::vector<bool>, size_t> index;
  std::vector<StringProgram::StateId> queue = {program.start()};
  std::set<StringProgram::StateId> seen = {program.start()};
  for (size_t i = 0; i < queue.size(); ++i) {
    const StringProgram::StateId state = queue[i];
    if (!IsNamed(layout, program, state)) {
      std::vector<bool> truth = TruthOf(layout, program, state);
      if (index.try_emplace(truth, out->kinds_.size()).second)
        out->kinds_.push_back({std::move(truth), state, {}, {}, false});
    }
    if (out->kinds_.size() > limits::kKeyKinds) return nullptr;
    for (int cls = 0; cls < program.classes(); ++cls) {
      const char32_t c = program.Representative(cls);
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      const StringProgram::StateId next = program.Next(state, cls);
      if (seen.insert(next).second) queue.push_back(next);
    }
    if (queue.size() > limits::kKeyStates) return nullptr;
  }
  if (program.overflow()) return nullptr;
  for (Kind& kind : out->kinds_) {
    StringSearch search(
        program,
        [&](StringProgram::StateId state) {
          return !IsNamed(layout, program, state) && TruthOf(layout, program, state) == kind.truth;
        },
        fuel);
    std::vector<std::u32string> keys;
    kind.all = ListTexts(
        search,
        [](size_t steps, size_t found) {
          return found <= limits::kKeysOfAKind && steps <= limits::kKeyListSteps;
        },
        keys);
    if (!kind.all) keys = Continuations(search, program.start(), limits::kSomeKeysOfAKind);
    for (const std::u32string& key : keys) {
      kind.keys.push_back(EncodeCodepoints(key));
      kind.names.push_back(frames.InternName(kind.keys.back()));
    }
  }
  return out;
}

NameId KeyKinds::StandIn(const Frames& frames, const Frame& frame, const ObjectLayout& layout,
                         const StringProgram& program, StringProgram::StateId state) const {
  const std::vector<bool> truth = TruthOf(layout, program, state);
  for (const Kind& kind : kinds_) {
    if (kind.truth != truth) continue;
    if (!kind.all) return kAnyName;
    for (const NameId name : kind.names) {
      if (!frames.Seen(frame, name)) return name;
    }
  }
  return kAnyName;
}

}  // namespace pawl::schema
