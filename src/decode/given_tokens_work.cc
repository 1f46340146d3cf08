// The sequence of given tokens: opened, grown call by call, and freed when others need its memory.
#include "src/decode/given_tokens_work.h"

#include <utility>

namespace pawl {

Status GivenTokensWork::Open() {
  const Result<SequenceId> sequence = model_.NewSequence(all_rows_);
  if (!sequence.ok()) return sequence.error();
  sequence_ = *sequence;
  return {};
}

int64_t GivenTokensWork::pages(int /*headroom*/, bool /*looking*/) const {
  return PagesOf(pending()) + (sequence_ < 0 ? model_.kv_memory().state.most() : 0);
}

int64_t GivenTokensWork::PagesOf(int rows) const {
  return model_.kv_memory().PagesOf(length_, int64_t{length_} + rows);
}

void GivenTokensWork::Free() {
  if (sequence_ >= 0) model_.FreeSequence(sequence_);
  sequence_ = -1;
  length_ = 0;
}

void GivenTokensWork::Cancel() {
  result_ = Error{ErrorCode::kLimit, "the request was cancelled", ""};
}

void GivenTokensWork::Finish(std::optional<Error> error, int /*preemptions*/) {
  if (error.has_value()) result_ = *std::move(error);
}

}  // namespace pawl
