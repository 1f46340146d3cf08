// What stood in this request's prompt and output before: copied values, repeated objects.
#include "src/decode/draft/suffix_automaton.h"
#include "src/decode/draft/suffix_proposals.h"

namespace pawl {
namespace {

class SuffixFollower : public DraftSession {
 public:
  void Append(std::span<const TokenId> tokens) override {
    for (const TokenId token : tokens) text_.Append(token);
  }
  DraftCursor Root() override { return CursorOf(text_.Longest()); }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    return CursorOf(text_.Next(MatchOf(at), token));
  }
  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    ProposeFrom(text_, cursor, place, out);
  }

 private:
  SuffixAutomaton text_;
};

class SuffixSource : public DraftSource {
 public:
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    return std::make_unique<SuffixFollower>();
  }
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeSuffixSource(const DraftSetting&) {
  return std::unique_ptr<DraftSource>(std::make_unique<SuffixSource>());
}

}  // namespace pawl
