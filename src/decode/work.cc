// A work without a batch: each call has its rows alone.
#include "src/decode/work.h"

#include <algorithm>

namespace pawl {

Status RunAlone(Model& model, Work& work, int max_rows) {
  struct Scope {
    Work& work;
    ~Scope() { work.Evict(); }
  } const scope{work};
  Result<bool> goes_on = work.Start(true);
  if (goes_on.ok() && *goes_on) goes_on = work.Begin();
  if (goes_on.ok() && *goes_on) {
    if (Status status = work.Open(); !status.ok()) return status;
  }
  RowSink sink;
  std::vector<float> logits;
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  while (goes_on.ok() && *goes_on) {
    if (Status status = work.Prepare(); !status.ok()) return status;
    sink.rows.clear();
    sink.asking.clear();
    work.Ask(sink, std::min(work.pending(), max_rows));
    if (logits.size() < width * sink.asking.size()) logits.resize(width * sink.asking.size());
    ModelCall call;
    call.rows = sink.rows;
    call.logits = logits;
    if (Status status = model.Run(call); !status.ok()) return status;
    const CallAnswers answers = {.logits = logits, .width = width};
    work.Ran(answers, 0, false);
    if (work.answered()) goes_on = work.Take(answers, false);
  }
  if (!goes_on.ok()) return goes_on.error();
  return {};
}

}  // namespace pawl
