// Any tokens, to see that drafts change nothing whatever they are.
#include "src/base/random.h"
#include "src/decode/draft/source.h"

namespace pawl {
namespace {

class RandomFollower : public DraftSession {
 public:
  explicit RandomFollower(int size) : size_(size) {}
  void Propose(const DraftPlace& place, DraftCursor&, std::vector<DraftProposal>& out) override {
    constexpr int kTried = 24, kWanted = 3;
    const uint64_t position = place.tokens.size() + place.path.size();
    const size_t first = out.size();
    for (int i = 0; i < kTried && out.size() < first + kWanted; ++i) {
      const float u = UniformAt(++draws_, position, static_cast<uint64_t>(i));
      const auto token = static_cast<TokenId>(u * static_cast<float>(size_));
      bool fits = token < size_ && place.Allows(token);
      for (size_t k = first; k < out.size(); ++k) fits &= out[k].token != token;
      if (fits) out.push_back({token, 0, 0.3f});
    }
  }

 private:
  const int size_;
  uint64_t draws_ = 0;
};

class RandomSource : public DraftSource {
 public:
  explicit RandomSource(int size) : size_(size) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    return std::make_unique<RandomFollower>(size_);
  }

 private:
  const int size_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeRandomSource(const DraftSetting& setting) {
  return std::unique_ptr<DraftSource>(std::make_unique<RandomSource>(setting.vocabulary->size()));
}

}  // namespace pawl
