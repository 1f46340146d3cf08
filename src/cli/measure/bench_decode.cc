// `pawl bench decode`: how fast a model decodes and reads prompts, next to what the machine could
// do.
//
// A decode step reads every weight once, so what bounds it is the rate at which memory is read.
// That rate is measured too, with a loop that does nothing else on the same threads: over a buffer
// far larger than the caches, and over one of the size of the weights, which caches may hold. All
// of it is measured in rounds, one thing after the other, and the best round of each counts: on a
// machine with other work the rest is noise.
//
// With a constraint and texts that fit it, every text is read token by token twice: with masks (the
// mask, the model with the rows of the head that the mask allows, the sampler) and without.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/base/cpu_features.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/os/processors.h"
#include "src/base/pages.h"
#include "src/base/thread_pool.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/decode/sampler.h"
#include "src/model/random_weights.h"
#include "src/model/transformer_cpu.h"

namespace pawl::cli {
namespace {

constexpr const char* kBenchDecode = "bench decode";
// Rounds on a quiet machine differ by less.
constexpr double kBusySpread = 1.5;
using Clock = std::chrono::steady_clock;

struct BenchDecodeFlags {
  std::string model, shape, dtype = "stored", kernels = "auto", json, tokenizer;
  int batch = 8, threads = 0, context = 128, prompt = 256, rounds = 5;
  GrammarFlags grammar{LayoutFlags::ForReading()};
  std::vector<std::string> texts;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Where one thread works, its processor time, which other programs do not lengthen.
double SecondsOf(int threads) {
  if (threads > 1) return SecondsSince(Clock::time_point());
  timespec spent = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

// ---- What the machine reads ----

class Reader {
 public:
  Reader(const KernelSet& kernels, int threads, int64_t bytes)
      : kernels_(kernels),
        pool_(threads),
        floats_(reinterpret_cast<float*>(arena_.Allocate(bytes)), static_cast<size_t>(bytes / 4)) {
    std::fill(floats_.begin(), floats_.end(), 1.0f);
  }
  // Bytes per second, of passes that take a fifth of a second together.
  double Measure() {
    const auto n = static_cast<int64_t>(floats_.size());
    const int64_t grain = (n / pool_.size() / 1024 + 1) * 1024;
    double best = 0, spent = 0;
    while (spent < 0.2) {
      const auto start = Clock::now();
      pool_.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int) {
        const float sum = kernels_.read_sum(floats_.data() + begin, end - begin);
        // The comparison keeps the loop from being left out.
        if (sum < 0) floats_[0] = sum;
      });
      const double seconds = SecondsSince(start);
      spent += seconds;
      best = std::max(best, static_cast<double>(n) * 4 / seconds);
    }
    return best;
  }

 private:
  const KernelSet& kernels_;
  ThreadPool pool_;
  HugeArena arena_;
  std::span<float> floats_;
};

struct Caches {
  int64_t l2 = 0, l3 = 0;  // bytes, 0 when unknown
  static Caches Ask() {
    Caches caches;
    caches.l2 = os::CacheBytes(2);
    caches.l3 = os::CacheBytes(3);
    return caches;
  }
  const char* Holds(int64_t bytes, int threads) const {
    if (bytes <= l2 * threads) return "L2";
    return bytes <= l3 ? "L3" : "memory";
  }
};

// ---- What the model does ----

struct Speeds {
  double memory = 0, weights = 0;  // bytes per second: a large buffer, one as large as the weights
  double step_one = std::numeric_limits<double>::infinity();  // seconds
  double step_batch = step_one, prefill = step_one;
  double slowest_round = 0;  // step_one of the round where that was longest
};

class Runner {
 public:
  Runner(Model& model, const BenchDecodeFlags& flags) : model_(model), flags_(flags) {}

  Status Prepare() {
    const int capacity = std::max(flags_.context + 1, flags_.prompt);
    for (int i = 0; i < flags_.batch; ++i) {
      Result<SequenceId> sequence = model_.NewSequence(capacity);
      if (!sequence.ok()) return sequence.error();
      sequences_.push_back(*sequence);
      if (Status status = Prefill(*sequence, flags_.context); !status.ok()) return status;
    }
    return {};
  }

  Status Prefill(SequenceId sequence, int tokens) {
    std::vector<Row> rows;
    for (int i = 0; i < tokens; ++i) {
      rows.push_back({TokenAt(i), i, sequence, 0, i + 1 == tokens ? 0 : -1});
    }
    return Run(rows);
  }

  // One step of the first `batch` sequences, at the same position every time. The tokens are others
  // each time, so that they choose other experts.
  Status Step(int batch) {
    std::vector<Row> rows;
    for (int i = 0; i < batch; ++i) {
      const auto at = static_cast<size_t>(i);
      rows.push_back({TokenAt(fed_++), flags_.context, sequences_[at], 0, i});
    }
    return Run(rows);
  }

  // The least time of some calls.
  Status Time(const std::function<Status()>& call, double& seconds) {
    double spent = 0;
    for (int i = 0; i < 3 || (i < 200 && spent < 0.3); ++i) {
      const double start = SecondsOf(model_.info().threads);
      if (Status status = call(); !status.ok()) return status;
      const double elapsed = SecondsOf(model_.info().threads) - start;
      spent += elapsed;
      seconds = std::min(seconds, elapsed);
    }
    return {};
  }

  Status Round(Speeds& speeds) {
    double step_one = std::numeric_limits<double>::infinity();
    if (Status status = Time([&] { return Step(1); }, step_one); !status.ok()) return status;
    speeds.step_one = std::min(speeds.step_one, step_one);
    speeds.slowest_round = std::max(speeds.slowest_round, step_one);
    if (Status status = Time([&] { return Step(flags_.batch); }, speeds.step_batch); !status.ok())
      return status;
    Status status = Time([&] { return Prefill(sequences_[0], flags_.prompt); }, speeds.prefill);
    // Longer or shorter now than the context of a step.
    if (status.ok()) status = Prefill(sequences_[0], flags_.context);
    return status;
  }

 private:
  TokenId TokenAt(int i) const {
    return static_cast<TokenId>(int64_t{7919} * (i + 1) % model_.info().vocabulary_size);
  }
  Status Run(const std::vector<Row>& rows) {
    size_t outputs = 0;
    for (const Row& row : rows) outputs = std::max(outputs, static_cast<size_t>(row.output + 1));
    logits_.resize(outputs * static_cast<size_t>(model_.info().vocabulary_size));
    return model_.Forward(rows, logits_);
  }

  Model& model_;
  const BenchDecodeFlags& flags_;
  std::vector<SequenceId> sequences_;
  int fed_ = 0;  // tokens of steps
  std::vector<float> logits_;
};

// Multiplications and additions of a prompt: the layers for every token, the head for the last one,
// and attention.
double PrefillFlops(const ModelInfo& info, double tokens) {
  const double head = 2.0 * info.vocabulary_size * info.hidden;
  return 2.0 * static_cast<double>(info.layer_parameters) * tokens + head +
         2.0 * info.layers * info.heads * info.head_dim * tokens * (tokens + 1);
}

// ---- With masks and without ----

struct WalkTimes {
  double mask = 0, model = 0, sample = 0;  // seconds
  double total() const { return mask + model + sample; }
};

struct Walk {
  int steps = 0, choices = 0;  // positions; those where more than one token is allowed
  double allowed = 0;          // share of the vocabulary, over all positions
  double cold = 0;             // seconds of masks when they were asked for the first time
  WalkTimes masked, plain;     // of the best round
  WalkTimes masked_choices, plain_choices;
};

class Walker {
 public:
  Walker(Model& model, const BenchDecodeFlags& flags, const Vocabulary& vocabulary)
      : model_(model), flags_(flags), vocabulary_(vocabulary), sampler_({}) {}

  // `texts`: those of the flags, in their order.
  Result<Walk> Run(const Grammar& grammar, const std::vector<std::vector<TokenId>>& texts) {
    size_t longest = 1;
    for (size_t i = 0; i < texts.size(); ++i) {
      const int context = model_.info().context_length;
      if (texts[i].size() >= static_cast<size_t>(context)) {
        return Error{
            ErrorCode::kLimit,
            fmt::format("has {} tokens; the model has a context of {}", texts[i].size(), context),
            flags_.texts[i]};
      }
      longest = std::max(longest, texts[i].size());
    }
    Result<SequenceId> sequence = model_.NewSequence(static_cast<int>(longest) + 1);
    if (!sequence.ok()) return sequence.error();
    sequence_ = *sequence;
    logits_.resize(static_cast<size_t>(model_.info().vocabulary_size));
    Walk walk;
    for (int round = 0; round < flags_.rounds; ++round) {
      WalkTimes masked, masked_choices, plain, plain_choices;
      for (size_t i = 0; i < texts.size(); ++i) {
        Status status =
            Read(&grammar, texts[i], masked, masked_choices, round == 0 ? &walk : nullptr);
        if (status.ok()) status = Read(nullptr, texts[i], plain, plain_choices, nullptr);
        if (!status.ok()) return InFile(flags_.texts[i], status.error());
      }
      if (round == 0) walk.cold = masked.mask;
      if (round == 0 || masked.total() < walk.masked.total()) {
        walk.masked = masked;
        walk.masked_choices = masked_choices;
      }
      if (round == 0 || plain.total() < walk.plain.total()) {
        walk.plain = plain;
        walk.plain_choices = plain_choices;
      }
    }
    walk.allowed /= walk.steps;
    return walk;
  }

 private:
  // The logits that choose tokens[i] are those of the row before it; the first row is token 0.
  Status Read(const Grammar* grammar, const std::vector<TokenId>& tokens, WalkTimes& times,
              WalkTimes& choices, Walk* walk) {
    std::optional<State> state;
    if (grammar != nullptr) state = grammar->Start();
    if (grammar != nullptr) choice_.assign(tokens.size(), false);
    for (size_t i = 0; i < tokens.size(); ++i) {
      WalkTimes step;
      std::shared_ptr<const Mask> mask;
      auto start = Clock::now();
      if (state) mask = state->mask();
      if (state) step.mask += SecondsSince(start);
      if (mask != nullptr) {
        if (!mask->Allows(tokens[i])) {
          return Error{ErrorCode::kInvalid,
                       fmt::format("token {} is refused; pawl validate shows where", i), ""};
        }
        choice_[i] = mask->count() > 1;
        if (walk != nullptr) {
          ++walk->steps;
          walk->choices += choice_[i] ? 1 : 0;
          walk->allowed += static_cast<double>(mask->count()) / vocabulary_.size();
        }
      }
      Row row = {i == 0 ? 0 : tokens[i - 1], static_cast<int32_t>(i), sequence_, 0, 0};
      if (mask != nullptr) row.allowed = mask->words();
      start = Clock::now();
      if (Status status = model_.Forward({&row, 1}, logits_); !status.ok()) return status;
      step.model += SecondsSince(start);
      start = Clock::now();
      const std::span<const float> known =
          std::span(logits_).first(static_cast<size_t>(vocabulary_.size()));
      Result<TokenId> sampled = sampler_.Sample(known, mask.get(), i, {});
      if (!sampled.ok()) return sampled.error();
      step.sample += SecondsSince(start);
      start = Clock::now();
      if (state) state = state->Advance(tokens[i]);
      if (mask != nullptr) step.mask += SecondsSince(start);
      Add(step, times);
      if (choice_[i]) Add(step, choices);
    }
    return {};
  }

  static void Add(const WalkTimes& step, WalkTimes& sum) {
    sum.mask += step.mask;
    sum.model += step.model;
    sum.sample += step.sample;
  }

  Model& model_;
  const BenchDecodeFlags& flags_;
  const Vocabulary& vocabulary_;
  Sampler sampler_;
  SequenceId sequence_ = -1;
  std::vector<float> logits_;
  std::vector<bool> choice_;  // of the text read last with masks
};

Result<Walk> WalkTexts(Model& model, const BenchDecodeFlags& flags, const std::string& folder) {
  Result<ModelText> text =
      LoadText(kBenchDecode, flags.tokenizer.empty() ? folder : flags.tokenizer);
  if (!text.ok()) return text.error();
  if (text->vocabulary->size() > model.info().vocabulary_size) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("has {} tokens, the model {} logits", text->vocabulary->size(),
                             model.info().vocabulary_size),
                 "--tokenizer"};
  }
  Result<Grammar> grammar = flags.grammar.Compile(text->vocabulary);
  if (!grammar.ok()) return grammar.error();
  std::vector<std::vector<TokenId>> texts;
  for (const std::string& file : flags.texts) {
    Result<std::string> content = ReadInput(file);
    if (!content.ok()) return content.error();
    texts.push_back(text->tokenizer->Encode(*content));
  }
  return Walker(model, flags, *text->vocabulary).Run(*grammar, texts);
}

// ---- The report ----

std::string WalkJson(const WalkTimes& t, int steps) {
  const double n = std::max(1, steps) * 1e-6;
  return fmt::format("{{\"mask_us\":{:.3f},\"model_us\":{:.3f},\"sample_us\":{:.3f}}}", t.mask / n,
                     t.model / n, t.sample / n);
}

// What the figures are of: the shape, or the last part of the model's path.
std::string NameOf(const BenchDecodeFlags& flags, const std::string& path) {
  if (!flags.shape.empty()) return flags.shape;
  const std::filesystem::path plain = std::filesystem::path(path).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

std::string Json(const BenchDecodeFlags& flags, const std::string& name, const ModelInfo& info,
                 const Speeds& s, const std::optional<Walk>& walk, const Caches& caches) {
  const double gbs = static_cast<double>(info.step_bytes) / s.step_one;
  std::string out = fmt::format(
      "{{\"cpu\":{},\"features\":{},\"kernels\":{},\"threads\":{},\"model\":{},\"dtype\":{},"
      "\"parameters\":{},\"step_bytes\":{},\"weights_fit\":{},\"context\":{},\"batch\":{},"
      "\"prompt\":{},\"memory_gbs\":{:.2f},\"weights_read_gbs\":{:.2f},\"tokens_per_s\":{:.1f},"
      "\"step_us\":{:.2f},\"slowest_round_step_us\":{:.2f},\"gbs\":{:.2f},\"fraction_of_memory\":{:"
      ".3f},"
      "\"fraction_of_weights_read\":{:.3f},\"batch_step_us\":{:.2f},\"batch_tokens_per_s\":{:.1f},"
      "\"batch_step_ratio\":{:.3f},\"prefill_tokens_per_s\":{:.1f},\"prefill_gflops\":{:.1f}",
      json::Quote(CpuName()), json::Quote(ToString(DetectCpu())), json::Quote(info.kernels),
      info.threads, json::Quote(name), json::Quote(info.dtype), info.parameters, info.step_bytes,
      json::Quote(caches.Holds(info.step_bytes, info.threads)), flags.context, flags.batch,
      flags.prompt, s.memory / 1e9, s.weights / 1e9, 1 / s.step_one, s.step_one * 1e6,
      s.slowest_round * 1e6, gbs / 1e9, gbs / s.memory, gbs / s.weights, s.step_batch * 1e6,
      flags.batch / s.step_batch, s.step_batch / s.step_one, flags.prompt / s.prefill,
      PrefillFlops(info, flags.prompt) / s.prefill / 1e9);
  if (walk) {
    out += fmt::format(
        ",\"masks\":{{\"steps\":{},\"choices\":{},\"allowed_share\":{:.4f},\"cold_masks_us\":{:.3f}"
        ","
        "\"masked\":{},\"plain\":{},\"step_ratio\":{:.4f},\"model_ratio\":{:.4f},"
        "\"choices_step_ratio\":{:.4f}}}",
        walk->steps, walk->choices, walk->allowed, walk->cold * 1e6 / walk->steps,
        WalkJson(walk->masked, walk->steps), WalkJson(walk->plain, walk->steps),
        walk->masked.total() / walk->plain.total(), walk->masked.model / walk->plain.model,
        walk->masked_choices.total() / walk->plain_choices.total());
  }
  return out + "}\n";
}

void PrintReport(const BenchDecodeFlags& flags, const ModelInfo& info, const Speeds& s,
                 const std::optional<Walk>& walk, const Caches& caches) {
  const auto line = [](const char* key, const std::string& value) {
    Print(fmt::format("{:<14} {}\n", key, value));
  };
  const double gbs = static_cast<double>(info.step_bytes) / s.step_one;
  line("kernels", fmt::format("{}, {} threads", info.kernels, info.threads));
  line("weights", fmt::format("{}, {:.1f} MB a step, fit {}", info.dtype,
                              static_cast<double>(info.step_bytes) / 1e6,
                              caches.Holds(info.step_bytes, info.threads)));
  line("read", fmt::format("{:.1f} GB/s from memory, {:.1f} GB/s over {:.1f} MB", s.memory / 1e9,
                           s.weights / 1e9, static_cast<double>(info.step_bytes) / 1e6));
  line("step",
       fmt::format("{:.3f} ms, {:.1f} tokens/s, {:.2f} GB/s = {:.2f} of memory, {:.2f} of "
                   "reading as much",
                   s.step_one * 1e3, 1 / s.step_one, gbs / 1e9, gbs / s.memory, gbs / s.weights));
  line("batch",
       fmt::format("{} sequences: {:.3f} ms, {:.1f} tokens/s, {:.2f} steps of one", flags.batch,
                   s.step_batch * 1e3, flags.batch / s.step_batch, s.step_batch / s.step_one));
  line("prompt", fmt::format("{} tokens: {:.3f} ms, {:.1f} tokens/s, {:.1f} GFLOP/s", flags.prompt,
                             s.prefill * 1e3, flags.prompt / s.prefill,
                             PrefillFlops(info, flags.prompt) / s.prefill / 1e9));
  if (!walk) return;
  const auto times = [&](const char* key, const WalkTimes& t) {
    const double n = walk->steps * 1e-6;
    line(key, fmt::format("{:.1f} us a step: mask {:.1f}, model {:.1f}, sampler {:.1f}",
                          t.total() / n, t.mask / n, t.model / n, t.sample / n));
  };
  line(
      "masks",
      fmt::format("{} steps, {} with a choice, {:.1f} % of the vocabulary allowed, {:.1f} "
                  "us a mask at first",
                  walk->steps, walk->choices, walk->allowed * 100, walk->cold * 1e6 / walk->steps));
  times("masked", walk->masked);
  times("unmasked", walk->plain);
  line("ratio", fmt::format("{:.3f} of all steps, {:.3f} of the model alone, {:.3f} where there is "
                            "a choice",
                            walk->masked.total() / walk->plain.total(),
                            walk->masked.model / walk->plain.model,
                            walk->masked_choices.total() / walk->plain_choices.total()));
}

Status CheckFlags(const BenchDecodeFlags& flags) {
  if (!flags.model.empty() && !flags.shape.empty()) {
    return Error{ErrorCode::kInvalid, "cannot go with --model", "--shape"};
  }
  if (flags.grammar.any()) {
    if (Status status = flags.grammar.Check(); !status.ok()) return status;
    if (flags.texts.empty()) {
      return Error{ErrorCode::kInvalid, "needs texts that fit it", flags.grammar.source()};
    }
    if (!flags.shape.empty() && flags.tokenizer.empty()) {
      return Error{ErrorCode::kInvalid, "is needed for masks: a shape has no tokenizer",
                   "--tokenizer"};
    }
  } else if (!flags.texts.empty()) {
    return Error{ErrorCode::kInvalid, "texts need a constraint, such as --schema", flags.texts[0]};
  } else if (!flags.tokenizer.empty()) {
    return Error{ErrorCode::kInvalid, "is for masks: it needs a constraint, such as --schema",
                 "--tokenizer"};
  }
  return flags.json.empty() || flags.json == "-" ? Status() : CheckWritable(flags.json);
}

// Reading that much is reading from memory.
int64_t LargeBuffer(const Caches& caches) { return std::max(int64_t{1} << 30, 2 * caches.l3); }

// Before it is taken: a system without memory ends programs without a word. `weights`: bytes that
// are still to be taken. `page_bytes`: of keys and values.
Status CheckMemory(const BenchDecodeFlags& flags, int64_t weights, int64_t page_bytes,
                   const std::string& place) {
  const int64_t available = AvailableMemory();
  // A page more for each sequence than it needs.
  const int64_t pages =
      int64_t{flags.batch} * (PagesFor(flags.context) + 1) + PagesFor(flags.prompt) + 1;
  const int64_t keys = pages * page_bytes;
  const int64_t buffers = 2 * LargeBuffer(Caches::Ask());
  const int64_t needed = weights + keys + buffers;
  if (available == 0 || needed <= available) return {};
  const auto gigabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
  return Error{ErrorCode::kLimit,
               fmt::format("needs {:.1f} GB of memory (weights {:.1f}, keys and values {:.1f}, "
                           "buffers to measure reading {:.1f}), and {:.1f} GB are available",
                           gigabytes(needed), gigabytes(weights), gigabytes(keys),
                           gigabytes(buffers), gigabytes(available)),
               place};
}

// `longest`: the context of the model that messages call `name`.
Status CheckLengths(const BenchDecodeFlags& flags, int longest, const std::string& name) {
  const auto check = [&](const char* option, int tokens, int most) -> Status {
    if (tokens <= most) return {};
    return Error{ErrorCode::kLimit,
                 fmt::format("must be at most {}, not {}: the context of {} is {}", most, tokens,
                             name, longest),
                 option};
  };
  // A step comes behind its context.
  if (Status status = check("--context", flags.context, longest - 1); !status.ok()) return status;
  return check("--prompt", flags.prompt, longest);
}

Result<std::unique_ptr<Model>> MakeModel(const BenchDecodeFlags& flags, const std::string& folder) {
  if (flags.shape.empty()) {
    DeviceFlags device;
    device.kernels = flags.kernels;
    auto model = LoadWeightsOnly(kBenchDecode, folder, flags.threads, flags.dtype, device);
    if (!model.ok()) return model;
    Status status = CheckLengths(flags, (*model)->info().context_length, folder);
    // The weights are there already, or are the file's own pages.
    const std::string place =
        fmt::format("--model {} --batch {} --context {}", folder, flags.batch, flags.context);
    if (status.ok()) status = CheckMemory(flags, 0, (*model)->kv_memory().page_bytes, place);
    if (!status.ok()) return status.error();
    return model;
  }
  ModelOptions options;
  options.threads = flags.threads;
  options.dtype = DtypeNamed(flags.dtype);
  options.kernels = KernelsNamed(flags.kernels);
  const TransformerConfig config = *ShapeNamed(flags.shape);
  if (Status status = CheckLengths(flags, config.context_length, "the shape " + flags.shape);
      !status.ok()) {
    return status.error();
  }
  if (Status status = CheckMemory(flags, RandomModelBytes(config, options.dtype),
                                  TransformerCpu::PageBytes(config),
                                  "--shape " + flags.shape + " --dtype " + flags.dtype);
      !status.ok()) {
    return status.error();
  }
  return RandomModel(config, options, 1);
}

int BenchDecode(const BenchDecodeFlags& flags) {
  if (Status status = CheckFlags(flags); !status.ok()) return Fail(kBenchDecode, status.error());
  std::string folder;
  if (flags.shape.empty()) {
    Result<std::string> found = FindModelFolder(flags.model);
    if (!found.ok()) return Fail(kBenchDecode, found.error());
    folder = *found;
  }
  Result<std::unique_ptr<Model>> model = MakeModel(flags, folder);
  if (!model.ok()) return Fail(kBenchDecode, model.error());
  const ModelInfo& info = (*model)->info();
  const Caches caches = Caches::Ask();
  const KernelSet& kernels = *FindKernels(KernelVariant::kAuto);
  Speeds speeds;
  try {
    const int64_t large = LargeBuffer(caches);
    Reader memory(kernels, info.threads, large);
    Reader weights(kernels, info.threads, std::min(info.step_bytes, large));
    Runner runner(**model, flags);
    if (Status status = runner.Prepare(); !status.ok()) return Fail(kBenchDecode, status.error());
    for (int round = 0; round < flags.rounds; ++round) {
      speeds.memory = std::max(speeds.memory, memory.Measure());
      speeds.weights = std::max(speeds.weights, weights.Measure());
      if (Status status = runner.Round(speeds); !status.ok())
        return Fail(kBenchDecode, status.error());
    }
  } catch (const std::bad_alloc&) {
    return Fail(kBenchDecode, Error{ErrorCode::kLimit, "not enough memory", ""});
  }
  std::optional<Walk> walk;
  if (flags.grammar.any()) {
    Result<Walk> walked = WalkTexts(**model, flags, folder);
    if (!walked.ok()) return Fail(kBenchDecode, walked.error());
    walk = *walked;
  }
  if (const double spread = speeds.slowest_round / speeds.step_one; spread > kBusySpread) {
    Note(kBenchDecode,
         fmt::format("note: in the slowest round a step took {:.1f} times as long as in the "
                     "best: the machine seems busy, the figures may be low",
                     spread));
  }
  const std::string figures =
      flags.json.empty() ? "" : Json(flags, NameOf(flags, folder), info, speeds, walk, caches);
  if (flags.json == "-") {
    Print(figures);
    return kExitOk;
  }
  PrintReport(flags, info, speeds, walk, caches);
  if (!flags.json.empty()) {
    if (Status status = WriteFile(flags.json, figures); !status.ok()) {
      return Fail(kBenchDecode, status.error());
    }
  }
  return kExitOk;
}

}  // namespace

void AddBenchDecode(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "decode", "Time a model's steps and prompts beside what memory can be read with");
  const auto flags = std::make_shared<BenchDecodeFlags>();
  TextOption(command, "--model", flags->model, "MODEL", kModelHelp);
  command
      ->add_option("--shape", flags->shape,
                   "Instead of a model: random weights of the shape of SmolLM2-135M, Qwen2.5-0.5B, "
                   "Llama-3.2-1B or Llama-3.1-8B")
      ->check(CLI::IsMember(ShapeNames()))
      ->type_name("SHAPE");
  ChoiceOption(command, "--dtype", flags->dtype, DtypeNames(), "TYPE",
               "How weights are kept in memory; of a shape, stored is bf16");
  ChoiceOption(command, "--kernels", flags->kernels, KernelNames(), "NAME", "As in generate");
  const auto number = [command](const char* name, int& value, const char* text, uint64_t least,
                                uint64_t most) {
    CountOption(command, name, value, least, most, text);
  };
  number("--batch", flags->batch, "Sequences of the step that is compared with a step of one", 1,
         1024);
  number("--threads", flags->threads, "Threads; 0: all cores", 0, 1024);
  number("--context", flags->context, "Tokens before each step", 1, 1 << 20);
  number("--prompt", flags->prompt, "Tokens of the prompt", 1, 1 << 20);
  number("--rounds", flags->rounds, "How often everything is measured; the best counts", 1, 1000);
  flags->grammar.AddAllTo(command);
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH",
             "For masks: tokenizer.json, or a folder with one (default: the model's)");
  command
      ->add_option("texts", flags->texts,
                   "Texts that fit the constraint, read with and without masks")
      ->type_name("FILE...");
  command
      ->add_option("--json", flags->json,
                   "Write the figures to this file; -: to standard output, in place of the lines")
      ->type_name("FILE");
  command->footer("Example:\n  pawl bench decode --shape 135m --dtype bf16 --threads 1");
  command->callback([flags, &action] { action = [flags] { return BenchDecode(*flags); }; });
}

}  // namespace pawl::cli
