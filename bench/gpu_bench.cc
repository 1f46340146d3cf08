// What the CUDA backend reaches of what the device could do, as ratios of one run: decoding and
// verifying next to the rate of a copy, prompts next to the rate of a library product, steps with
// masks next to steps without, masks alone next to the bytes that have to move.
//
//   gpu_bench [--json FILE] [--quick] [--no-dependent-launch] [--rehearse]
//             [--checked NAME=passed|failed]...
//
// --checked: what others have found out, for the file. --rehearse: all of it on toys, whose figures
// mean nothing; what the emulation runs (gpu_bench_rehearsal).
//
// Models have the shapes of well-known ones and weights that mean nothing. A part that fails is
// named, in the file too, and the others go on. Exit codes: 1, a part has failed; 77, no device.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/device_bench.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"
#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

// What is measured.
struct ShapeOfModel {
  const char* name;
  int hidden, inner, layers, heads, kv_heads, head_dim, vocabulary;
  bool tied, bias;
  double bar;
};
struct Sizes {
  int64_t copy_bytes;
  int product, product_rows;
  int mask_rows, mask_vocabulary;
  int context;  // positions before the first measured step
  int prompt, batch;
  int steps, rounds;
  // Of the packed models: packing weights on the host takes a while.
  int packed_layers;
  ShapeOfModel shapes[3];
};
const Sizes kReal = {int64_t{1} << 30,
                     8192,
                     4096,
                     256,
                     128256,
                     512,
                     2048,
                     256,
                     100,
                     7,
                     8,
                     {{"0.5B", 896, 4864, 24, 14, 2, 64, 151936, true, true, 0.55},
                      {"1B", 2048, 8192, 16, 32, 8, 64, 128256, true, false, 0.75},
                      {"8B", 4096, 14336, 32, 32, 8, 128, 128256, false, false, 0.90}}};
const Sizes kToys = {int64_t{1} << 16,
                     64,
                     70,
                     3,
                     1024,
                     20,
                     70,
                     66,
                     2,
                     1,
                     1,
                     {{"0.5B", 32, 64, 1, 2, 1, 16, 352, true, true, 0.55},
                      {"1B", 64, 64, 1, 4, 2, 16, 320, true, false, 0.75},
                      {"8B", 64, 96, 2, 2, 1, 32, 320, false, false, 0.90}}};
Sizes sizes = kReal;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- The report ----

struct Line {
  std::string name;
  double value, bar;  // bar 0: a rate, for the others to be measured by
  bool at_most;
};
std::vector<Line> lines;
bool dependent_launch = true, has_library = true;
std::vector<std::pair<std::string, std::string>> checks, failures;

// Whether it came to its end.
bool Part(const std::string& name, const std::function<void()>& measure) {
  try {
    measure();
    return true;
  } catch (const Failure& failure) {
    std::printf("%-58s FAILED: %s\n", name.c_str(), failure.error.ToString().c_str());
    std::fflush(stdout);
    failures.emplace_back(name, failure.error.ToString());
    return false;
  }
}

void Report(const std::string& name, double value, double bar = 0, bool at_most = false) {
  lines.push_back({name, value, bar, at_most});
  if (bar == 0) {
    std::printf("%-58s %12.4g\n", name.c_str(), value);
  } else {
    const bool reached = at_most ? value <= bar : value >= bar;
    std::printf("%-58s %12.3f   bar %s %.2f: %s\n", name.c_str(), value, at_most ? "<=" : ">=", bar,
                reached ? "reached" : "missed");
  }
  std::fflush(stdout);
}

// ---- Masks ----

// Masks of which a share of the bits is set, on 256 rows of 128 k tokens of bf16. Logits take
// turns, so that they are not those that the cache holds.
void Masks(double copy_rate) {
  constexpr int kTurns = 6;
  const int rows = sizes.mask_rows;
  const int64_t vocabulary = sizes.mask_vocabulary, words = vocabulary / 32;
  const DeviceMemory logits = Must(DeviceMemory::Make(kTurns * rows * vocabulary * 2));
  const DeviceMemory masks = Must(DeviceMemory::Make(rows * words * 4));
  Check(Fill(logits.data(), 0, logits.bytes(), nullptr));
  std::mt19937 random(1);
  for (const double share : {0.0, 0.5, 1.0}) {
    std::vector<uint32_t> bits(static_cast<size_t>(rows * words));
    for (uint32_t& word : bits) {
      word = share == 0.0 ? 0 : share == 1.0 ? ~0u : static_cast<uint32_t>(random());
    }
    int64_t bytes = 0;
    for (int r = 0; r < rows; ++r) {
      bytes += MaskApplicationBytes(bits.data() + r * words, vocabulary, 2);
    }
    Check(CopyIn(masks.data(), bits.data(), masks.bytes(), nullptr));
    BitmaskArgs args;
    args.type = LogitType::kBf16;
    args.logits_stride = args.vocabulary = vocabulary;
    args.masks = masks.as<uint32_t>();
    args.masks_stride = words;
    args.count = rows;
    int turn = 0;
    const double seconds = DeviceSeconds(48, sizes.rounds, [&] {
      args.logits = logits.as<uint16_t>() + turn++ % kTurns * rows * vocabulary;
      return ApplyBitmask(args, nullptr);
    });
    const double floor = static_cast<double>(bytes) / copy_rate;
    char name[80];
    std::snprintf(name, sizeof name, "mask application, batch 256, %.0f %% allowed / bytes floor",
                  share * 100);
    // A launch takes two microseconds, whatever it has to do.
    Report(name, seconds / floor, floor > 4e-6 ? 1.5 : 0, true);
    std::snprintf(name, sizeof name, "mask application, batch 256, %.0f %% allowed, microseconds",
                  share * 100);
    Report(name, seconds * 1e6);
  }
}

// ---- Models ----

// All matrices are the same bytes, which is what lets 16 GB of weights be made in a second.
class Weights {
 public:
  Weights() {
    size_t largest = 0;
    for (const ShapeOfModel& s : sizes.shapes) {
      const int rows = std::max({s.vocabulary, s.inner, s.heads * s.head_dim}) + 16;
      largest = std::max(largest, static_cast<size_t>(rows) * static_cast<size_t>(s.hidden));
    }
    bytes_.resize(largest * 2);
    table_.assign(largest / 32, 0x1419);
    std::mt19937 random(1);
    auto* words = reinterpret_cast<uint16_t*>(bytes_.data());
    const size_t period = std::min(size_t{1000003}, largest);
    for (size_t i = 0; i < period; ++i) {
      // bf16 of 2^-7 .. 2^-6, either sign; as integers, anything.
      words[i] = static_cast<uint16_t>(0x3c00 | (random() & 0x807f));
    }
    for (size_t done = period; done < bytes_.size() / 2; done += period) {
      std::memcpy(words + done, words, std::min(period, bytes_.size() / 2 - done) * 2);
    }
  }

  std::unique_ptr<Model> Make(const ShapeOfModel& shape, int layers, WeightType type, bool fp8) {
    TransformerConfig config;
    config.architecture = "random weights";
    config.hidden = shape.hidden;
    config.vocabulary = shape.vocabulary;
    config.context_length = 8192;
    Layer described;
    described.mixer = pawl::Attention{.heads = shape.heads,
                                      .kv_heads = shape.kv_heads,
                                      .head_dim = shape.head_dim,
                                      .qkv_bias = shape.bias};
    described.feed_forward = Mlp{.width = shape.inner};
    config.layers.assign(static_cast<size_t>(layers), described);
    config.ropes.resize(1);
    config.tied_embeddings = shape.tied;
    TransformerWeights weights;
    const auto matrix = [&](int64_t rows, int64_t columns, bool outer = false) {
      Matrix m;
      m.data = bytes_.data();
      m.type = outer && type == WeightType::kI4 ? WeightType::kI8 : type;
      m.rows = rows;
      m.cols = columns;
      m.scales = table_.data();
      m.group_shift = 5;
      m.groups = columns / 32;
      return m;
    };
    const auto linear = [&](int64_t rows, int64_t columns, bool bias = false) {
      Linear l;
      l.w = matrix(rows, columns);
      if (bias) l.bias.assign(static_cast<size_t>(rows), 0.1f);
      return l;
    };
    const int64_t q = int64_t{shape.heads} * shape.head_dim;
    const int64_t kv = int64_t{shape.kv_heads} * shape.head_dim;
    const std::vector<float> norm(static_cast<size_t>(shape.hidden), 1.0f);
    weights.embedding = weights.head = matrix(shape.vocabulary, shape.hidden, true);
    if (!shape.tied) weights.head.data = bytes_.data() + 64;  // another matrix
    weights.head.rows -= shape.tied ? 0 : 16;                 // within the bytes
    config.vocabulary = static_cast<int>(weights.head.rows);
    weights.embedding.rows = weights.head.rows;
    weights.final_norm = norm;
    for (int i = 0; i < layers; ++i) {
      TransformerLayer layer;
      layer.attention_norm = layer.mlp_norm = norm;
      layer.q = linear(q, shape.hidden, shape.bias);
      layer.k = linear(kv, shape.hidden, shape.bias);
      layer.v = linear(kv, shape.hidden, shape.bias);
      layer.o = linear(shape.hidden, q);
      layer.gate = linear(shape.inner, shape.hidden);
      layer.up = linear(shape.inner, shape.hidden);
      layer.down = linear(shape.hidden, shape.inner);
      weights.layers.push_back(std::move(layer));
    }
    TransformerCudaOptions options;
    options.fp8_weights = fp8;
    options.kept_kv_bytes = 0;
    options.dependent_launch = dependent_launch;
    options.library = has_library;
    return Must(TransformerCuda::Make(std::move(config), weights, options));
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<uint16_t> table_;  // scales of 0.001
};

// Bytes that a step with one row reads.
double StepBytes(const Model& model, int positions) {
  const ModelInfo& info = model.info();
  const double kv = 2.0 * 2 * info.layers * info.kv_heads * info.head_dim * positions;
  return static_cast<double>(info.step_bytes) + kv;
}

// Sequences with a context, from which steps of `rows` plain rows are taken again and again.
class Steps {
 public:
  Steps(Model& model, int batch, int rows) : model_(model), batch_(batch), rows_(rows) {
    const auto width = static_cast<unsigned>(model.info().vocabulary_size);
    for (int b = 0; b < batch; ++b) {
      ids_.push_back(Must(model.NewSequence(sizes.context + rows)));
      std::vector<Row> prompt;
      prompt.reserve(static_cast<size_t>(sizes.context));
      for (int i = 0; i < sizes.context; ++i) {
        prompt.push_back({static_cast<TokenId>(random_() % width), i, ids_.back(), 0, -1});
      }
      Check(model.Forward(prompt, {}));
    }
  }
  ~Steps() {
    for (const SequenceId id : ids_) model_.FreeSequence(id);
  }

  // Median seconds of a step, each row sampled with the masks in turn (none: without).
  double Seconds(const std::vector<std::shared_ptr<const Mask>>& masks, int steps, double* mean) {
    std::vector<double> times;
    const auto width = static_cast<unsigned>(model_.info().vocabulary_size);
    std::vector<TokenId> tokens(static_cast<size_t>(batch_ * rows_));
    for (int step = -5; step < steps; ++step) {
      std::vector<Row> rows;
      std::vector<SampleRequest> requests;
      for (int b = 0; b < batch_; ++b) {
        for (int i = 0; i < rows_; ++i) {
          const auto output = static_cast<int32_t>(rows.size());
          rows.push_back({static_cast<TokenId>(random_() % width), sizes.context + i,
                          ids_[static_cast<size_t>(b)], 0, output});
          SampleRequest request;
          request.temperature = 1.0f;
          request.seed = random_();
          if (!masks.empty()) {
            request.mask = masks[static_cast<size_t>(step + 5 + b + i) % masks.size()];
          }
          requests.push_back(request);
        }
      }
      const double start = Now();
      Check(model_.ForwardAndSample(rows, requests, tokens));
      if (step >= 0) times.push_back(Now() - start);
    }
    if (mean != nullptr) {
      *mean = 0;
      for (const double t : times) *mean += t / static_cast<double>(times.size());
    }
    return Median(times);
  }

 private:
  Model& model_;
  int batch_, rows_;
  std::vector<SequenceId> ids_;
  std::mt19937 random_{2};
};

// Of how many tokens masks allow over the positions of JSON under schemas: of 100 positions, about
// 40 allow at most 8, 14 more at most 512, 8 more at most 4096, the rest nearly all.
std::vector<std::shared_ptr<const Mask>> JsonMasks(int vocabulary) {
  std::mt19937 random(3);
  std::vector<std::shared_ptr<const Mask>> masks;
  for (int i = 0; i < 50; ++i) {
    const int kind = i * 7 % 50;
    const int count = kind < 20 ? 1 + kind % 8 : kind < 27 ? 300 : kind < 31 ? 3000 : 0;
    std::vector<uint32_t> words(static_cast<size_t>((vocabulary + 31) / 32));
    if (count == 0) {
      for (int t = 0; t < vocabulary; ++t) {
        if (t % 50 != 0) words[static_cast<size_t>(t / 32)] |= 1u << t % 32;
      }
    }
    for (int n = 0; n < count; ++n) {
      const auto t = static_cast<size_t>(random() % static_cast<unsigned>(vocabulary));
      words[t / 32] |= 1u << t % 32;
    }
    masks.push_back(std::make_shared<Mask>(i, std::move(words)));
  }
  return masks;
}

// How many sequences of that length there is room for, at most `most`.
int Room(const Model& model, int length, int most) {
  const KvMemory memory = model.kv_memory();
  const int pages = (length + memory.page_positions - 1) / memory.page_positions + 1;
  return static_cast<int>(std::min<int64_t>(most, memory.available / pages));
}

void RunModel(Model& model, const ShapeOfModel& shape, double copy_rate, double product_rate) {
  const std::string name = shape.name;
  const int steps = sizes.steps;
  double one = 0;
  Part("decode " + name, [&] {
    double mean = 0, masked_mean = 0;
    Steps decode(model, 1, 1);
    one = decode.Seconds({}, steps, &mean);
    Report("decode " + name + " bf16, milliseconds", one * 1e3);
    Report("decode " + name + " bf16 / copy rate",
           StepBytes(model, sizes.context) / one / copy_rate, shape.bar);
    const auto masks = JsonMasks(model.info().vocabulary_size);
    (void)decode.Seconds(masks, steps, &masked_mean);
    Report("masked / unmasked step " + name + ", batch 1, mean", masked_mean / mean, 1.0, true);
  });
  if (name == "1B" || name == "8B") {
    const int batch = Room(model, sizes.context + 1, sizes.batch);
    const std::string of_batch = ", batch " + std::to_string(batch);
    Part("decode " + name + of_batch, [&] {
      Steps decode(model, batch, 1);
      const int some = std::max(steps / 4, 1);
      const double plain = decode.Seconds({}, some, nullptr);
      const auto masks = JsonMasks(model.info().vocabulary_size);
      const double masked = decode.Seconds(masks, some, nullptr);
      Report("masked / unmasked step " + name + of_batch, masked / plain, 1.01, true);
      Report("decode " + name + " bf16" + of_batch + ", milliseconds", plain * 1e3);
    });
  }
  if (name != "8B") return;
  for (const int rows : {8, 16}) {
    const std::string verify_name = "verify " + std::to_string(rows) + " rows / decode step, 8B";
    Part(verify_name, [&] {
      Steps verify(model, 1, rows);
      const double seconds = verify.Seconds({}, steps, nullptr);
      if (one > 0) Report(verify_name, seconds / one, rows == 8 ? 1.05 : 1.08, true);
    });
  }
  if (product_rate == 0) return;
  Part("prefill", [&] {
    const int prompt = sizes.prompt;
    std::vector<double> times;
    for (int round = 0; round < 4; ++round) {
      const SequenceId id = Must(model.NewSequence(prompt));
      std::vector<Row> rows;
      rows.reserve(static_cast<size_t>(prompt));
      for (int i = 0; i < prompt; ++i) {
        rows.push_back({(i * 7919 + round) % model.info().vocabulary_size, i, id, 0,
                        i + 1 == prompt ? 0 : -1});
      }
      std::vector<float> logits(static_cast<size_t>(model.info().vocabulary_size));
      const double start = Now();
      Check(model.Forward(rows, logits));
      if (round > 0) times.push_back(Now() - start);
      model.FreeSequence(id);
    }
    const double of_layers =
        2.0 * shape.layers * shape.hidden *
        (2.0 * (shape.heads + shape.kv_heads) * shape.head_dim + 3.0 * shape.inner) * prompt;
    const double of_attention = 2.0 * prompt * prompt * shape.layers * shape.heads * shape.head_dim;
    Report("prefill " + std::to_string(prompt) + " tokens, 8B, FLOP/s / product rate",
           (of_layers + of_attention) / Median(times) / product_rate, 0.65);
  });
}

void RunModels(double copy_rate, double product_rate, const std::function<void()>& save) {
  Weights weights;
  const auto end = [&](const std::string& name, const Model& model) {
    // A result by another path than the intended one is a failure here.
    const std::string& given_up = static_cast<const TransformerCuda&>(model).given_up();
    if (!given_up.empty()) Part(name, [&] { Check(Error{ErrorCode::kInternal, given_up, name}); });
    save();
  };
  for (const ShapeOfModel& shape : sizes.shapes) {
    Part(std::string("the model of ") + shape.name, [&] {
      const std::unique_ptr<Model> model =
          weights.Make(shape, shape.layers, WeightType::kBf16, false);
      RunModel(*model, shape, copy_rate, product_rate);
      end(shape.name, *model);
    });
    save();
  }
  struct Packed {
    const char* name;
    WeightType type;
    bool fp8;
    double bar;
  };
  for (const Packed& packed : {Packed{"fp8", WeightType::kBf16, true, 0.85},
                               Packed{"int4", WeightType::kI4, false, 0.70}}) {
    ShapeOfModel shape = sizes.shapes[2];
    shape.tied = true;  // one large matrix less to pack
    const int layers = sizes.packed_layers;
    const std::string name =
        "decode 8B " + std::string(packed.name) + " (" + std::to_string(layers) + " layers)";
    Part(name, [&] {
      const std::unique_ptr<Model> model = weights.Make(shape, layers, packed.type, packed.fp8);
      Steps decode(*model, 1, 1);
      const double seconds = decode.Seconds({}, sizes.steps, nullptr);
      Report(name + " / copy rate", StepBytes(*model, sizes.context) / seconds / copy_rate,
             packed.bar);
      end(name, *model);
    });
    save();
  }
}

// Without what JSON strings cannot hold as it is.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '\'';
  }
  return text;
}

void WriteJson(const char* path, const DeviceFacts& device) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::fprintf(stderr, "gpu_bench: %s cannot be written\n", path);
    std::exit(1);
  }
  std::fprintf(file, "{\n  \"device\": \"%s\",\n  \"compute\": \"%d.%d\",\n  \"results\": [\n",
               device.name.c_str(), device.major, device.minor);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    std::fprintf(file, "    {\"name\": \"%s\", \"value\": %.6g", line.name.c_str(), line.value);
    if (line.bar != 0) {
      std::fprintf(
          file, ", \"bar\": \"%s %.2f\", \"reached\": %s", line.at_most ? "<=" : ">=", line.bar,
          (line.at_most ? line.value <= line.bar : line.value >= line.bar) ? "true" : "false");
    }
    std::fprintf(file, "}%s\n", i + 1 < lines.size() ? "," : "");
  }
  // gpu_check.sh adds lines to the checks.
  const auto object = [&](const char* name, const auto& pairs, const char* behind) {
    std::fprintf(file, "  \"%s\": {", name);
    for (size_t i = 0; i < pairs.size(); ++i) {
      std::fprintf(file, "%s\n    \"%s\": \"%s\"", i > 0 ? "," : "", Plain(pairs[i].first).c_str(),
                   Plain(pairs[i].second).c_str());
    }
    std::fprintf(file, "%s}%s\n", pairs.empty() ? "" : "\n  ", behind);
  };
  std::fprintf(file, "  ],\n");
  object("failed", failures, ",");
  object("checks", checks, "");
  std::fprintf(file, "}\n");
  std::fclose(file);
}

int Run(int argc, char** argv) {
  const char* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json = argv[++i];
    } else if (std::strcmp(argv[i], "--checked") == 0 && i + 1 < argc) {
      const std::string check = argv[++i];
      const size_t at = check.rfind('=');
      if (at == std::string::npos) return 2;
      checks.emplace_back(check.substr(0, at), check.substr(at + 1));
    } else if (std::strcmp(argv[i], "--no-dependent-launch") == 0) {
      dependent_launch = false;
    } else if (std::strcmp(argv[i], "--quick") == 0) {
      sizes.steps = 20;
      sizes.packed_layers = 2;
    } else if (std::strcmp(argv[i], "--rehearse") == 0) {
      sizes = kToys;
    } else {
      std::fprintf(stderr,
                   "usage: gpu_bench [--json FILE] [--quick] [--no-dependent-launch] [--rehearse] "
                   "[--checked NAME=WORD]...\n");
      return 2;
    }
  }
  const Result<DeviceFacts> device = CurrentDevice();
  if (!device.ok()) {
    std::fprintf(stderr, "gpu_bench: no usable device: %s\n", device.error().message.c_str());
    return 77;
  }
  std::printf("%s, compute %d.%d, %d multiprocessors, %.1f GiB\n", device->name.c_str(),
              device->major, device->minor, device->multiprocessors,
              static_cast<double>(device->memory_bytes) / (1 << 30));
  const auto save = [&] {
    if (json != nullptr) WriteJson(json, *device);
  };
  save();  // what there is, should time or memory run out
  double copy_rate = 0, product_rate = 0;
  Part("copy", [&] {
    copy_rate = CopyRate(sizes.copy_bytes, sizes.rounds);
    Report("copy, bytes read and written, GB/s", copy_rate / 1e9);
  });
  save();
  if (copy_rate == 0) return 1;
  Part("cuBLASLt product", [&] {
    const Result<std::unique_ptr<Library>> opened = OpenLibrary();
    if (!opened.ok()) {
      std::printf("cuBLASLt: not there, so prompts are not measured: %s\n",
                  opened.error().message.c_str());
      checks.emplace_back("cuBLASLt", "not there");
      has_library = false;
      return;
    }
    const std::unique_ptr<Library>& library = *opened;
    product_rate = ProductRate(*library, sizes.product, sizes.product_rows, sizes.rounds);
    Report("cuBLASLt product, bf16, TFLOP/s", product_rate / 1e12);
  });
  Part("mask application", [&] { Masks(copy_rate); });
  save();
  RunModels(copy_rate, product_rate, save);
  return failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace pawl::PAWL_GPU

int main(int argc, char** argv) { return pawl::PAWL_GPU::Run(argc, argv); }
