// Pages, sequences and the prefix cache against a memory that says what was written into each slot,
// under random operations, with references counted anew after each.
#include <algorithm>
#include <map>
#include <random>

#include "src/model/kv_sequences.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

constexpr int kContext = 120;
constexpr PlanLimits kLimits = {.vocabulary = 100, .logits = 0};

std::vector<TokenId> PageOf(TokenId token) { return std::vector<TokenId>(kPagePositions, token); }

TEST(KvPoolTest, TheLeastRecentlyUsedGoesFirst) {
  KvPool pool({.pages = 3, .kept_pages = 3});
  std::vector<int32_t> pages;
  for (TokenId t = 0; t < 3; ++t) {
    pages.push_back(pool.Allocate());
    pool.Publish(pages.back(), kNoPage, PageTokens(PageOf(t)));
  }
  EXPECT_EQ(pool.Allocate(), kNoPage);
  for (const int32_t page : {pages[1], pages[0], pages[2]}) pool.Release(page);
  EXPECT_EQ(pool.kept(), 3);
  EXPECT_EQ(pool.available(), 3);
  pool.Share(pages[1]);
  pool.Release(pages[1]);  // used last now
  EXPECT_EQ(pool.Allocate(), pages[0]);
  EXPECT_EQ(pool.Find(kNoPage, PageTokens(PageOf(0))), kNoPage);
  EXPECT_EQ(pool.Find(kNoPage, PageTokens(PageOf(1))), pages[1]);
  EXPECT_EQ(pool.Allocate(), pages[2]);
  EXPECT_EQ(pool.Allocate(), pages[1]);
  EXPECT_EQ(pool.Allocate(), kNoPage);
  EXPECT_EQ(pool.Check(std::vector<int32_t>{1, 1, 1}), "");
  EXPECT_NE(pool.Check(std::vector<int32_t>{1, 2, 1}), "");
}

TEST(KvPoolTest, TheSameTokensBehindAnotherPageAreAnotherPage) {
  KvPool pool({.pages = 4, .kept_pages = 1});
  const int32_t a = pool.Allocate(), b = pool.Allocate(), c = pool.Allocate();
  pool.Publish(a, kNoPage, PageTokens(PageOf(1)));
  pool.Publish(b, kNoPage, PageTokens(PageOf(2)));
  pool.Publish(c, a, PageTokens(PageOf(3)));
  EXPECT_EQ(pool.Find(a, PageTokens(PageOf(3))), c);
  EXPECT_EQ(pool.Find(b, PageTokens(PageOf(3))), kNoPage);
  EXPECT_EQ(pool.Find(kNoPage, PageTokens(PageOf(3))), kNoPage);
  // One page may be kept: the end of the chain goes first.
  pool.Release(c);
  pool.Release(a);
  EXPECT_EQ(pool.kept(), 1);
  EXPECT_EQ(pool.Find(kNoPage, PageTokens(PageOf(1))), a);
  EXPECT_EQ(pool.Find(a, PageTokens(PageOf(3))), kNoPage);
}

// A backend whose keys and values are the hash of the tokens up to a position.
class Oracle {
 public:
  explicit Oracle(const KvLimits& limits)
      : sequences(limits, kContext),
        memory_(static_cast<size_t>(limits.pages * kPagePositions), 0),
        window_(limits.window) {}

  static uint64_t HashOf(std::span<const TokenId> tokens) {
    uint64_t hash = 1;
    for (const TokenId t : tokens) hash = (hash ^ static_cast<uint64_t>(t + 1)) * 0x100000001b3u;
    return hash;
  }

  void Copy(std::span<const SlotCopy> copies) {
    const std::vector<uint64_t> before = memory_;
    std::vector<int32_t> targets;
    for (const SlotCopy& copy : copies) {
      memory_[static_cast<size_t>(copy.to)] = before[static_cast<size_t>(copy.from)];
      targets.push_back(copy.to);
    }
    // No source is a destination, so the order does not count.
    for (const SlotCopy& copy : copies) {
      EXPECT_EQ(std::count(targets.begin(), targets.end(), copy.from), 0);
      EXPECT_EQ(std::count(targets.begin(), targets.end(), copy.to), 1);
    }
  }

  // `paths`: the tokens that row i sees, its own last. Checks what the plan lets it see.
  void Run(std::span<const Row> rows, const std::vector<std::vector<TokenId>>& paths) {
    Copy(plan.copies);
    for (size_t i = 0; i < rows.size(); ++i) {
      memory_[static_cast<size_t>(plan.rows[i].slot)] = HashOf(paths[i]);
      std::vector<int32_t> seen;
      for (int32_t p = 0; p < plan.rows[i].prefix; ++p) {
        const int32_t page =
            plan.pages[static_cast<size_t>(plan.rows[i].pages_begin + p / kPagePositions)];
        seen.push_back(page == kNoPage ? -1 : page * kPagePositions + p % kPagePositions);
      }
      for (int32_t e = 0; e < plan.rows[i].extra_count; ++e) {
        seen.push_back(plan.extra[static_cast<size_t>(plan.rows[i].extra_begin + e)]);
      }
      ASSERT_EQ(seen.size(), paths[i].size());
      const size_t first = window_ > 0 && seen.size() > window_ ? seen.size() - window_ : 0;
      for (size_t p = first; p < seen.size(); ++p) {
        ASSERT_GE(seen[p], 0) << "row " << i << " position " << p;
        ASSERT_EQ(memory_[static_cast<size_t>(seen[p])], HashOf(std::span(paths[i]).first(p + 1)))
            << "row " << i << " position " << p;
      }
    }
  }

  KvSequences sequences;
  RowPlan plan;

 private:
  std::vector<uint64_t> memory_;
  size_t window_;
};

TEST(KvSequencesTest, RandomOperationsKeepEveryPosition) {
  std::mt19937 random(77);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  int full = 0, copies = 0, reused = 0, copied = 0, committed = 0, failed = 0, calls = 0,
      too_far = 0;
  for (const auto& [kept, window] : {std::pair{0, 0}, std::pair{5, 0}, std::pair{30, 0},
                                     std::pair{0, 1}, std::pair{30, 20}, std::pair{5, 33}}) {
    Oracle oracle({.pages = 30, .kept_pages = kept, .window = window});
    KvSequences& sequences = oracle.sequences;
    std::map<SequenceId, std::vector<TokenId>> alive;
    const auto any = [&] { return std::next(alive.begin(), below(alive.size())); };
    const auto random_tokens = [&](int n) {
      // Long runs of one token: beginnings that agree.
      std::vector<TokenId> tokens(static_cast<size_t>(n), static_cast<TokenId>(below(2)));
      if (n > 0 && below(2) == 0) tokens[static_cast<size_t>(below(tokens.size()))] = 2;
      return tokens;
    };
    for (int step = 0; step < 6000; ++step) {
      const int what = below(12);
      if (alive.size() < 2 || (what == 0 && alive.size() < 9)) {
        const auto id = sequences.New(1 + below(kContext));
        ASSERT_TRUE(id.ok());
        alive[*id] = {};
      } else if (what == 1) {
        const auto it = any();
        sequences.Free(it->first);
        alive.erase(it);
      } else if (what == 2) {
        const auto it = any();
        const int length = below(it->second.size() + 1);
        sequences.Truncate(it->first, length);
        it->second.resize(static_cast<size_t>(length));
      } else if (what == 3) {
        const auto it = any();
        std::vector<TokenId> more = it->second;
        for (const TokenId t : random_tokens(below(60))) more.push_back(t);
        std::vector<SlotCopy> begun;
        const int length = step % 2 == 0 ? sequences.ReusePrefix(it->first, more)
                                         : sequences.ReuseCopying(it->first, more, begun);
        oracle.Copy(begun);
        copied += static_cast<int>(begun.size());
        ASSERT_GE(length, static_cast<int>(it->second.size()));
        reused += length - static_cast<int>(it->second.size());
        more.resize(static_cast<size_t>(length));
        it->second = std::move(more);
      } else {
        // A call: up to three sequences, plain rows and trees.
        std::vector<Row> rows;
        std::vector<std::vector<TokenId>> paths;
        std::map<SequenceId, std::vector<size_t>> rows_of;
        std::map<SequenceId, int> plain_of;
        for (int n = 1 + below(3); n > 0; --n) {
          const auto it = any();
          const SequenceId id = it->first;
          if (rows_of.contains(id)) continue;
          const auto length = it->second.size();
          const size_t base = below(4) == 0 ? static_cast<size_t>(below(length + 1)) : length;
          std::vector<TokenId> path(it->second.begin(),
                                    it->second.begin() + static_cast<ptrdiff_t>(base));
          const std::vector<TokenId> plain = random_tokens(1 + below(below(3) == 0 ? 40 : 4));
          std::vector<uint64_t> ancestors;
          for (const TokenId t : plain) {
            ancestors.push_back((uint64_t{1} << rows_of[id].size()) - 1);
            rows_of[id].push_back(rows.size());
            rows.push_back({t, static_cast<int32_t>(path.size()), id, 0, -1});
            path.push_back(t);
            paths.push_back(path);
          }
          plain_of[id] = static_cast<int>(plain.size());
          if (plain.size() > 20 || below(2) == 0) continue;
          for (int t = 1 + below(20); t > 0; --t) {
            const auto parent = static_cast<size_t>(below(rows_of[id].size()));
            const Row& from = rows[rows_of[id][parent]];
            ancestors.push_back(ancestors[parent] | uint64_t{1} << parent);
            std::vector<TokenId> tree_path = paths[rows_of[id][parent]];
            tree_path.push_back(static_cast<TokenId>(below(3)));
            rows_of[id].push_back(rows.size());
            rows.push_back({tree_path.back(), from.position + 1, id, ancestors.back(), -1});
            paths.push_back(std::move(tree_path));
          }
        }
        ++calls;
        const Status status = sequences.Plan(rows, kLimits, oracle.plan);
        if (!status.ok()) {
          if (status.error().code == ErrorCode::kInvalid) {
            ASSERT_GT(window, 0) << status.error().ToString();
            ++too_far;
          } else {
            ASSERT_EQ(status.error().code, ErrorCode::kLimit) << status.error().ToString();
            ++full;
          }
          ASSERT_EQ(sequences.Check(), "");
          // Space for the next ones.
          const auto it = any();
          sequences.Free(it->first);
          alive.erase(it);
          continue;
        }
        copies += static_cast<int>(oracle.plan.copies.size());
        oracle.Run(rows, paths);
        if (testing::Test::HasFatalFailure()) return;
        for (RowPlan::Change& change : oracle.plan.changes) {
          change.failed = below(8) == 0;
          std::vector<TokenId>& tokens = alive[change.sequence];
          tokens.resize(static_cast<size_t>(change.base));
          if (change.failed) {
            ++failed;
            continue;
          }
          const size_t last = static_cast<size_t>(plain_of[change.sequence]) - 1;
          tokens = paths[rows_of[change.sequence][last]];
        }
        sequences.Finish(rows, oracle.plan);
        for (const auto& [id, its_rows] : rows_of) {
          if (below(2) == 0) continue;
          const int row = below(std::min<size_t>(its_rows.size(), kMaxTreeRows));
          std::vector<SlotCopy> moves;
          const bool good = sequences.CommitTree(id, row, moves).ok();
          const auto& change =
              *std::find_if(oracle.plan.changes.begin(), oracle.plan.changes.end(),
                            [id = id](const RowPlan::Change& c) { return c.sequence == id; });
          ASSERT_EQ(good, !change.failed);
          if (!good) continue;
          oracle.Copy(moves);
          alive[id] = paths[its_rows[static_cast<size_t>(row)]];
          ++committed;
        }
      }
      for (const auto& [id, tokens] : alive) {
        ASSERT_EQ(sequences.length(id), static_cast<int>(tokens.size()));
      }
      ASSERT_EQ(sequences.Check(), "") << "step " << step;
    }
    for (const auto& [id, tokens] : alive) sequences.Free(id);
    EXPECT_EQ(sequences.pool().in_use(), 0);
    EXPECT_EQ(sequences.pool().available(), 30);
    EXPECT_LE(sequences.pool().kept(), kept);
    EXPECT_EQ(sequences.Check(), "");
  }
  // The test has seen all there is.
  EXPECT_GT(calls, 5000);
  EXPECT_GT(full, 50);
  EXPECT_GT(copies, 100);
  EXPECT_GT(reused, 1000);
  EXPECT_GT(copied, 200);
  EXPECT_GT(committed, 1000);
  EXPECT_GT(failed, 300);
  EXPECT_GT(too_far, 5);
}

// A sequence as long as the context, in a memory for its window and what one may go back by.
TEST(KvSequencesTest, PagesBehindEveryWindowAreGivenBack) {
  constexpr int kWindow = 20, kLong = 1000;
  const int32_t enough = PagesFor(kWindow + kMaxTreeRows) + 3;
  for (const int32_t kept : {0, 4, 63}) {
    KvSequences sequences({.pages = 63, .kept_pages = kept, .window = kWindow}, kLong);
    RowPlan plan;
    const auto run = [&](SequenceId id, int from, int count) {
      std::vector<Row> rows;
      for (int i = 0; i < count; ++i) rows.push_back({1 + (from + i) % 50, from + i, id, 0, -1});
      const Status status = sequences.Plan(rows, kLimits, plan);
      if (status.ok()) sequences.Finish(rows, plan);
      return status;
    };
    const SequenceId id = *sequences.New(kLong);
    std::vector<TokenId> tokens;
    int32_t most = 0;
    for (int at = 0; at < kLong; ++at) {
      ASSERT_TRUE(run(id, at, 1).ok()) << at;
      tokens.push_back(1 + at % 50);
      ASSERT_EQ(sequences.Check(), "");
      most = std::max(most, sequences.pool().in_use());
    }
    EXPECT_LE(most, enough);
    EXPECT_LE(sequences.pool().kept(), kept);
    // Back by a little, by too much, and to the beginning.
    EXPECT_TRUE(run(id, kLong - 50, 1).ok());
    const Status too_far = run(id, 500, 1);
    ASSERT_FALSE(too_far.ok());
    EXPECT_EQ(too_far.error().code, ErrorCode::kInvalid);
    EXPECT_NE(too_far.error().message.find("position 500 is too far back"), std::string::npos);
    EXPECT_EQ(sequences.length(id), kLong - 49);
    // What is kept of its beginning serves another one.
    const SequenceId other = *sequences.New(kLong);
    const int reused = sequences.ReusePrefix(other, tokens);
    EXPECT_EQ(sequences.Check(), "");
    EXPECT_GE(reused, kept == 63 ? kLong - 60 : 0);
    EXPECT_LE(reused, kept == 0 ? 0 : kLong);
    EXPECT_TRUE(run(other, reused, 1).ok());
    EXPECT_LE(sequences.pool().in_use(), 2 * enough);
    EXPECT_TRUE(run(id, 0, 16).ok());
    EXPECT_EQ(sequences.Check(), "");
    sequences.Free(id);
    sequences.Free(other);
    EXPECT_EQ(sequences.pool().in_use(), 0);
    EXPECT_EQ(sequences.Check(), "");
  }
}

TEST(KvSequencesTest, AFullMemoryIsAnErrorWithNumbers) {
  KvSequences sequences({.pages = 4, .kept_pages = 0}, kContext);
  const auto too_long = sequences.New(65);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().code, ErrorCode::kLimit);
  EXPECT_NE(too_long.error().message.find("capacity of 65"), std::string::npos);
  EXPECT_NE(too_long.error().message.find("holds 64"), std::string::npos);
  const SequenceId a = *sequences.New(64), b = *sequences.New(64);
  RowPlan plan;
  const auto run = [&](SequenceId id, int from, int count) {
    std::vector<Row> rows;
    for (int i = 0; i < count; ++i) rows.push_back({1, from + i, id, 0, -1});
    const Status status = sequences.Plan(rows, kLimits, plan);
    if (status.ok()) sequences.Finish(rows, plan);
    return status;
  };
  ASSERT_TRUE(run(a, 0, 40).ok());
  const Status full = run(b, 0, 17);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  EXPECT_NE(full.error().message.find("needs 2 more pages"), std::string::npos)
      << full.error().ToString();
  EXPECT_NE(full.error().message.find("1 of 4 are free"), std::string::npos);
  EXPECT_EQ(sequences.length(b), 0);
  EXPECT_TRUE(run(b, 0, 16).ok());
  // Going back inside of the only page that is left, which the cache holds.
  EXPECT_TRUE(run(b, 5, 3).ok());
  EXPECT_EQ(sequences.Check(), "");
}

}  // namespace
}  // namespace pawl
