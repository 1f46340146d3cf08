// A step: end what was cancelled, admit, choose rows, call the model, give each request its token
// or its logits, call back.
//
// Rows. A request's sequence holds a beginning of its tokens (prompt and output); the rest is
// pending, and the logits after its last token are wanted. One pending token is a decode step, a
// few are a forced run, many are a prompt, or what has to be computed again. Those that have begun
// to write come first, in the order of age; prompts share what is left of the rows of a call, the
// oldest first, chunk by chunk, and a quarter of the rows is theirs in any case, so that neither
// kind holds up the other. Next to outputs that write, prompts get as many rows as the model
// computes in about 25 ms, so that the outputs go on evenly.
//
// Prompts often begin alike. What a sequence computes is in the prefix cache after the call, so a
// request whose next page is what an older one computes in this call waits for it.
//
// Masks. Where the model draws tokens itself it asks for the masks when its forward pass is under
// way. A new token's row can then run before the constraint has followed the token: in the model's
// time, and not in front of it. But a constraint that turns out to force what comes next has wasted
// a call, so that is done where measurements say that it pays.
//
// Turns and memory. A request waits in the line until the turn of its group comes; then it gets its
// age. Those with an age and no place come before the line, the oldest first, and where memory does
// not hold one of them nobody overtakes it. The youngest that runs makes room. So the oldest of all
// with an age is never the one to go: it has rows in every call in which it does not sit out, looks
// end, and so does it; then the next one is the oldest. If it has no place because its first look
// took long and younger ones filled the memory meanwhile, none is admitted until these have ended.
// One sequence alone always fits, because a budget is cut to what memory holds in all.
//
// A group that holds no place waits for one for some steps only: then the youngest output of the
// group with most places goes back to the line, and loses its age. That is never the oldest one,
// nor the only one of its group, so each group goes on.
//
// Failures. The model says which rows went wrong, and all others of the call are good. If it fails
// a call as a whole, each request is tried in a call of its own, so that only those end for which
// that fails too.
//
// Exceptions. Each piece of a step that may throw, above all because memory ran out, runs guarded
// (failure.h) and for one request: its Result is the request's then. An output that was left in the
// middle of a token is not asked again. What moves requests between the lists allocates nothing,
// and sequences are freed by the same path as after any other end.
#include "src/decode/batch.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/decode/batch_request.h"

namespace pawl {
namespace {

// A request is admitted when its tokens and so many more fit: admitting it just to send it away
// again would be work for nothing.
constexpr int kHeadroom = 64;
// Pending tokens of a request that writes: forced runs are not much longer.
constexpr int kMostWritten = 64;

// Steps that a group waits for a first place while another one has several.
constexpr int kPatience = 8;
// Running requests, those that wait for looks included, for each place in the batch.
constexpr int kMostPerPlace = 2;

// The weight of the last step in a running mean.
constexpr double kNewest = 1.0 / 16;
// The same of the seconds for a row: a later part of a prompt costs more than an earlier one.
constexpr double kNewestRows = 1.0 / 4;
constexpr double kPromptSeconds = 0.025;
constexpr int kLeastPromptRows = 64;

template <typename T>
void ReserveFor(size_t size, std::vector<T>& items) {
  if (items.capacity() < size) items.reserve(2 * size);
}

}  // namespace

BatchEngine::BatchEngine(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode,
                         const BatchOptions& options)
    : model_(model),
      vocabulary_(std::move(vocabulary)),
      encode_(std::move(encode)),
      options_(options),
      pool_(std::max(0, options.threads)) {
  if (options.look_threads > 0)
    looks_ = std::make_unique<LookQueue>(LookQueue::Options{.threads = options.look_threads});
  options_.max_batch = std::max(1, options_.max_batch);
  options_.max_rows = std::max(2 * options_.max_batch, options_.max_rows);
  if (DraftVerifier::NeedsLogits(options_.drafter.get())) options_.sample_in_model = false;
  if (options_.drafter != nullptr) {
    verifier_ = std::make_unique<DraftVerifier>(
        model_, DraftVerifier::Setting{.drafter = options_.drafter,
                                       .max_rows = options_.max_rows,
                                       .draws = options_.sample_in_model && model_.samples(),
                                       .may_wait = MayWait()});
  }
  const KvMemory memory = model_.kv_memory();
  const int context = model_.info().context_length;
  const int64_t pages = std::min<int64_t>(memory.pages, context);  // no overflow
  task_.model = &model_.info();
  task_.vocabulary = vocabulary_.get();
  task_.encode = &encode_;
  task_.positions = static_cast<int>(std::min<int64_t>(context, pages * memory.page_positions));
}

BatchEngine::~BatchEngine() {
  const auto stop = [](const Owned& request) { request->stop = true; };
  std::for_each(running_.begin(), running_.end(), stop);
  std::for_each(next_.begin(), next_.end(), stop);
  looks_.reset();
  for (const Owned& request : running_) Release(*request);
}

RequestId BatchEngine::Add(BatchRequest request) {
  const size_t all = running_.size() + next_.size() + leaving_.size() + ended_.size() +
                     static_cast<size_t>(line_.size()) + 1;
  const size_t most = std::min(all, static_cast<size_t>(kMostPerPlace * options_.max_batch));
  ReserveFor(all, ended_);
  ReserveFor(all, next_);
  ReserveFor(all, leaving_);
  ReserveFor(most, running_);
  ReserveFor(most, present_);
  ReserveFor(most, shares_);
  auto added = std::make_unique<Request>(next_id_, task_, std::move(request));
  const uint64_t group = added->group;
  line_.Add(std::move(added), group);
  return next_id_++;
}

void BatchEngine::Cancel(RequestId id) {
  const auto cancel = [&](const Owned& request) {
    if (request->id != id) return;
    request->cancelled = cancels_ = true;
    request->stop = true;
  };
  std::for_each(running_.begin(), running_.end(), cancel);
  std::for_each(next_.begin(), next_.end(), cancel);
  line_.ForEach(cancel);
}

void BatchEngine::Release(Request& request) {
  if (request.sequence >= 0) model_.FreeSequence(request.sequence);
  request.sequence = -1;
  request.length = 0;
}

bool BatchEngine::Step() noexcept {
  bool ran = false;
  try {
    TakeLooks();
    EndCancelled();
    Admit();
    if (present() > 0) {
      PlanShares();
      ran = true;
      ++stats_.steps;
      stats_.most_running = std::max(stats_.most_running, running());
      if (!Call(shares_, true).ok()) CallAlone();
      TakeAnswers();
    }
  } catch (...) {
    // Nothing above is meant to throw. Where something does, no request is known to be sound.
    FailAll(CurrentFailure());
  }
  ran |= !ended_.empty();
  Settle();
  if (!ran && looking_ > 0) WaitForNews();
  const bool more = !running_.empty() || !next_.empty() || !line_.empty() || !leaving_.empty();
  if (!more) step_began_ = -1;
  return more;
}

void BatchEngine::Wake() {
  if (looks_ != nullptr) looks_->Wake();
}

void BatchEngine::FailAll(const Error& why) {
  for (const Owned& request : running_) {
    if (!request->ended) request->Fail(CopyOf(why));
  }
}

void BatchEngine::EndCancelled() {
  if (!std::exchange(cancels_, false)) return;
  for (std::vector<Owned>* list : {&running_, &next_}) {
    for (Owned& request : *list) {
      if (!request->cancelled) continue;
      if (request->looking) {
        Release(*request);
        leaving_.push_back(std::move(request));
        continue;
      }
      request->run.Cancel();
      EndDrafts(*request);
      request->ended = true;
      Release(*request);
      ended_.push_back(std::move(request));
    }
    std::erase(*list, nullptr);
  }
  line_.ForEach([&](Owned& request) {
    if (!request->cancelled) return;
    request->run.Cancel();
    EndDrafts(*request);
    ended_.push_back(std::move(request));
  });
  line_.DropEmpty();
}

// ---- Admission ----

int BatchEngine::present() const {
  return static_cast<int>(std::count_if(running_.begin(), running_.end(),
                                        [](const Owned& request) { return !request->looking; }));
}

int BatchEngine::PlacesOf(uint64_t group) const {
  const auto of_group = [&](const Owned& request) { return request->group == group; };
  return static_cast<int>(std::count_if(running_.begin(), running_.end(), of_group) +
                          std::count_if(next_.begin(), next_.end(), of_group));
}

void BatchEngine::InsertByAge(Owned request, std::vector<Owned>& list) {
  const auto younger = std::find_if(list.begin(), list.end(),
                                    [&](const Owned& other) { return other->age > request->age; });
  list.insert(younger, std::move(request));
}

void BatchEngine::Admit() {
  MakePlace();
  for (bool again = true; std::exchange(again, false);) {
    if (!AdmitReady()) return;
    while (!line_.empty()) {
      const auto fresh = std::count_if(next_.begin(), next_.end(),
                                       [](const Owned& request) { return !request->late; });
      if (present() + static_cast<int>(fresh) >= options_.max_batch) break;
      // First looks that take long hold no place, so their number has a bound of its own.
      const int most = kMostPerPlace * options_.max_batch;
      if (!line_.HasGroup([&](uint64_t group) { return PlacesOf(group) < most; })) break;
      Owned request = line_.Next([this](uint64_t group) { return PlacesOf(group); });
      request->age = next_age_++;
      if (!std::exchange(request->started, true)) {
        request->Take(Guarded([&] { return Begin(*request); }));
        if (!request->ended && request->run.asks()) BeginLook(*request);
      }
      next_.push_back(std::move(request));
      if (!AdmitReady()) return;
    }
    // Looks that have begun are waited for where nothing else is to do.
    if (present() > 0 || looking_ == 0) return;
    again = std::any_of(next_.begin(), next_.end(),
                        [](const Owned& request) { return request->looking && !request->late; });
    if (again) WaitForLooks();
  }
}

bool BatchEngine::AdmitReady() {
  for (size_t i = 0; i < next_.size();) {
    Request& request = *next_[i];
    if (request.looking) {
      ++i;
      continue;
    }
    if (present() >= options_.max_batch || running() >= kMostPerPlace * options_.max_batch)
      return false;
    if (!request.ended && !std::exchange(request.begun, true))
      request.Take(Guarded([&] { return FinishBegin(request); }));
    if (!request.ended) {
      if (!running_.empty() && !HasRoomFor(request)) return false;
      const Result<SequenceId> sequence =
          Guarded([&] { return model_.NewSequence(request.run.most_tokens()); });
      if (sequence.ok()) {
        request.sequence = *sequence;
      } else {
        request.Fail(CopyOf(sequence.error()));
      }
    }
    // Those that have ended already are settled with the others.
    InsertByAge(std::move(next_[i]), running_);
    next_.erase(next_.begin() + static_cast<ptrdiff_t>(i));
  }
  return true;
}

// For a group that has waited long enough.
void BatchEngine::MakePlace() {
  const auto begins = [](const Owned& request) { return !request->late; };
  const bool full = present() >= options_.max_batch;
  if ((!full && running() < kMostPerPlace * options_.max_batch) || line_.empty() ||
      std::ranges::any_of(next_, begins) ||
      !line_.HasGroup([this](uint64_t group) { return PlacesOf(group) == 0; })) {
    patience_ = 0;
    return;
  }
  if (++patience_ < kPatience) return;
  // The youngest of the group with most places; the oldest of all stays.
  size_t chosen = 0;
  int most = 1;
  for (size_t i = running_.size(); i-- > 1;) {
    const Request& request = *running_[i];
    const int places = PlacesOf(request.group);
    if ((full && request.looking) || request.ended || places <= most) continue;
    chosen = i;
    most = places;
  }
  if (chosen == 0) return;
  Request& request = *running_[chosen];
  if (request.looking) {  // its look goes on
    InsertByAge(std::move(running_[chosen]), next_);
  } else {
    try {
      line_.Return(std::move(running_[chosen]), request.group);
    } catch (...) {
      return;  // no memory for its place in the line: later
    }
  }
  patience_ = 0;
  running_.erase(running_.begin() + static_cast<ptrdiff_t>(chosen));
  Release(request);
  ++request.preemptions;
  ++stats_.preemptions;
}

Result<bool> BatchEngine::Begin(Request& request) {
  Result<bool> wants = request.run.Start();
  if (!wants.ok() || !*wants) return wants;
  const StopScope scope(&request.stop);
  if (verifier_ != nullptr) request.drafts = verifier_->New(request.run);
  // What drafts ask of a constraint is not known.
  const bool asks_more = request.drafts != nullptr && verifier_->asks_first(request.run);
  if (!MayWait() && asks_more) return true;
  wants = request.run.Look(!MayWait());
  if (wants.ok() && *wants && asks_more) verifier_->Prepare(*request.drafts);
  return wants;
}

Result<bool> BatchEngine::FinishBegin(Request& request) {
  const std::string_view lacks = request.run.NeedsLogits();
  if (!lacks.empty() && options_.sample_in_model && model_.samples()) {
    return Error{ErrorCode::kUnsupported, "is not there where the device draws the tokens",
                 std::string(lacks)};
  }
  if (request.drafts != nullptr) verifier_->Begin(*request.drafts);
  return true;
}

bool BatchEngine::HasRoomFor(const Request& request) const {
  const KvMemory memory = model_.kv_memory();
  const auto wants = [&](const Request& r) {
    // The tokens of one that sits out are not known here.
    const int tokens = r.looking ? r.length : static_cast<int>(r.run.tokens().size());
    const int64_t most = std::min(r.run.most_tokens(), tokens + kHeadroom);
    return Pages(most, memory.page_positions) - Pages(r.length, memory.page_positions);
  };
  int64_t pages = wants(request);
  for (const Owned& other : running_) {
    if (!other->ended) pages += wants(*other);
  }
  return pages <= memory.available;
}

// ---- Rows ----

void BatchEngine::PlanShares() {
  for (;;) {
    shares_.clear();
    present_.clear();
    for (const Owned& request : running_) {
      if (request->looking || request->ended) continue;
      if (static_cast<int>(present_.size()) < options_.max_batch) present_.push_back(&*request);
    }
    int left = options_.max_rows;
    const auto writes = [](const Request& request) {
      return request.run.asked() && request.pending() <= kMostWritten;
    };
    const bool prompts = std::any_of(present_.begin(), present_.end(),
                                     [&](const Request* request) { return !writes(*request); });
    int for_writing = prompts ? left - left / 4 : left;
    left -= for_writing;
    for (Request* const request : present_) {
      if (writes(*request)) AddShare(*request, request->pending(), for_writing);
    }
    left += for_writing;
    // Outputs that write wait for the rows of prompts in their call.
    if (!shares_.empty()) left = std::min(left, PromptRows());
    for (Request* const request : present_) {
      if (writes(*request)) continue;
      if (request->pending() > 1) {
        // The last token runs in any case, for its logits.
        const std::span<const TokenId> tokens = request->run.tokens();
        const Result<int> found = Guarded([&]() -> Result<int> {
          return model_.ReusePrefix(request->sequence, tokens.first(tokens.size() - 1));
        });
        if (!found.ok()) {
          request->Fail(CopyOf(found.error()));
          continue;
        }
        const int reused = std::max(request->length, *found);
        if (!request->run.asked()) {
          const int prompt = request->run.stats().prompt_tokens;
          request->run.stats().reused_tokens +=
              std::min(reused, prompt) - std::min(request->length, prompt);
        }
        request->length = reused;
      }
      if (!WaitsForElder(*request)) AddShare(*request, request->pending(), left);
    }
    if (running() <= 1 || MissingPages() <= model_.kv_memory().available) return;
    Preempt();
  }
}

// How many rows of prompts a call may have next to outputs that write: as many as take about
// kPromptSeconds, and no fewer than a model computes well.
int BatchEngine::PromptRows() const {
  const double rows = row_seconds_ > 0 ? kPromptSeconds / row_seconds_ : options_.max_rows;
  return std::max(kLeastPromptRows, static_cast<int>(std::min<double>(rows, options_.max_rows)));
}

void BatchEngine::AddShare(Request& request, int most, int& left) {
  const int rows = std::min(most, left);
  if (rows <= 0) return;
  left -= rows;
  shares_.push_back({&request, rows});
}

// Whether an older request computes the next page of this one in this call.
bool BatchEngine::WaitsForElder(const Request& request) const {
  const int page = model_.kv_memory().page_positions;
  const std::span<const TokenId> tokens = request.run.tokens();
  // The last token is not taken from the cache.
  const int end = request.length + page;
  if (page <= 1 || request.length % page != 0 || end >= static_cast<int>(tokens.size())) {
    return false;
  }
  for (const Share& share : shares_) {
    const std::span<const TokenId> others = share.request->run.tokens();
    const int length = share.request->length;
    if (length > request.length || length + share.rows < end) continue;
    if (std::equal(tokens.begin(), tokens.begin() + end, others.begin())) return true;
  }
  return false;
}

int64_t BatchEngine::MissingPages() const {
  const int page = model_.kv_memory().page_positions;
  int64_t missing = 0;
  for (const Share& share : shares_) {
    const int64_t length = share.request->length;
    missing += Pages(length + share.rows, page) - Pages(length, page);
  }
  return missing;
}

// The youngest goes, and comes back before those whose turn has not come.
void BatchEngine::Preempt() {
  Owned youngest = std::move(running_.back());
  running_.pop_back();
  Release(*youngest);
  if (youngest->ended) {
    EndDrafts(*youngest);
    ended_.push_back(std::move(youngest));
    return;
  }
  ++youngest->preemptions;
  ++stats_.preemptions;
  InsertByAge(std::move(youngest), next_);
}

// ---- The model ----

// Requests whose drafts an exception has left half made get none from here on.
bool BatchEngine::PlanDrafts(std::span<const Share> shares, bool wanted) {
  if (verifier_ == nullptr) return false;
  const Result<bool> made = Guarded([&]() -> Result<bool> {
    verifier_->BeginCall(model_.kv_memory().available - MissingPages());
    for (const Share& share : shares) {
      Request& request = *share.request;
      if (!wanted && request.drafts != nullptr) DraftVerifier::Drop(*request.drafts);
      verifier_->Offer(wanted ? request.drafts.get() : nullptr, request.run, request.length,
                       share.rows);
    }
    return verifier_->Grow();
  });
  if (made.ok()) return *made;
  for (const Share& share : shares) {
    if (share.request->drafts != nullptr) DraftVerifier::GiveUp(*share.request->drafts);
  }
  return false;
}

void BatchEngine::MakeRows(std::span<Share> shares, bool draws) {
  for (Share& share : shares) {
    share.draft_rows = 0;
    Request& request = *share.request;
    const std::span<const TokenId> tokens = request.run.tokens();
    const bool last = share.rows == request.pending();
    for (int i = 0; i < share.rows; ++i) {
      rows_.push_back({.token = tokens[static_cast<size_t>(request.length + i)],
                       .position = request.length + i,
                       .sequence = request.sequence});
    }
    if (!last) continue;
    rows_.back().output = static_cast<int32_t>(asking_.size());
    if (!draws) rows_.back().allowed = request.run.allowed();
    asking_.push_back({&request});
    if (request.drafts == nullptr) continue;
    share.draft_rows = verifier_->AddRows(*request.drafts,
                                          {.sequence = request.sequence,
                                           .length = request.length,
                                           .pending = share.rows,
                                           .root_output = rows_.back().output,
                                           .next_output = static_cast<int32_t>(asking_.size())},
                                          rows_);
    for (int i = 0; i < share.draft_rows; ++i) asking_.push_back({&request, i});
  }
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  if (!draws && logits_.size() < width * asking_.size()) logits_.resize(width * asking_.size());
  if (draws) {
    requests_.assign(asking_.size(), {});
    tokens_.assign(asking_.size(), kNoToken);
    asked_tokens_.resize(asking_.size());
  }
}

Status BatchEngine::RunRows(bool draws, double& seconds) {
  CountStep();
  Timer timer(seconds);
  ModelCall call;
  call.rows = rows_;
  if (draws) {
    call.draws = true;
    call.requests = requests_;
    call.tokens = tokens_;
    call.late = [this] { FollowLate(); };
  } else {
    call.logits = logits_;
  }
  return model_.Run(call);
}

void BatchEngine::Forget(std::span<const Share> shares) {
  for (const Share& share : shares) model_.Truncate(share.request->sequence, share.request->length);
}

CallAnswers BatchEngine::answers() const {
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  const bool draws = options_.sample_in_model && model_.samples();
  CallAnswers answers;
  answers.width = width;
  if (draws) {
    answers.tokens = tokens_;
  } else {
    answers.logits = logits_;
  }
  return answers;
}

Status BatchEngine::Call(std::span<Share> shares, bool with_drafts) {
  const bool drafted = PlanDrafts(shares, with_drafts);
  const bool draws = options_.sample_in_model && model_.samples();
  rows_.clear();
  asking_.clear();
  double seconds = 0;
  bool answered = false;  // rather than left by an exception
  const Status status = Guarded([&] {
    MakeRows(shares, draws);
    Status ran;
    if (!rows_.empty()) ran = RunRows(draws, seconds);
    answered = true;
    return ran;
  });
  if (rows_.empty() && answered) return {};
  if (!status.ok() && drafted) {
    // Drafts must not harm: there may be no memory for them, or a row that no output comes by has
    // no good logits.
    Forget(shares);
    verifier_->CountFailedCall();
    return Call(shares, false);
  }
  const std::span<const int32_t> bad = answered ? model_.bad_rows() : std::span<const int32_t>();
  if (!status.ok() && bad.empty() && shares.size() > 1) {
    Forget(shares);
    return CopyOf(status.error());
  }
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  call_seconds_ += (seconds - call_seconds_) * kNewest;
  if (static_cast<int>(rows_.size()) >= kLeastPromptRows) {
    const double row = seconds / static_cast<double>(rows_.size());
    row_seconds_ += (row - row_seconds_) * (row_seconds_ > 0 ? kNewestRows : 1.0);
  }
  if (verifier_ != nullptr) verifier_->Learn(static_cast<int>(rows_.size()), seconds);
  stats_.rows += static_cast<int64_t>(rows_.size());
  const double per_row = seconds / static_cast<double>(std::max<size_t>(1, rows_.size()));
  int32_t first = 0;
  for (const Share& share : shares) {
    Request& request = *share.request;
    GenerationStats& stats = request.run.stats();
    ++stats.forward_calls;
    const int rows = share.rows + share.draft_rows;
    (request.run.asked() ? stats.decode_seconds : stats.prefill_seconds) += per_row * rows;
    const auto bad_here = std::lower_bound(bad.begin(), bad.end(), first);
    const bool failed =
        !status.ok() && (bad.empty() || (bad_here != bad.end() && *bad_here < first + rows));
    const int32_t last = first + share.rows - 1;
    first += rows;
    if (failed) {
      if (!request.ended) request.Fail(CopyOf(status.error()));
      continue;
    }
    request.length += share.rows;
    const int32_t output = rows_[static_cast<size_t>(last)].output;
    if (output < 0) continue;
    if (!draws) {
      request.logits = logits_.data() + width * static_cast<size_t>(output);
    } else if (!requests_[static_cast<size_t>(output)].unwanted) {
      request.drawn = tokens_[static_cast<size_t>(output)];
    }
  }
  return {};
}

void BatchEngine::CallAlone() {
  for (Share& share : shares_) {
    if (share.request->ended) continue;
    // A call of one share settles it.
    (void)Call({&share, 1}, false);
    TakeAnswers();
  }
}

// The constraints follow the tokens whose rows the model computes now, and the requests are made
// for what they allow. Where the output has ended, sits out, or goes on with what is forced, nobody
// wants the token after that row.
void BatchEngine::FollowLate() {
  const auto follow = [this](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Request& request = *asking_[static_cast<size_t>(i)].request;
      if (asking_[static_cast<size_t>(i)].draft >= 0) continue;
      asked_tokens_[static_cast<size_t>(i)] = request.run.tokens().size();
      if (request.run.asks()) request.Take(Guarded([&] { return LookHere(request); }));
    }
  };
  const auto ask = [this](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) Ask(static_cast<size_t>(i));
  };
  const auto size = static_cast<int64_t>(asking_.size());
  const bool late = std::any_of(asking_.begin(), asking_.end(),
                                [](const Asking& asking) { return asking.request->follows_later; });
  stats_.late_steps += late ? 1 : 0;
  double seconds = 0;
  {
    Timer timer(seconds);
    pool_.ParallelFor(size, 1, follow);
    for (const Asking& asking : asking_) {
      if (asking.draft >= 0) continue;
      asking.request->follows_later = false;
      if (!asking.request->ended && asking.request->run.asks()) BeginLook(*asking.request);
    }
    WaitForLooks();
    pool_.ParallelFor(size, 1, ask);
  }
  if (!late) return;
  follow_seconds_ += (seconds - follow_seconds_) * kNewest;
  const auto forced = static_cast<double>(
      std::count_if(requests_.begin(), requests_.end(),
                    [](const SampleRequest& request) { return request.unwanted; }));
  forced_share_ += (forced / static_cast<double>(asking_.size()) - forced_share_) * kNewest;
}

// How the model is to draw the token of an output of the call.
void BatchEngine::Ask(size_t output) {
  Request& request = *asking_[output].request;
  SampleRequest& wanted = requests_[output];
  if (const int draft = asking_[output].draft; draft >= 0) {
    return DraftVerifier::Ask(*request.drafts, draft, wanted);
  }
  wanted.unwanted =
      request.looking || request.ended || request.run.tokens().size() != asked_tokens_[output];
  if (wanted.unwanted) return;
  const Status asked = Guarded([&]() -> Status {
    wanted = request.run.Request();
    return {};
  });
  if (asked.ok()) return;
  wanted.unwanted = true;
  request.Fail(CopyOf(asked.error()));
}

// A step takes the sum of both, or the longer of the two and that again for what is forced.
bool BatchEngine::LateIsFaster() const {
  if (options_.late_masks != LateMasks::kAuto) return options_.late_masks == LateMasks::kAlways;
  return std::max(call_seconds_, follow_seconds_) * (1 + forced_share_) <
         call_seconds_ + follow_seconds_;
}

void BatchEngine::TakeAnswers() {
  // A tree grows from the place behind the token, so that is found first.
  const bool later = verifier_ == nullptr && LateIsFaster();
  std::atomic<int> taken = 0, forced = 0;
  const auto take = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Request& request = *running_[static_cast<size_t>(i)];
      if (request.logits == nullptr && request.drawn == kNoToken) continue;
      const size_t tokens = request.run.tokens().size();
      const bool tree = request.drafts != nullptr && DraftVerifier::HasTree(*request.drafts);
      request.Take(
          Guarded([&] { return tree ? TakeDrafted(request) : TakeAnswer(request, later); }));
      ++taken;
      if (!tree && request.run.tokens().size() > tokens + 1) ++forced;
    }
  };
  double seconds = 0;
  {
    Timer timer(seconds);
    pool_.ParallelFor(running(), 1, take);
    for (const Owned& request : running_) {
      if (!request->looking && !request->ended && !request->follows_later && request->run.asks())
        BeginLook(*request);
    }
    for (const Owned& request : running_) {
      if (request->drafts == nullptr) continue;
      const Status settled = Guarded([&]() -> Status {
        request->length = verifier_->Settle(*request->drafts, answers(), request->sequence,
                                            request->length, request->ended);
        return {};
      });
      if (!settled.ok()) request->Fail(CopyOf(settled.error()));
    }
    WaitForLooks();
  }
  if (later || taken == 0) return;
  follow_seconds_ += (seconds - follow_seconds_) * kNewest;
  forced_share_ += (static_cast<double>(forced) / taken - forced_share_) * kNewest;
}

Result<bool> BatchEngine::TakeAnswer(Request& request, bool later) {
  const TokenId drawn = std::exchange(request.drawn, kNoToken);
  const float* const logits = std::exchange(request.logits, nullptr);
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  Result<bool> wants =
      drawn != kNoToken ? request.run.TakeToken(drawn) : request.run.Take({logits, width});
  if (!wants.ok() || !*wants) return wants;
  // The last token of the budget has no row.
  request.follows_later = later && drawn != kNoToken && request.run.tokens_left() > 0;
  return request.follows_later ? true : LookHere(request);
}

Result<bool> BatchEngine::TakeDrafted(Request& request) {
  request.drawn = kNoToken;
  request.logits = nullptr;
  return verifier_->Take(*request.drafts, answers(), [&] { return LookHere(request); });
}

void BatchEngine::EndDrafts(Request& request) {
  if (request.drafts == nullptr) return;
  verifier_->End(*request.drafts, request.error.has_value());
  request.drafts.reset();
}

BatchStats BatchEngine::stats() const {
  BatchStats stats = stats_;
  if (verifier_ == nullptr) return stats;
  stats.drafts = verifier_->counts().rows;
  stats.accepted = verifier_->counts().accepted;
  stats.failed_drafts = verifier_->counts().failed_calls;
  return stats;
}

void BatchEngine::Settle() {
  // Callbacks may add requests, which moves what is in the lists.
  for (size_t i = 0; i < running_.size(); ++i) {
    Request& request = *running_[i];
    if (request.looking) continue;
    const Result<bool> goes_on = Guarded([&]() -> Result<bool> { return request.run.Tell(); });
    if (!goes_on.ok()) {
      request.Fail(CopyOf(goes_on.error()));
    } else if (!*goes_on) {
      request.ended = true;
      request.error.reset();
    }
    if (!request.ended) continue;
    EndDrafts(request);
    Release(request);
    ended_.push_back(std::move(running_[i]));
  }
  std::erase(running_, nullptr);
  // A callback may add requests, not end them.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const Owned request = std::move(ended_[i]);
    if (!request->done) continue;
    Result<Generation> output = Guarded([&]() -> Result<Generation> {
      if (request->error.has_value()) return std::move(*request->error);
      request->run.stats().preemptions = request->preemptions;
      return request->run.Finish();
    });
    Discard(*request);
    try {
      request->done(std::move(output));
    } catch (...) {  // NOLINT(bugprone-empty-catch): see BatchRequest
    }
  }
  ended_.clear();
}

}  // namespace pawl
