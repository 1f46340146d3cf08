// Looks: what constraints are asked, so that it holds up no other output.
//
// A mask, a step or a completion that is not known yet may take a hash look-up or minutes; which,
// not known before. So nothing of it is found on the thread that calls Step, which all
// outputs share, but for what is known already: that takes microseconds and no lock that is held
// for long (Constraint::known). Outputs in free text and schemas that were met before live on that
// alone. The rest of the look is handed to a thread (look_queue.h). To hand over everything would
// cost each step a thread's wake-up, a tenth of the time of a step of a small model.
//
// Step waits for the looks that it has handed over for 5 ms: nearly all are there in microseconds,
// and outputs that go on together share the model's calls. An output whose look is late sits out;
// it keeps its pages, holds no place in the batch, and goes on in the first step after the look has
// ended. What the look finds is a function of the output and not of the time, so the output is the
// same. Where one waits for a grammar, the others of that grammar wait as well: its lock is their
// lane.
//
// A look may end inside of a tree of drafts, whose logits are there already. The output then goes
// on in the tree as soon as the look has ended, if that is within these 5 ms. Texts have grammars
// of their own, whose masks are never known before; without this they would take one draft a call.
//
// Cancel stops a look (base/stop_scope.h). The output's pages are free at once; the rest of it goes
// when the thread has come back.
//
// With a row that has run already, while the look was late (AdvanceDuringForward), the token after
// it was not drawn. That row is computed again.
//
// What constraints hold is freed by those threads too: a monitor frees under its lock, and the last
// state of a grammar's epoch takes the whole epoch with it.
#include <time.h>

#include <algorithm>
#include <utility>

#include "src/decode/batch.h"

namespace pawl {
namespace {

constexpr std::chrono::milliseconds kLongestLookWait{5};

double ThreadSeconds() {
#if !PAWL_HAS_THREADS
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
#else
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
#endif
}

}  // namespace

void BatchEngine::BeginLook(Request& request) {
  request.looked = false;
  const Status begun = Guarded([&]() -> Status {
    looks_->Push(request.work->lane(), [this, &request] { LookThere(request); });
    return {};
  });
  if (!begun.ok()) return request.Fail(CopyOf(begun.error()));
  request.looking = true;
  ++looking_;
  ++stats_.looks;
}

void BatchEngine::LookThere(Request& request) noexcept {
  request.answer = Guarded([&] { return request.work->Look(false); });
  request.looked.store(true, std::memory_order_release);
}

void BatchEngine::EndLook(Request& request) {
  request.looking = request.late = false;
  --looking_;
  if (!request.ended) request.Take(request.answer);
  if (!request.ended) request.work->Looked();
}

void BatchEngine::TakeLooks() {
  if (looking_ == 0) return;
  const auto ended = [](const Owned& request) {
    return request->looking && request->looked.load(std::memory_order_acquire);
  };
  for (std::vector<Owned>* list : {&running_, &next_}) {
    for (const Owned& request : *list) {
      if (ended(request)) EndLook(*request);
    }
  }
  for (Owned& request : leaving_) {
    if (!ended(request)) continue;
    EndLook(*request);
    request->error.reset();
    request->work->Cancel();
    request->work->End(false);
    ended_.push_back(std::move(request));
  }
  std::erase(leaving_, nullptr);
}

void BatchEngine::WaitForLooks() {
  if (looking_ == 0) return;
  const bool all = looks_->Wait(LookQueue::Clock::now() + kLongestLookWait);
  TakeLooks();
  if (all) return;
  for (std::vector<Owned>* list : {&running_, &next_}) {
    for (const Owned& request : *list) {
      if (!request->looking || std::exchange(request->late, true)) continue;
      ++stats_.late_looks;
    }
  }
}

void BatchEngine::GoOnInTrees(const CallAnswers& answers) {
  const auto waits = [](const Owned& request) {
    OutputWork* const output = request->work->output();
    return output != nullptr && output->waits_in_tree();
  };
  const auto until = LookQueue::Clock::now() + kLongestLookWait;
  while (looking_ > 0 && LookQueue::Clock::now() < until && std::ranges::any_of(running_, waits)) {
    WaitForLooks();
    bool more = false;
    for (const Owned& request : running_) {
      if (request->looking || request->ended || !waits(request)) continue;
      request->Take(Guarded([&] { return request->work->output()->TakeOn(answers); }));
      more = true;
      if (!request->ended && request->work->asks()) BeginLook(*request);
    }
    if (!more) return;
  }
}

void BatchEngine::WaitForNews() { looks_->WaitForNews(LookQueue::Clock::now() + kLongestLookWait); }

void BatchEngine::Discard(Work& work) {
  if (looks_ == nullptr) return;
  const void* const lane = work.lane();
  (void)Guarded([&]() -> Status {
    auto constraints = work.TakeConstraints();
    if (!constraints.empty() && constraints.front() != nullptr)
      looks_->Push(
          lane, [held = std::move(constraints)]() mutable { held.clear(); }, false);
    return {};
  });
}

void BatchEngine::CountStep() {
  if (!options_.on_step) return;
  const double now = ThreadSeconds();
  if (step_began_ >= 0 && now >= step_began_) options_.on_step(now - step_began_);
  step_began_ = now;
}

}  // namespace pawl
