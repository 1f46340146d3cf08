// `pawl bench draft --replay DIR --suffix N`: what a suffix automaton takes with N tokens stored.
//
// The tokens are those of the files as they are, schemas and instances, in the order of their
// names. After N of them the text goes on, and at each of its tokens what may follow is asked for,
// as the sources do. A clock is read around each proposal, so its own time is measured too, and is
// said next to the figures.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/measure/bench_draft.h"
#include "src/cli/measure/replay_texts.h"
#include "src/decode/draft/suffix_automaton.h"
#include "src/decode/draft/suffix_proposals.h"

namespace pawl::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kProposals = 200'000;
constexpr size_t kPiece = 10'000;  // tokens whose appending is timed at once

double Microseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<std::vector<TokenId>> TokensOf(const BenchDraftFlags& flags, const ModelText& text,
                                      size_t count) {
  Result<std::vector<std::string>> files = ReplayFiles(flags.replay, flags.limit);
  if (!files.ok()) return files.error();
  std::vector<TokenId> tokens;
  for (const std::string& path : *files) {
    if (tokens.size() >= count) break;
    const Result<std::string> content = ReadFile(path);
    if (!content.ok()) return content.error();
    const std::vector<TokenId> more = text.tokenizer->Encode(*content);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  if (tokens.size() < count) {
    return Error{ErrorCode::kInvalid,
                 "has " + std::to_string(tokens.size()) + " tokens, and " + std::to_string(count) +
                     " are needed",
                 flags.replay};
  }
  tokens.resize(count);
  return tokens;
}

double Quantile(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

}  // namespace

int SuffixTimes(const BenchDraftFlags& flags) {
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok()) {
      return Fail(kBenchDraft, status.error());
    }
  }
  Result<ModelText> text = LoadText(kBenchDraft, flags.tokenizer);
  if (!text.ok()) return Fail(kBenchDraft, text.error());
  const auto stored = static_cast<size_t>(flags.suffix);
  Result<std::vector<TokenId>> tokens = TokensOf(flags, *text, stored + kProposals);
  if (!tokens.ok()) return Fail(kBenchDraft, tokens.error());
  SuffixAutomaton automaton;
  double last_piece = 0, all = 0;
  for (size_t i = 0; i < stored;) {
    const size_t end = std::min(stored, i + kPiece);
    const auto start = Clock::now();
    const size_t size = end - i;
    for (; i < end; ++i) automaton.Append((*tokens)[i]);
    const double took = Microseconds(start);
    all += took;
    last_piece = took / static_cast<double>(size);
  }
  const double bytes = static_cast<double>(automaton.bytes()) / static_cast<double>(stored);
  std::vector<double> took, clock;
  std::vector<DraftProposal> proposals;
  int64_t proposed = 0, right = 0;
  double appending = 0;
  for (size_t i = stored; i < tokens->size(); ++i) {
    proposals.clear();
    auto start = Clock::now();
    ProposeFrom(automaton, CursorOf(automaton.Longest()), DraftPlace(), proposals);
    took.push_back(Microseconds(start));
    proposed += static_cast<int64_t>(proposals.size());
    right += std::any_of(proposals.begin(), proposals.end(),
                         [&](const DraftProposal& p) { return p.token == (*tokens)[i]; });
    start = Clock::now();
    clock.push_back(Microseconds(start));
    start = Clock::now();
    automaton.Append((*tokens)[i]);
    appending += Microseconds(start);
  }
  std::sort(took.begin(), took.end());
  std::sort(clock.begin(), clock.end());
  const double p50 = Quantile(took, 0.5), p99 = Quantile(took, 0.99), least = Quantile(clock, 0.5);
  const double append = all / static_cast<double>(stored);
  const double one = appending / static_cast<double>(took.size());
  Print(fmt::format("{} tokens stored, {:.1f} bytes a token\n", stored, bytes));
  Print(fmt::format("append     {:.3f} us a token, {:.3f} us for the last {}\n", append, last_piece,
                    kPiece));
  Print(fmt::format(
      "propose    p50 {:.3f} us, p99 {:.3f} us; {:.2f} tokens each, {:.1f} % with the right one\n",
      p50, p99, static_cast<double>(proposed) / static_cast<double>(took.size()),
      100 * static_cast<double>(right) / static_cast<double>(took.size())));
  Print(fmt::format("the clock  {:.3f} us of each proposal; an append between two: {:.3f} us\n",
                    least, one));
  if (!flags.json.empty()) {
    const Status status = WriteFile(
        flags.json,
        fmt::format("{{\"tokens\":{},\"bytes_per_token\":{:.2f},\"append_us\":{:.4f},"
                    "\"append_last_us\":{:.4f},\"append_between_us\":{:.4f},"
                    "\"propose_p50_us\":{:.4f},\"propose_p99_us\":{:.4f},\"clock_us\":{:.4f}}}\n",
                    stored, bytes, append, last_piece, one, p50, p99, least));
    if (!status.ok()) return Fail(kBenchDraft, status.error());
  }
  return kExitOk;
}

}  // namespace pawl::cli
