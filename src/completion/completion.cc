// Completion, on top of the engine: the monitors are the constraint of a request, and the callback
// that hears of each token ends the output with its statement.
//
// The cursor often stands inside a name, or behind a space that the model's tokens have at their
// beginning. What is begun so is taken off the prompt and becomes what the output has to begin
// with: the model then spells the name as it is used to, and the monitors know of the name from its
// first byte. Where they would not have let it be written it is left as it is, and they say
// nothing about it.
#include "src/completion/completion.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/utf8.h"
#include "src/engine/engine_parts.h"
#include "src/text/fim.h"

namespace pawl::completion {
namespace {

// A longer text is data: nothing is asked about it, and it is not parsed.
constexpr size_t kMostParsed = size_t{1} << 20;

constexpr size_t kKeptHosts = 4;

// Where the name that is begun at the end of `prefix` begins, with a space in front of it.
size_t BegunAt(std::string_view prefix, const monitors::Scan& scan) {
  size_t at = prefix.size();
  if (scan.in_code()) {
    while (at > 0 && monitors::NameByte(prefix[at - 1])) --at;
    if (at < prefix.size() && !monitors::NameStart(prefix[at])) at = prefix.size();
  }
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  if (at > 1 && prefix[at - 1] == ' ' && !space(prefix[at - 2])) --at;
  return at;
}

}  // namespace

CompletionPlanner::CompletionPlanner(std::shared_ptr<const Vocabulary> vocabulary,
                                     std::shared_ptr<monitors::LspServer> server)
    : vocabulary_(std::move(vocabulary)), server_(std::move(server)) {}

Result<std::shared_ptr<MonitorHost>> CompletionPlanner::HostOf(const CompletionRequest& request) {
  const bool monitored = request.language && request.use_monitors;
  std::string key;
  if (monitored) {
    key = monitors::LanguageName(*request.language) + std::string("\n") + request.repo;
    for (const std::string& name : request.monitors) key += "\n" + name;
    // A server knows a document by its file, and imports are looked for from there.
    const bool imports = !request.repo.empty() && *request.language != monitors::Language::kJava;
    if (server_ != nullptr || imports) key += "\n" + request.file;
  }
  const std::lock_guard lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->key == key) {
      std::rotate(kept, kept + 1, kept_.end());
      return kept_.back().host;
    }
  }
  std::unique_ptr<monitors::MonitorSet> set;
  if (monitored) {
    monitors::MonitorOptions options{
        .monitors = request.monitors, .repo = request.repo, .cache = request.cache};
    options.java_home = request.java_home;
    options.server = server_;
    options.file = request.file;
    auto made = monitors::MonitorSet::Make(*request.language, options);
    if (!made.ok() && made.error().code != ErrorCode::kUnsupported) return made.error();
    if (made.ok()) set = std::move(*made);
  }
  if (kept_.size() >= kKeptHosts) kept_.erase(kept_.begin());
  kept_.push_back(Kept{std::move(key), std::make_shared<MonitorHost>(std::move(set), vocabulary_)});
  return kept_.back().host;
}

namespace {

// Where the text ends with the `.` or `->` of a member: the bytes that may come there besides those
// that begin a name. White space may follow too, but a statement that ends there would not parse.
std::optional<std::string> BehindPoint(monitors::Language language, std::string_view text) {
  using monitors::Language;
  const bool arrow = language == Language::kCpp && text.ends_with("->");
  if (!arrow && !text.ends_with('.')) return std::nullopt;
  monitors::Scan scan(language);
  scan.Add(text);
  if (!scan.in_code()) return std::nullopt;
  text.remove_suffix(arrow ? 2 : 1);
  const bool optional = language == Language::kTypeScript && text.ends_with('?');
  const std::string_view ends = language == Language::kTypeScript ? ")]}\"'`!?/>" : ")]}\"'>";
  if (text.empty() ||
      (!monitors::NameByte(text.back()) && ends.find(text.back()) == std::string_view::npos)) {
    return std::nullopt;
  }
  size_t start = text.size();
  while (start > 0 && monitors::NameByte(text[start - 1])) --start;
  // The point of a number.
  if (start < text.size() && text[start] >= '0' && text[start] <= '9') return std::nullopt;
  if (optional) return "#[(`";
  switch (language) {
    case Language::kTypeScript:
      return "#";
    case Language::kJava:
      return "<@*";  // of type arguments, annotations and imports
    case Language::kCpp:
      return "~*";
    case Language::kPython:
      break;
  }
  return "";
}

}  // namespace

Result<CompletionPlan> CompletionPlanner::Plan(const CompletionRequest& request) {
  Result<std::shared_ptr<MonitorHost>> host = HostOf(request);
  if (!host.ok()) return host.error();
  CompletionPlan plan;
  plan.host = *host;
  plan.prefix = request.prefix;
  MonitoredText text;
  text.suffix = request.suffix_aware && request.suffix.size() <= kMostParsed ? request.suffix : "";
  text.prefix = request.prefix;
  text.must = request.must_begin;
  if (request.language && request.heal) {
    monitors::Scan scan(*request.language);
    scan.Add(request.prefix);
    const size_t begun = BegunAt(request.prefix, scan);
    if (begun > 0 && begun < request.prefix.size()) {
      MonitoredText whole = text;
      whole.prefix.resize(begun);
      whole.must = request.prefix.substr(begun) + request.must_begin;
      if (MonitorsAllow(*plan.host, whole)) {
        text = std::move(whole);
        plan.prefix.resize(begun);
        plan.skip = request.prefix.size() - begun;
      }
    }
  }
  if (!text.must.empty() && plan.skip == 0 && !MonitorsAllow(*plan.host, text)) {
    // It has to come all the same: as if it had been written.
    text.prefix += text.must;
    plan.prefix += text.must;
    text.must.clear();
  }
  text.name_first = text.prefix.ends_with('.') || text.prefix.ends_with("->");
  if (request.language) text.member = BehindPoint(*request.language, text.prefix);
  plan.text = std::move(text);
  return plan;
}

std::shared_ptr<const Constraint> CompletionPlan::ConstraintWith(
    std::shared_ptr<const Constraint> grammar,
    std::shared_ptr<std::atomic<uint64_t>> given_up) const {
  MonitoredText with = text;
  with.grammar = std::move(grammar);
  with.given_up = std::move(given_up);
  return MonitorConstraint(host, with);
}

CompletionOutput::CompletionOutput(const CompletionRequest& request, const CompletionPlan& plan)
    : request_(request),
      end_(request.language.value_or(monitors::Language::kPython), request.prefix),
      skip_(plan.skip) {
  // What had to come and was put in front of the model already.
  if (plan.prefix.size() > request.prefix.size()) {
    text_ = plan.prefix.substr(request.prefix.size());
    (void)end_.Take(text_);
  }
}

bool CompletionOutput::Add(std::string_view bytes) {
  if (ended_) return false;
  const size_t skipped = std::min(skip_, bytes.size());
  skip_ -= skipped;
  bytes.remove_prefix(skipped);
  const size_t stop = end_.Take(bytes);
  ended_ = stop != std::string_view::npos;
  text_ += bytes.substr(0, stop);
  return !ended_;
}

void CompletionOutput::Finish() {
  text_.resize(CompleteUtf8Prefix(text_));
  while (ended_ && !text_.empty() && (text_.back() == ' ' || text_.back() == '\n')) {
    text_.pop_back();
  }
  if (!request_.suffix_aware) return;
  // What the suffix begins with is not written twice; a bracket that the text has opened stays.
  monitors::Scan before(request_.language.value_or(monitors::Language::kPython));
  before.Add(request_.prefix);
  const std::string_view suffix = request_.suffix;
  for (size_t n = std::min({text_.size(), suffix.size(), size_t{200}}); n > 0; --n) {
    if (!text_.ends_with(suffix.substr(0, n))) continue;
    const std::string_view left = std::string_view(text_).substr(0, text_.size() - n);
    // Half a name is none.
    if (!left.empty() && monitors::NameByte(left.back()) && monitors::NameByte(suffix[0])) continue;
    monitors::Scan behind = before;
    behind.Add(left);
    if (behind.depth() != before.depth()) continue;
    text_.resize(left.size());
    return;
  }
}

bool CompletionOutput::Parses() const {
  if (!request_.language || !monitors::HasGrammar(*request_.language)) return true;
  if (request_.prefix.size() + text_.size() + request_.suffix.size() > kMostParsed) return true;
  std::string text = request_.prefix + text_ + request_.suffix;
  if (request_.suffix.find_first_not_of(" \t\r\n") == std::string::npos) {
    // What the prefix has opened may stay open, where nothing follows.
    monitors::Scan open(*request_.language);
    open.Add(request_.prefix);
    const size_t depth = open.depth();
    open.Add(text_);
    if (open.in_code() && open.depth() <= depth) text += open.Closers(true);
  }
  monitors::Parser parser(*request_.language);
  const auto tree = parser.Parse(std::move(text));
  return tree->cut() || !tree->broken();
}

bool CompletionOutput::BreaksNothing() const {
  if (Parses()) return true;
  monitors::Parser parser(*request_.language);
  // Whether something simple in its place would do: then the text is what is wrong.
  for (const std::string_view name : {"", "x", "x;", "x();"}) {
    monitors::Scan closed(*request_.language);
    closed.Add(request_.prefix + std::string(name));
    const bool last = request_.suffix.find_first_not_of(" \t\r\n") == std::string::npos;
    const auto tree = parser.Parse(request_.prefix + std::string(name) + request_.suffix +
                                   (last ? closed.Closers(true) : ""));
    if (!tree->cut() && !tree->broken()) return false;
  }
  // The file has a syntax error elsewhere. What the text opens, it closes.
  monitors::Scan scan(*request_.language);
  scan.Add(request_.prefix);
  const size_t depth = scan.depth();
  scan.Add(text_);
  return scan.depth() == depth && scan.in_code();
}

bool CompletionOutput::ParsesWhole() const {
  if (!request_.language || !monitors::HasGrammar(*request_.language)) return true;
  if (request_.prefix.size() + text_.size() + request_.suffix.size() > kMostParsed) return true;
  std::string text = request_.prefix + text_ + request_.suffix;
  if (request_.suffix.find_first_not_of(" \t\r\n") == std::string::npos) {
    monitors::Scan open(*request_.language);
    open.Add(text);
    text += open.Closers(true);
  }
  monitors::Parser parser(*request_.language);
  const auto tree = parser.Parse(std::move(text));
  return tree->cut() || !tree->broken();
}

bool CompletionOutput::CutToParse() {
  if (BreaksNothing()) return true;
  constexpr size_t kMostTries = 8;
  monitors::Scan scan(*request_.language);
  scan.Add(request_.prefix);
  const size_t depth = scan.depth();
  std::vector<size_t> ends;
  for (size_t i = 0; i < text_.size(); ++i) {
    // Behind a name or a bracket: what ends with an operator is no end.
    const char last = i > 0 ? text_[i - 1] : ' ';
    const bool ends_here = monitors::NameByte(last)
                               ? !monitors::NameByte(text_[i])
                               : std::string_view(")]}\"'`;").find(last) != std::string_view::npos;
    if (ends_here && scan.in_code() && scan.depth() == depth) ends.push_back(i);
    scan.Add(text_[i]);
  }
  const std::string whole = std::exchange(text_, "");
  for (size_t i = 0; i < ends.size(); ++i) {
    // The longest ones, and the shortest.
    const size_t from_end = ends.size() - 1 - i;
    if (i >= kMostTries && from_end > 1) continue;
    if (ends[from_end] < request_.must_begin.size()) break;
    text_ = whole.substr(0, ends[from_end]);
    if (BreaksNothing()) return true;
  }
  text_ = whole;
  return false;
}

CodeCompleter::CodeCompleter(Engine engine, std::shared_ptr<monitors::LspServer> server)
    : engine_(std::move(engine)), planner_(engine_.vocabulary(), std::move(server)) {}

// The nearest part of long texts is what matters: the end of the prefix, the beginning of the
// suffix. Where tokens of the prefix are left out, they are so many quarters of the space, so that
// a text which grows by a few tokens keeps its beginning and what the model has read of it.
std::vector<TokenId> CodeCompleter::PromptOf(std::string prefix, std::string suffix,
                                             size_t room) const {
  const LoadedModel& model = EngineAccess::ModelOf(engine_);
  const FimTemplate* form = suffix.empty() ? nullptr : model.fim();
  for (;;) {
    constexpr int kAny = std::numeric_limits<int>::max();  // it is cut afterwards
    std::vector<TokenId> tokens =
        form != nullptr ? *FimTokens(*form, model.tokenizer(),
                                     {.prefix = prefix, .suffix = suffix, .bos = model.plain().bos})
                        : *EncodeText(model.tokenizer(), model.plain(), prefix, false, kAny);
    if (tokens.size() <= room) return tokens;
    if (form == nullptr) {
      const size_t step = std::max<size_t>(1, room / 4);
      const size_t cut = (tokens.size() - room + step - 1) / step * step;
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(cut));
      return tokens;
    }
    const double part = 0.9 * static_cast<double>(room) / static_cast<double>(tokens.size());
    const auto most =
        static_cast<size_t>(part * static_cast<double>(prefix.size() + suffix.size()));
    suffix.resize(CompleteUtf8Prefix(suffix.substr(0, std::min(suffix.size(), most / 4))));
    size_t from = prefix.size() - std::min(prefix.size(), most - std::min(most, suffix.size()));
    if (const size_t line = prefix.find('\n', from); from > 0 && line + 1 < prefix.size()) {
      from = line + 1;
    }
    prefix.erase(0, from);
  }
}

Result<std::optional<Generation>> CodeCompleter::SelfInfill(const CompletionRequest& request,
                                                            const CompletionPlan& plan,
                                                            const EngineRequest& asked) {
  SearchOptions options;
  options.strategy = "self-infill";
  options.max_tokens = asked.options.max_tokens;
  options.seed = request.sampling.seed;
  options.arguments = {{"loops", request.infill_loops},
                       {"threshold", request.infill_threshold},
                       {"temperature", double{request.sampling.temperature}}};
  options.checks = {
      MakeCheck(CheckGranularity::kComplete, [&](const CheckQuestion& question) -> Result<Verdict> {
        CompletionOutput output(request, plan);
        (void)output.Add(question.text);
        output.Finish();
        return output.ParsesWhole() ? Verdict::kAccept : Verdict::kDead;
      })};
  EngineRequest free;
  free.tokens = asked.tokens;
  const Result<SearchResult> found = engine_.Search(free, options);
  if (!found.ok()) return found.error();
  if (found->outputs.empty()) return std::optional<Generation>();
  const SearchOutput& best = found->outputs.front();
  Generation out;
  out.text = best.text;
  out.stop = best.ended ? StopReason::kEnd : StopReason::kLength;
  out.stats.prompt_tokens = static_cast<int>(asked.tokens.size());
  out.stats.output_tokens = static_cast<int>(best.tokens.size());
  out.stats.forward_calls = static_cast<int>(found->model_calls);
  return std::optional(std::move(out));
}

namespace {

// As Engine::Generate; the flag is looked at between the calls of the model.
Result<Generation> GenerateUntil(Engine& engine, const EngineRequest& request,
                                 const std::atomic<bool>* stop) {
  if (stop == nullptr) return engine.Generate(request);
  std::optional<Result<Generation>> output;
  const Result<RequestId> id =
      engine.Add(request, [&](Result<Generation> done) { output = std::move(done); });
  if (!id.ok()) return id.error();
  while (!output && engine.Step()) {
    if (stop->load(std::memory_order_relaxed)) engine.Cancel(*id);
  }
  if (output) return *std::move(output);
  return Error{ErrorCode::kInternal, "the engine ended without an output", ""};
}

}  // namespace

Result<CompletionResult> CodeCompleter::Complete(const CompletionRequest& request) {
  if (Status status = CheckSamplingParams(request.sampling); !status.ok()) return status.error();
  if (request.max_tokens < 0) return Error{ErrorCode::kInvalid, "must be at least 0", "max_tokens"};
  Result<CompletionPlan> plan = planner_.Plan(request);
  if (!plan.ok()) return plan.error();
  const monitors::MonitorCounts before = plan->host->counts();
  const uint64_t refused = plan->host->refused();
  const int context = engine_.info().context_length;
  EngineRequest asked;
  GenerateOptions& options = asked.options;
  options.sampling = request.sampling;
  options.at_budget = AtBudget::kCut;
  // What is begun is part of the output.
  const auto must = static_cast<int>(plan->skip + request.must_begin.size());
  options.max_tokens = std::min(request.max_tokens + must, std::max(1, context / 2));
  int most = context - options.max_tokens - 1;
  if (request.max_prompt_tokens > 0) most = std::min(most, request.max_prompt_tokens);
  const auto room = static_cast<size_t>(std::max(16, most));
  asked.tokens = PromptOf(plan->prefix, request.suffix, room);
  if (asked.tokens.empty()) return Error{ErrorCode::kInvalid, "has no tokens", "prefix"};
  asked.constraint = plan->ConstraintWith(nullptr);
  CompletionOutput output(request, *plan);
  options.on_token = [&](TokenId, std::string_view bytes) { return output.Add(bytes); };
  std::optional<Generation> infilled;
  const FimTemplate* const form = EngineAccess::ModelOf(engine_).fim();
  if (request.infill_loops > 0 && form != nullptr && !form->suffix_first) {
    Result<std::optional<Generation>> found = SelfInfill(request, *plan, asked);
    if (!found.ok()) return found.error();
    infilled = *std::move(found);
    if (infilled) (void)output.Add(infilled->text);
  }
  const Result<Generation> made =
      infilled ? *std::move(infilled) : GenerateUntil(engine_, asked, request.stop);
  if (!made.ok()) {
    Error error = made.error();
    if (error.place == "prompt") error.place = "prefix";
    return error;
  }
  CompletionResult result;
  result.stats = made->stats;
  result.ended = output.ended() || made->stop == StopReason::kEnd;
  output.Finish();
  result.parses = request.must_parse ? output.CutToParse() : output.Parses();
  result.text = output.text();
  result.tokens = result.stats.output_tokens;
  result.refused = static_cast<int>(plan->host->refused() - refused);
  result.limits = plan->host->Limits();
  result.model_seconds = result.stats.prefill_seconds + result.stats.decode_seconds;
  const monitors::MonitorCounts after = plan->host->counts();
  result.points = after.points - before.points;
  result.constrained = after.constrained - before.constrained;
  result.given_up = after.given_up - before.given_up;
  result.monitor_seconds = after.trigger_seconds - before.trigger_seconds;
  return result;
}

}  // namespace pawl::completion
