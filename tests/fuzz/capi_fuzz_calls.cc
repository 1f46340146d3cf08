// Each byte of the input picks a call. What is known of every step is kept next to the matcher, so
// that going back can be compared with what was there before.
#include "tests/fuzz/capi_fuzz_calls.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace pawl::fuzz {
namespace {

bool Bit(const Row& row, int32_t token) {
  return ((row[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) != 0;
}

// A matcher with what is known of every step so far: the mask and the length of the output.
class Driven {
 public:
  Driven(pawl_matcher* matcher, const MatcherOptions& options, Calls& in)
      : matcher_(matcher), options_(options), in_(in), masks_({MaskOf(matcher, in)}) {}

  void Call(uint8_t call) {
    if (call < 0xE0) {  // takes the first allowed token from here on
      int32_t token = call;
      while (token < kSize - 1 && !Bit(masks_.back(), token)) ++token;
      Accept(token);
    } else {
      Other(call % 16);
    }
    Same();
    in_.Require(pawl_matcher_steps(matcher_) + 1 == masks_.size(), "steps");
  }

 private:
  void Accept(int32_t token) {
    const bool allowed = Bit(masks_.back(), token);
    size_t taken = 0;
    Ok(pawl_matcher_validate_tokens(matcher_, &token, 1, &taken), "validate");
    const pawl_status status = pawl_matcher_accept(matcher_, token);
    in_.Require(status == (allowed ? PAWL_OK : PAWL_REFUSED), "mask and accept disagree");
    in_.Require(taken == (allowed ? 1u : 0u), "mask and validate disagree");
    if (!allowed) return;
    constexpr size_t kTokenBytes[] = {2, 6, 5, 5};  // of the tokens that are no bytes
    const size_t bytes = token < 256 ? 1 : kTokenBytes[token - 256];
    Stepped(options_.IsEnd(token) ? 0 : bytes);
  }
  void Stepped(size_t bytes) {
    masks_.push_back(MaskOf(matcher_, in_));
    lengths_.push_back(lengths_.back() + bytes);
  }
  void BackTo(size_t size) {
    masks_.resize(size);
    lengths_.resize(size);
  }
  void Ok(pawl_status status, const char* what) const { in_.Require(status == PAWL_OK, what); }
  void Same() const { in_.Require(MaskOf(matcher_, in_) == masks_.back(), "not where it was"); }
  MatcherHandle Clone() const {
    MatcherHandle clone;
    Ok(clone.Take([&](pawl_matcher** out) { return pawl_matcher_clone(matcher_, out); }), "clone");
    return clone;
  }

  void Other(int which) {
    switch (which) {
      case 0:
        return Rollback(in_.Byte() % 6);
      case 1:
        return Rollback(masks_.size());
      case 2:
        return Reset();
      case 3:
        return Forced();
      case 4:
        return Tree();
      case 5:
        return Captures();
      case 6:
        return Completion();
      case 7:
        return AcceptBytes();
      case 8:
        return Looks();
      case 9:
        return Batch();
      case 10:
        return BadArguments();
      case 11:
        return TreeParents();
      case 12:
        return Accept(kTool);
      default:
        return Accept(kFirstEnd + which % 2);
    }
  }

  void Rollback(size_t steps) {
    const bool enough = steps < masks_.size();
    in_.Require(pawl_matcher_rollback(matcher_, steps) == (enough ? PAWL_OK : PAWL_BAD_ARGUMENT),
                "roll back");
    if (enough) BackTo(masks_.size() - steps);
  }

  void Reset() {
    const MatcherHandle clone = Clone();
    Ok(pawl_matcher_reset(clone.get()), "reset");
    in_.Require(MaskOf(clone.get(), in_) == masks_.front(), "a clone does not start over");
    if (in_.Byte() % 2 == 0) return;
    Ok(pawl_matcher_reset(matcher_), "reset");
    BackTo(1);
  }

  void Forced() {
    std::array<char, 64> bytes;
    std::array<int32_t, 32> tokens;
    size_t length = 0, count = 0, taken = 0;
    const size_t room = in_.Byte() % (bytes.size() + 1);
    Ok(pawl_matcher_forced_bytes(matcher_, bytes.data(), room, &length), "forced bytes");
    in_.Require(length <= room, "more forced bytes than there is room for");
    const size_t places = in_.Byte() % (tokens.size() + 1);
    Ok(pawl_matcher_forced_tokens(matcher_, tokens.data(), places, &count), "forced tokens");
    in_.Require(count <= places, "more forced tokens than there is room for");
    Ok(pawl_matcher_validate_tokens(matcher_, tokens.data(), count, &taken), "validate");
    in_.Require(taken == count, "forced tokens are refused");
    if (length == 0) return;
    const MatcherHandle clone = Clone();
    Ok(pawl_matcher_accept_bytes(clone.get(), bytes.data(), length), "forced bytes are refused");
  }

  // Any numbers as a tree of drafts; each node as a clone that takes its path has it.
  void Tree() {
    constexpr size_t kMost = 7;
    std::array<int32_t, kMost> tokens, parents;
    std::array<Row, kMost> rows;
    std::array<uint8_t, kMost> accepted;
    const size_t count = in_.Byte() % (kMost + 1);
    constexpr int32_t kOdd[] = {-1, 256, kTool, kFirstEnd, kSize, INT_MIN, INT_MAX, -2};
    for (size_t i = 0; i < count; ++i) {
      const uint8_t token = in_.Byte(), parent = in_.Byte();
      tokens[i] = token < 0xF8 ? token : kOdd[token - 0xF8];
      // Mostly one before it; some are itself, behind it, or no node at all.
      parents[i] = parent < 0xE0 ? static_cast<int32_t>(parent % (i + 1)) - 1 : parent % 10 - 2;
    }
    const auto nodes = static_cast<int32_t>(count);
    bool good = true;
    for (size_t i = 0; i < count && good; ++i) {
      int32_t at = static_cast<int32_t>(i);
      for (size_t steps = 0; at != -1 && good; ++steps) {
        good = at >= 0 && at < nodes && steps <= count;
        if (good) at = parents[static_cast<size_t>(at)];
      }
    }
    Row untouched;
    untouched.fill(0xABABABABu);
    rows.fill(untouched);
    size_t fit = 0;
    Failure failure(in_);
    const pawl_status status =
        pawl_matcher_fill_tree(matcher_, tokens.data(), parents.data(), count, rows[0].data(),
                               kWords, accepted.data(), &fit, failure.out());
    failure.Check(status);
    in_.Require(status == (good ? PAWL_OK : PAWL_INVALID), "a tree");
    size_t fitting = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!good) {
        in_.Require(rows[i] == untouched, "a row of a bad tree");
        continue;
      }
      std::vector<int32_t> path;
      for (auto at = static_cast<int32_t>(i); at != -1; at = parents[static_cast<size_t>(at)]) {
        if (const int32_t token = tokens[static_cast<size_t>(at)]; token != -1)
          path.push_back(token);
      }
      const MatcherHandle clone = Clone();
      const bool fits = std::all_of(path.rbegin(), path.rend(), [&](int32_t token) {
        return pawl_matcher_accept(clone.get(), token) == PAWL_OK;
      });
      in_.Require(accepted[i] == static_cast<uint8_t>(fits), "a draft fits or not");
      in_.Require(rows[i] == (fits ? MaskOf(clone.get(), in_) : Row{}), "a row of a tree");
      fitting += static_cast<size_t>(fits);
    }
    if (good) in_.Require(fit == fitting, "how many drafts fit");
  }

  void TreeParents() {
    constexpr size_t kMost = 6;
    std::array<int32_t, kMost> child, sibling, parents;
    const size_t count = in_.Byte() % (kMost + 1);
    for (size_t i = 0; i < count; ++i) {
      child[i] = in_.Byte() % 9 - 2;
      sibling[i] = in_.Byte() % 9 - 2;
    }
    Failure failure(in_);
    const pawl_status status =
        pawl_draft_tree_parents(child.data(), sibling.data(), count, parents.data(), failure.out());
    failure.Check(status);
    if (status != PAWL_OK) return;
    for (size_t i = 0; i < count; ++i) {
      int32_t at = static_cast<int32_t>(i);
      for (size_t steps = 0; at != -1; ++steps) {
        in_.Require(at >= 0 && at < static_cast<int32_t>(count) && steps <= count, "parents");
        at = parents[static_cast<size_t>(at)];
      }
    }
  }

  void Captures() {
    Handle<pawl_captures, pawl_captures_free> captures;
    Failure failure(in_);
    const pawl_status status = captures.Take(
        [&](pawl_captures** out) { return pawl_matcher_captures(matcher_, out, failure.out()); });
    failure.Check(status);
    in_.Require(status == PAWL_OK || status == PAWL_LIMIT || status == PAWL_UNSUPPORTED,
                "captures are not found");
    const size_t count = pawl_captures_count(captures.get());
    for (size_t i = 0; i < count; ++i) {
      const char *name = nullptr, *text = nullptr;
      size_t begin = 0, end = 0, length = 0;
      Ok(pawl_captures_get(captures.get(), i, &name, &begin, &end, &text, &length), "a capture");
      in_.Require(begin <= end && end <= lengths_.back(), "a capture outside of the output");
      in_.Require(name != nullptr && length <= end - begin, "a capture of more than there is");
    }
    in_.Require(pawl_captures_get(captures.get(), count, nullptr, nullptr, nullptr, nullptr,
                                  nullptr) == PAWL_BAD_ARGUMENT,
                "one capture more");
  }

  void Completion() {
    std::vector<int32_t> tokens(512);
    size_t count = 0, taken = 0;
    const pawl_status status =
        pawl_matcher_completion_tokens(matcher_, tokens.data(), tokens.size(), &count);
    in_.Require(status == PAWL_OK || status == PAWL_LIMIT, "completion");
    if (status == PAWL_LIMIT || count > tokens.size()) return;
    if (pawl_matcher_is_terminated(matcher_) != 0) return;
    Ok(pawl_matcher_validate_tokens(matcher_, tokens.data(), count, &taken), "validate");
    // A token that means the end here may be one of the text's there.
    const bool ends = std::any_of(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count),
                                  [&](int32_t token) { return options_.IsEnd(token); });
    if (ends) return;
    in_.Require(taken == count, "a completion is refused");
    const MatcherHandle clone = Clone();
    for (size_t i = 0; i < count; ++i) Ok(pawl_matcher_accept(clone.get(), tokens[i]), "accept");
    in_.Require(pawl_matcher_is_accepting(clone.get()) != 0, "a completion does not complete");
  }

  void AcceptBytes() {
    const std::string bytes = in_.Text();
    const pawl_status status = pawl_matcher_accept_bytes(matcher_, bytes.data(), bytes.size());
    in_.Require(status == PAWL_OK || status == PAWL_REFUSED, "bytes");
    if (status == PAWL_OK) Stepped(bytes.size());
  }

  void Looks() {
    float temperature = NAN;
    Ok(pawl_matcher_temperature(matcher_, &temperature), "temperature");
    in_.Require(std::isfinite(temperature), "a temperature");
    const bool accepting = pawl_matcher_is_accepting(matcher_) != 0;
    const bool terminated = pawl_matcher_is_terminated(matcher_) != 0;
    if (terminated) in_.Require(masks_.back() == Row{}, "a mask behind the end");
    if (!options_.standard()) return;
    for (const int32_t end : {kFirstEnd, kFirstEnd + 1})
      in_.Require(Bit(masks_.back(), end) == (accepting && !terminated), "end and accepting");
  }

  void Batch() {
    Handle<pawl_batch, pawl_batch_free> batch;
    const int32_t threads = in_.Byte() % 4 - 1;
    const pawl_status status =
        batch.Take([&](pawl_batch** out) { return pawl_batch_create(threads, out, nullptr); });
    in_.Require(status == (threads < 0 ? PAWL_BAD_ARGUMENT : PAWL_OK), "threads");
    if (batch.get() == nullptr) return;
    const MatcherHandle clone = Clone();
    Ok(pawl_matcher_reset(clone.get()), "reset");
    const pawl_matcher* const matchers[] = {matcher_, nullptr, clone.get()};
    std::array<Row, 3> rows;
    for (Row& row : rows) row.fill(0xABABABABu);
    const Row untouched = rows[1];
    size_t ended = 0;
    in_.Require(pawl_batch_fill(batch.get(), matchers, 3, rows[0].data(), kWords - 1, &ended) ==
                        PAWL_BAD_ARGUMENT &&
                    rows[0] == untouched,
                "no room for a row");
    Ok(pawl_batch_fill(batch.get(), matchers, 3, rows[0].data(), kWords, &ended), "batch");
    in_.Require(rows[0] == masks_.back() && rows[1] == untouched && rows[2] == masks_.front(),
                "the masks of a batch");
    in_.Require(
        ended == static_cast<size_t>(rows[0] == Row{}) + static_cast<size_t>(rows[2] == Row{}),
        "ended rows of a batch");
  }

  void BadArguments() {
    for (const int32_t token : {-1, -5, kSize, INT_MAX, INT_MIN})
      in_.Require(pawl_matcher_accept(matcher_, token) == PAWL_REFUSED, "no such token is taken");
    const auto refused = [&](pawl_status status) {
      in_.Require(status == PAWL_BAD_ARGUMENT, "a bad argument is taken");
    };
    Row row;
    int32_t token = 0;
    size_t count = 0;
    refused(pawl_matcher_fill_mask(matcher_, row.data(), in_.Byte() % kWords));
    refused(pawl_matcher_fill_mask(matcher_, nullptr, SIZE_MAX));
    refused(pawl_matcher_fill_mask(nullptr, row.data(), row.size()));
    refused(pawl_matcher_accept(nullptr, 'a'));
    refused(pawl_matcher_accept_bytes(matcher_, nullptr, SIZE_MAX));
    refused(pawl_matcher_rollback(matcher_, SIZE_MAX - in_.Byte()));
    refused(pawl_matcher_validate_tokens(matcher_, nullptr, SIZE_MAX, &count));
    refused(pawl_matcher_forced_bytes(matcher_, nullptr, 1, &count));
    refused(pawl_matcher_forced_tokens(matcher_, nullptr, 1, &count));
    refused(pawl_matcher_completion_tokens(matcher_, nullptr, 1, &count));
    refused(pawl_matcher_completion_tokens(matcher_, &token, 1, nullptr));
    refused(pawl_matcher_temperature(matcher_, nullptr));
    refused(pawl_matcher_captures(matcher_, nullptr, nullptr));
    refused(pawl_matcher_clone(matcher_, nullptr));
    refused(pawl_matcher_fill_tree(matcher_, nullptr, &token, 1, row.data(), kWords, nullptr,
                                   nullptr, nullptr));
    refused(pawl_matcher_fill_tree(matcher_, &token, &token, 1, row.data(), kWords - 1, nullptr,
                                   nullptr, nullptr));
    refused(pawl_draft_tree_parents(&token, nullptr, 1, &token, nullptr));
  }

  pawl_matcher* matcher_;
  const MatcherOptions& options_;
  Calls& in_;
  std::vector<Row> masks_;
  std::vector<size_t> lengths_ = {0};
};

}  // namespace

MatcherHandle MatcherOptions::NewMatcher(const pawl_grammar* grammar, const Calls& in) const {
  pawl_matcher_options options;
  pawl_matcher_options_init(&options, sizeof options);
  const int32_t ends[] = {'b', kTool};
  options.end_tokens = own_end_ ? ends : nullptr;
  options.end_token_count = own_end_ ? 2 : 0;
  options.terminate_without_end_token = terminates_ ? 1 : 0;
  MatcherHandle matcher;
  Failure failure(in);
  failure.Check(matcher.Take([&](pawl_matcher** out) {
    return pawl_matcher_create(grammar, &options, out, failure.out());
  }));
  in.Require(matcher.get() != nullptr, "a matcher");
  return matcher;
}

Row MaskOf(const pawl_matcher* matcher, const Calls& in) {
  Row row;
  row.fill(~0u);
  const pawl_status status = pawl_matcher_fill_mask(matcher, row.data(), row.size());
  in.Require(status == (row == Row{} ? PAWL_ENDED : PAWL_OK), "the status of a mask");
  return row;
}

void Drive(pawl_matcher* matcher, const MatcherOptions& options, Calls& in) {
  constexpr int kMostCalls = 48;
  Driven driven(matcher, options, in);
  for (int calls = 0; calls < kMostCalls && !in.done(); ++calls) driven.Call(in.Byte());
}

}  // namespace pawl::fuzz
