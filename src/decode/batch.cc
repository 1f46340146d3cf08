// A step: end what was cancelled, admit, choose rows, call the model, give each request its token
// or its logits, call back.
//
// Rows. Works (work.h) say how many rows they want to run before they go on. Those that have begun
// to write come first, in the order of age; prompts share what is left of the rows of a call, the
// oldest first, chunk by chunk, and a quarter of the rows is theirs in any case, so that neither
// kind holds up the other. Next to outputs that write, prompts get as many rows as the model
// computes in about 25 ms, so that the outputs go on evenly.
//
// Prompts often begin alike. What a sequence computes is in the prefix cache after the call, so a
// request whose next page is what an older one computes in this call waits for it.
//
// Masks. Where the model draws tokens itself it asks for the masks when its forward pass is under
// path. A new token's row can then run before the constraint has followed the token: in the model's
// time, and not in front of it. But a constraint that turns out to force what comes next has wasted
// a call, so that is done where measurements say that it pays. Where a work needs logits, the model
// gives logits to all in that call, and the tokens are drawn here, which are the same.
//
// Turns and memory. A request waits in the line until the turn of its group comes; then it gets its
// age. Those with an age and no place come before the line, the oldest first, and where memory does
// not hold one of them no other overtakes it. The youngest that runs frees its pages. So the oldest
// of all with an age is never the one to go: it has rows in every call in which it does not sit
// out, looks end, and so does it; then the next one is the oldest. If it has no place because its
// first look took long and younger ones filled the memory meanwhile, none is admitted until these
// have ended. One sequence alone always fits, because a budget is cut to what memory holds in all.
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

#include "src/decode/diffusion/diffusion_work.h"

namespace pawl {
namespace {

// A request is admitted when its tokens and so many more fit: admitting it just to send it away
// again would be work for nothing.
constexpr int kHeadroom = 64;
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
  // A canvas runs in one call, with guidance two.
  if (model_.filling()) {
    options_.max_rows = std::max(options_.max_rows, 2 * model_.info().context_length);
    options_.drafter = nullptr;
  }
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
  setting_.task.model = &model_.info();
  setting_.task.vocabulary = vocabulary_.get();
  setting_.task.encode = &encode_;
  setting_.task.positions = static_cast<int>(memory.positions(context));
  setting_.model = &model_;
  setting_.verifier = verifier_.get();
  setting_.draws = options_.sample_in_model && model_.samples();
}

BatchEngine::~BatchEngine() {
  const auto stop = [](const Owned& request) { request->work->stop = true; };
  std::for_each(running_.begin(), running_.end(), stop);
  std::for_each(next_.begin(), next_.end(), stop);
  looks_.reset();
  for (const Owned& request : running_) request->work->Evict();
}

RequestId BatchEngine::Add(BatchRequest request) {
  const uint64_t group = request.group;
  if (const std::optional<MaskFilling> filling = model_.filling()) {
    Model& model = request.model != nullptr ? *request.model : model_;
    return Add(
        std::make_unique<DiffusionWork>(model, *filling, setting_.task, std::move(request.prompt),
                                        std::move(request.constraint), std::move(request.options),
                                        std::move(request.done)),
        group);
  }
  return Add(std::make_unique<OutputWork>(SettingOf(request.model), std::move(request.prompt),
                                          std::move(request.constraint), std::move(request.options),
                                          std::move(request.done)),
             group);
}

const OutputSetting& BatchEngine::SettingOf(Model* model) {
  if (model == nullptr) return setting_;
  const auto found = std::ranges::find(adapted_, model, &OutputSetting::model);
  if (found != adapted_.end()) return *found;
  OutputSetting& setting = adapted_.emplace_back(setting_);
  setting.model = model;
  return setting;
}

RequestId BatchEngine::Add(std::unique_ptr<Work> work, uint64_t group_in) {
  const size_t all = running_.size() + next_.size() + leaving_.size() + ended_.size() +
                     static_cast<size_t>(line_.size()) + 1;
  const size_t most = std::min(all, static_cast<size_t>(kMostPerPlace * options_.max_batch));
  ReserveFor(all, ended_);
  ReserveFor(all, next_);
  ReserveFor(all, leaving_);
  ReserveFor(most, running_);
  ReserveFor(most, present_);
  ReserveFor(most, shares_);
  auto added = std::make_unique<Request>(next_id_, group_in, std::move(work));
  const uint64_t group = added->group;
  line_.Add(std::move(added), group);
  return next_id_++;
}

void BatchEngine::Cancel(RequestId id) {
  const auto cancel = [&](const Owned& request) {
    if (request->id != id) return;
    request->cancelled = cancels_ = true;
    request->work->stop = true;
  };
  std::for_each(running_.begin(), running_.end(), cancel);
  std::for_each(next_.begin(), next_.end(), cancel);
  line_.ForEach(cancel);
}

bool BatchEngine::Step() noexcept {
  bool ran = false;
  try {
    TakeLooks();
    EndCancelled();
    Admit();
    if (present() > 0) {
      if (needs_logits()) FollowNow();
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
      if (request->cancelled) EndNow(request);
    }
    std::erase(*list, nullptr);
  }
  line_.ForEach([&](Owned& request) {
    if (request->cancelled) EndNow(request);
  });
  line_.DropEmpty();
}

// A search may have a tree of millions of nodes to free.
void BatchEngine::EndNow(Owned& request) {
  if (!request->looking) {
    request->work->Cancel();
    if (looks_ != nullptr && !request->ended && request->work->ends_in_look()) BeginLook(*request);
  }
  if (request->looking) {
    request->work->Evict();
    leaving_.push_back(std::move(request));
    return;
  }
  request->work->End(request->error.has_value());
  request->ended = true;
  request->work->Evict();
  ended_.push_back(std::move(request));
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
        request->Take(Guarded([&] { return request->work->Start(MayWait()); }));
        if (!request->ended && request->work->asks()) BeginLook(*request);
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
      request.Take(Guarded([&] { return request.work->Begin(); }));
    if (!request.ended) {
      if (!running_.empty() && !HasRoomFor(request)) return false;
      const Status opened = Guarded([&] { return request.work->Open(); });
      if (!opened.ok()) request.Fail(CopyOf(opened.error()));
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
  request.work->Evict();
  ++request.preemptions;
  ++stats_.preemptions;
}

bool BatchEngine::HasRoomFor(const Request& request) const {
  int64_t pages = request.work->pages(kHeadroom, request.looking);
  for (const Owned& other : running_) {
    if (!other->ended) pages += other->work->pages(kHeadroom, other->looking);
  }
  return pages <= model_.kv_memory().available;
}

// ---- Rows ----

void BatchEngine::PlanShares() {
  const auto guarded = [](Request& request, auto step) {
    const Status done = Guarded([&] { return step(*request.work); });
    if (!done.ok()) request.Fail(CopyOf(done.error()));
    return done.ok();
  };
  for (;;) {
    shares_.clear();
    present_.clear();
    for (const Owned& request : running_) {
      if (request->looking || request->ended) continue;
      if (static_cast<int>(present_.size()) >= options_.max_batch) break;
      if (guarded(*request, [](Work& work) { return work.Prepare(); })) {
        present_.push_back(&*request);
      }
    }
    int left = options_.max_rows;
    const auto writes = [](const Request* request) { return request->work->writes(); };
    const bool prompts = !std::all_of(present_.begin(), present_.end(), writes);
    int for_writing = prompts ? left - left / 4 : left;
    left -= for_writing;
    for (Request* const request : present_) {
      if (writes(request)) AddShare(*request, request->work->pending(), for_writing);
    }
    left += for_writing;
    prompts_wait_ = false;
    // Outputs that write wait for the rows of prompts in their call.
    if (!shares_.empty()) left = std::min(left, PromptRows());
    for (Request* const request : present_) {
      if (writes(request) || !guarded(*request, [](Work& work) { return work.Reuse(); })) continue;
      if (WaitsForElder(*request)) continue;
      prompts_wait_ |= request->work->pending() > left;
      AddShare(*request, request->work->pending(), left);
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
  const int rows = std::min({most, left, request.work->most_rows(options_.max_rows)});
  if (rows <= 0) return;
  left -= rows;
  shares_.push_back({&request, rows});
}

// Whether an older output computes the next page of this one in this call.
bool BatchEngine::WaitsForElder(Request& request) const {
  const OutputWork* const output = request.work->output();
  if (output == nullptr) return false;
  const int page = model_.kv_memory().page_positions;
  const std::span<const TokenId> tokens = output->tokens();
  // The last token is not taken from the cache.
  const int end = output->length() + page;
  if (page <= 1 || output->length() % page != 0 || end >= static_cast<int>(tokens.size())) {
    return false;
  }
  for (const RowSpan& share : shares_) {
    const OutputWork* const other = share.request->work->output();
    if (other == nullptr || &other->model() != &output->model()) continue;
    const std::span<const TokenId> others = other->tokens();
    if (other->length() > output->length() || other->length() + share.rows < end) continue;
    if (std::equal(tokens.begin(), tokens.begin() + end, others.begin())) return true;
  }
  return false;
}

int64_t BatchEngine::MissingPages() const {
  int64_t missing = 0;
  for (const RowSpan& share : shares_) missing += share.request->work->PagesOf(share.rows);
  return missing;
}

// The youngest goes, and comes back before those whose turn has not come.
void BatchEngine::Preempt() {
  Owned youngest = std::move(running_.back());
  running_.pop_back();
  youngest->work->Evict();
  if (youngest->ended) {
    youngest->work->End(youngest->error.has_value());
    ended_.push_back(std::move(youngest));
    return;
  }
  ++youngest->preemptions;
  ++stats_.preemptions;
  InsertByAge(std::move(youngest), next_);
}

// ---- The model ----

bool BatchEngine::needs_logits() const {
  return setting_.draws && std::ranges::any_of(running_, [](const Owned& request) {
           return request->work->needs_logits();
         });
}

// Outputs whose drafts an exception has left half made get none from here on.
bool BatchEngine::PlanDrafts(std::span<const RowSpan> shares, bool wanted) {
  if (verifier_ == nullptr) return false;
  const Result<bool> made = Guarded([&]() -> Result<bool> {
    int rows_of_others = 0;
    for (const RowSpan& share : shares) {
      if (share.request->work->output() == nullptr) rows_of_others += share.rows;
    }
    verifier_->BeginCall(model_.kv_memory().available - MissingPages(), rows_of_others,
                         prompts_wait_, setting_.draws && !needs_logits());
    for (const RowSpan& share : shares) {
      if (OutputWork* const output = share.request->work->output(); output != nullptr) {
        output->Offer(share.rows, wanted);
      }
    }
    return verifier_->Grow();
  });
  if (made.ok()) return *made;
  for (const RowSpan& share : shares) {
    if (OutputWork* const output = share.request->work->output()) output->GiveUpDrafts();
  }
  return false;
}

void BatchEngine::MakeRows(std::span<RowSpan> shares) {
  sink_.draws = setting_.draws && !needs_logits();
  for (RowSpan& share : shares) {
    const size_t begin = sink_.rows.size();
    share.request->work->Ask(sink_, share.rows);
    share.all_rows = static_cast<int>(sink_.rows.size() - begin);
    asking_.resize(sink_.asking.size(), share.request);
  }
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  const size_t outputs = sink_.asking.size();
  if (sink_.draws) {
    requests_.assign(outputs, {});
    tokens_.assign(outputs, kNoToken);
  } else if (logits_.size() < width * outputs) {
    logits_.resize(width * outputs);
  }
}

Status BatchEngine::RunRows(double& seconds) {
  CountStep();
  Timer timer(seconds);
  ModelCall call;
  call.rows = sink_.rows;
  if (sink_.draws) {
    call.draws = true;
    call.requests = requests_;
    call.tokens = tokens_;
    call.late = [this] { AdvanceDuringForward(); };
  } else {
    call.logits = logits_;
  }
  ModelTap tap{.layer = ModelTap::kFinal, .states = {}};
  if (sink_.states) {
    states_.resize(sink_.rows.size() * static_cast<size_t>(model_.info().hidden));
    tap.states = states_;
    call.taps = {&tap, 1};
  }
  Status ran = model_.Run(call);
  if (verifier_ != nullptr) verifier_->Answered();
  return ran;
}

CallAnswers BatchEngine::answers() const {
  CallAnswers answers;
  answers.width = static_cast<size_t>(model_.info().vocabulary_size);
  if (sink_.draws) {
    answers.tokens = tokens_;
  } else {
    answers.logits = logits_;
  }
  answers.states = states_;
  answers.hidden = static_cast<size_t>(model_.info().hidden);
  answers.rows = sink_.rows;
  return answers;
}

Status BatchEngine::Call(std::span<RowSpan> shares, bool with_drafts) {
  const bool drafted = PlanDrafts(shares, with_drafts);
  sink_.rows.clear();
  sink_.asking.clear();
  sink_.states = false;
  asking_.clear();
  double seconds = 0;
  bool answered = false;  // rather than left by an exception
  const Status status = Guarded([&] {
    MakeRows(shares);
    Status ran;
    if (!sink_.rows.empty()) ran = RunRows(seconds);
    answered = true;
    return ran;
  });
  if (sink_.rows.empty() && answered) return {};
  if (!status.ok() && drafted) {
    // Drafts must not harm: there may be no memory for them, or a row that no output comes by has
    // no good logits.
    for (const RowSpan& share : shares) share.request->work->Forget();
    verifier_->CountFailedCall();
    return Call(shares, false);
  }
  const std::span<const int32_t> bad = answered ? model_.bad_rows() : std::span<const int32_t>();
  if (!status.ok() && bad.empty() && shares.size() > 1) {
    for (const RowSpan& share : shares) share.request->work->Forget();
    return CopyOf(status.error());
  }
  const auto rows = static_cast<int>(sink_.rows.size());
  call_seconds_ += (seconds - call_seconds_) * kNewest;
  if (rows >= kLeastPromptRows) {
    const double row = seconds / rows;
    row_seconds_ += (row - row_seconds_) * (row_seconds_ > 0 ? kNewestRows : 1.0);
  }
  if (verifier_ != nullptr) verifier_->Learn(rows, seconds);
  stats_.rows += rows;
  const double per_row = seconds / std::max(1, rows);
  int32_t first = 0;
  for (const RowSpan& share : shares) {
    Request& request = *share.request;
    const auto bad_here = std::lower_bound(bad.begin(), bad.end(), first);
    first += share.all_rows;
    const bool failed =
        !status.ok() && (bad.empty() || (bad_here != bad.end() && *bad_here < first));
    request.work->Ran(answers(), per_row * share.all_rows, failed);
    if (failed && !request.ended) request.Fail(CopyOf(status.error()));
  }
  return {};
}

void BatchEngine::CallAlone() {
  for (RowSpan& share : shares_) {
    if (share.request->ended) continue;
    // A call of one share settles it.
    (void)Call({&share, 1}, false);
    TakeAnswers();
  }
}

// The constraints follow the tokens whose rows the model computes now, and the requests are made
// for what they allow. Where the output has ended, sits out, or goes on with what is forced, the
// token after that row is not wanted.
void BatchEngine::AdvanceDuringForward() {
  const auto is_last = [this](size_t i) { return sink_.asking[i].tag < 0; };
  const auto output_of = [this](size_t i) { return asking_[i]->work->output(); };
  const auto follow = [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (!is_last(i)) continue;
      asking_[i]->Take(Guarded([&] { return output_of(i)->Follow(); }));
    }
  };
  const auto ask = [this](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) Ask(static_cast<size_t>(i));
  };
  const auto began = DraftVerifier::Clock::now();
  bool late = false;
  for (size_t i = 0; i < asking_.size(); ++i) late |= output_of(i)->follows_later();
  stats_.late_steps += late ? 1 : 0;
  const auto size = static_cast<int64_t>(asking_.size());
  double seconds = 0;
  {
    Timer timer(seconds);
    pool_.ParallelFor(size, 1, follow);
    for (size_t i = 0; i < asking_.size(); ++i) {
      if (!is_last(i)) continue;
      output_of(i)->EndFollow();
      if (!asking_[i]->ended && asking_[i]->work->asks()) BeginLook(*asking_[i]);
    }
    WaitForLooks();
    pool_.ParallelFor(size, 1, ask);
  }
  if (verifier_ != nullptr) verifier_->GoOn(began);
  if (!late) return;
  follow_seconds_ += (seconds - follow_seconds_) * kNewest;
  const auto forced = static_cast<double>(
      std::count_if(requests_.begin(), requests_.end(),
                    [](const SampleRequest& request) { return request.unwanted; }));
  forced_share_ += (forced / static_cast<double>(asking_.size()) - forced_share_) * kNewest;
}

void BatchEngine::FollowNow() {
  for (const Owned& request : running_) {
    OutputWork* const output = request->work->output();
    if (output == nullptr || request->looking || request->ended || !output->follows_later()) {
      continue;
    }
    request->Take(Guarded([&] { return output->Follow(); }));
    output->EndFollow();
    if (!request->ended && request->work->asks()) BeginLook(*request);
  }
  WaitForLooks();
}

// How the model is to draw the token of an output of the call.
void BatchEngine::Ask(size_t output) {
  Request& request = *asking_[output];
  const Status asked = request.work->output()->Request(
      sink_.asking[output].tag, request.looking || request.ended, requests_[output]);
  if (!asked.ok()) request.Fail(CopyOf(asked.error()));
}

// A step takes the sum of both, or the longer of the two and that again for what is forced.
bool BatchEngine::LateIsFaster() const {
  if (options_.late_masks != MaskOverlap::kAuto) return options_.late_masks == MaskOverlap::kAlways;
  return std::max(call_seconds_, follow_seconds_) * (1 + forced_share_) <
         call_seconds_ + follow_seconds_;
}

void BatchEngine::TakeAnswers() {
  // A tree grows from the place behind the token, so that is found first.
  const bool later = (verifier_ == nullptr || verifier_->rests()) && LateIsFaster();
  std::atomic<int> taken = 0, forced = 0;
  const CallAnswers answers = this->answers();
  const auto take = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Request& request = *running_[static_cast<size_t>(i)];
      if (!request.work->answered()) continue;
      request.Take(Guarded([&] { return request.work->Take(answers, later); }));
      ++taken;
      if (const OutputWork* const output = request.work->output()) forced += output->took_forced();
    }
  };
  double seconds = 0;
  {
    Timer timer(seconds);
    pool_.ParallelFor(running(), 1, take);
    for (const Owned& request : running_) {
      if (!request->looking && !request->ended && request->work->asks()) BeginLook(*request);
    }
    GoOnInTrees(answers);
    for (const Owned& request : running_) {
      const Status settled = Guarded([&]() -> Status {
        request->work->Settle(answers, request->ended);
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
    const Result<bool> goes_on = Guarded([&] { return request.work->Emit(); });
    if (!goes_on.ok()) {
      request.Fail(CopyOf(goes_on.error()));
    } else if (!*goes_on) {
      request.ended = true;
      request.error.reset();
    }
    if (!request.ended) continue;
    request.work->End(request.error.has_value());
    request.work->Evict();
    ended_.push_back(std::move(running_[i]));
  }
  std::erase(running_, nullptr);
  // A callback may add requests, not end them.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const Owned request = std::move(ended_[i]);
    request->work->Finish(std::move(request->error), request->preemptions);
    Discard(*request->work);
    try {
      request->work->Done();
    } catch (...) {  // NOLINT(bugprone-empty-catch): see BatchRequest
    }
  }
  ended_.clear();
}

}  // namespace pawl
