// Engine for Python: requests in, jobs out. What users see is python/pawl/_engine.py; here options
// are read by name, the lock is released, and signals are looked at while a thread waits.
#include "pawl/engine.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

#include "pawl/compiler.h"
#include "python/native/binding.h"
#include "python/native/bound_engine.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/decode/check_input.h"
#include "src/engine/copied_fields.h"
#include "src/engine/copied_text.h"
#include "src/engine/lora_names.h"
#include "src/engine/option_names.h"
#include "src/engine/schema_view.h"
#include "src/engine/search_json.h"
#include "src/engine/thinking.h"

namespace pawl::python {
namespace {

// A wait is cut into pieces of this many seconds, between which Ctrl-C is heard.
constexpr double kSignalSeconds = 0.02;

template <typename T>
T OptionValue(nb::handle value, const std::string& name, const char* type) {
  T out{};
  const bool flag = nb::isinstance<nb::bool_>(value) && !std::is_same_v<T, bool>;
  if (flag || !nb::try_cast(value, out)) {
    throw nb::type_error((name + " must be " + type).c_str());
  }
  return out;
}

// One option by its name: what a field of the options is, said by its type.
template <typename Field>
void Set(Field& field, nb::handle value, const std::string& name) {
  if constexpr (std::is_enum_v<Field>) {
    const auto text = OptionValue<std::string>(value, name, "a str");
    const std::optional<Field> choice = OptionOf<Field>(text);
    if (!choice) {
      std::string list;
      for (const char* known : OptionNames(Field()))
        list += (list.empty() ? "\"" : ", \"") + std::string(known) + "\"";
      Raise({ErrorCode::kInvalid, "must be one of " + list + ", not \"" + text + "\"", name});
    }
    field = *choice;
  } else if constexpr (std::is_same_v<Field, bool> || std::is_same_v<Field, std::optional<bool>>) {
    field = OptionValue<bool>(value, name, "a bool");
  } else if constexpr (std::is_same_v<Field, DiffusionOptions>) {
    Result<DiffusionOptions> read = ParseDiffusionOptions(TextOf(value, name.c_str()));
    if (!read.ok()) {
      const std::string& at = read.error().place;  // "#/NAME"
      Raise({read.error().code, read.error().message,
             at.size() > 2 ? name + "." + at.substr(2) : name});
    }
    field = *std::move(read);
  } else if constexpr (std::is_same_v<Field, std::string>) {
    field = TextOf(value, name.c_str());
  } else if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
    field = OptionValue<std::vector<std::string>>(value, name, "a list of str");
  } else if constexpr (std::is_floating_point_v<Field>) {
    field = static_cast<Field>(OptionValue<double>(value, name, "a number"));
  } else if constexpr (std::is_same_v<Field, uint64_t>) {
    field = OptionValue<uint64_t>(value, name, "an int from 0 to 2**64 - 1");
  } else {
    field = OptionValue<Field>(value, name, "an int, and not a huge one");
  }
}

// Calls `set` for each option that `read` knows; any other is a TypeError.
template <typename Read>
void ReadOptions(const nb::dict& given, const Read& read) {
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    bool known = false;
    const auto field = [&, value = nb::handle(value)](const char* of, auto& slot) {
      if (name != of) return;
      known = true;
      if (!value.is_none()) Set(slot, value, name);
    };
    read(field);
    if (!known) throw nb::type_error(("there is no option " + name).c_str());
  }
}

EngineOptions EngineOptionsOf(const nb::dict& given) {
  EngineOptions out;
  std::vector<std::string> lora;
  ReadOptions(given, [&](const auto& field) {
    field("dtype", out.model.dtype);
    field("threads", out.model.threads);
    field("device", out.model.device);
    field("kv_dtype", out.model.kv_dtype);
    field("kernels", out.model.kernels);
    field("kv_bytes", out.model.kv_bytes);
    field("kept_kv_bytes", out.model.kept_kv_bytes);
    field("batch", out.max_batch);
    field("chat_template", out.chat_template);
    field("reasoning_open", out.reasoning_open);
    field("reasoning_close", out.reasoning_close);
    field("draft", out.drafts.sources);
    field("draft_nodes", out.drafts.nodes);
    field("draft_text", out.drafts.text_file);
    field("draft_model", out.drafts.more_models);
    field("draft_history", out.drafts.history_file);
    field("draft_history_bytes", out.drafts.history_bytes);
    field("draft_memory", out.drafts.memory);
    field("draft_verify", out.drafts.verify);
    field("draft_shape", out.drafts.shape);
    field("oracle_bytes", out.oracle_bytes);
    field("settings", out.paths.settings);
    field("lora", lora);
    field("lora_bytes", out.model.lora_bytes);
  });
  out.model.lora = Take(ParseLoraAdapters(lora));
  return out;
}

// Options that are members of the request itself.
struct RequestOptions {
  std::string thinking;  // off, auto or a number of tokens; empty: not given
  int free_first = 0;
  std::string contrast;  // a number or auto; empty: none
  bool document = false;
  DocumentOptions chunks;
};

GenerateOptions GenerateOptionsOf(const nb::dict& given, RequestOptions& request) {
  GenerateOptions out;
  ReadOptions(given, [&](const auto& field) {
    field("temperature", out.sampling.temperature);
    field("top_k", out.sampling.top_k);
    field("top_p", out.sampling.top_p);
    field("min_p", out.sampling.min_p);
    field("repetition_penalty", out.sampling.repetition_penalty);
    field("presence_penalty", out.sampling.presence_penalty);
    field("frequency_penalty", out.sampling.frequency_penalty);
    SamplerStages& stages = out.sampling.stages;
    field("typical_p", stages.typical_p);
    field("top_n_sigma", stages.top_n_sigma);
    field("xtc_probability", stages.xtc_probability);
    field("xtc_threshold", stages.xtc_threshold);
    field("epsilon_cutoff", stages.epsilon_cutoff);
    field("eta_cutoff", stages.eta_cutoff);
    field("dry_multiplier", stages.dry_multiplier);
    field("dry_base", stages.dry_base);
    field("dry_allowed_length", stages.dry_allowed_length);
    field("dry_penalty_last_n", stages.dry_penalty_last_n);
    field("dry_sequence_breakers", stages.dry_sequence_breakers);
    field("mirostat", stages.mirostat);
    field("mirostat_tau", stages.mirostat_tau);
    field("mirostat_eta", stages.mirostat_eta);
    field("dynatemp_range", stages.dynatemp_range);
    field("dynatemp_exponent", stages.dynatemp_exponent);
    field("temperature_last", stages.temperature_last);
    field("temperature_tokens", stages.temperature_tokens);
    field("momentum_alpha", stages.momentum_alpha);
    field("momentum_k", stages.momentum_k);
    field("samplers", stages.order);
    field("seed", out.sampling.seed);
    field("draft_lanes", out.sampling.draft_lanes);
    field("draft_owner", out.draft_owner);
    field("max_tokens", out.max_tokens);
    field("grammar_temperature", out.grammar_temperature);
    field("skip_forced", out.skip_forced);
    field("drafts", out.drafts);
    field("at_budget", out.at_budget);
    field("logprobs", out.logprobs);
    field("mask_surprise", out.mask_surprise);
    field("details", out.details);
    field("thinking", request.thinking);
    field("close_repetition", out.close_repetition);
    field("free_first", request.free_first);
    field("contrast", request.contrast);
    field("document", request.document);
    field("chunk_tokens", request.chunks.chunk_tokens);
    field("passes", request.chunks.passes);
    field("diffusion", out.diffusion);
  });
  return out;
}

const char* StopName(StopReason stop) {
  switch (stop) {
    case StopReason::kEnd:
      return "end";
    case StopReason::kClosed:
      return "closed";
    case StopReason::kLength:
      return "length";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kStopText:
      return "stop";
    case StopReason::kRefused:
      return "refused";
  }
  return "";
}

// As --stats-json of the command, and what is not there.
nb::dict ReportOf(const GenerationStats& s) {
  nb::dict seconds, drafts, sources, out;
  out["prompt_tokens"] = s.prompt_tokens;
  out["reused_tokens"] = s.reused_tokens;
  out["output_tokens"] = s.output_tokens;
  out["sampled_tokens"] = s.sampled_tokens;
  out["forced_tokens"] = s.forced_tokens;
  out["closing_tokens"] = s.closing_tokens;
  out["reasoning_tokens"] = s.reasoning_tokens;
  out["forward_calls"] = s.forward_calls;
  out["budget"] = s.budget;
  out["mask_surprise"] = s.mask_surprise;
  seconds["prompt"] = s.prefill_seconds;
  seconds["output"] = s.decode_seconds;
  seconds["constraint"] = s.constraint_seconds;
  seconds["sampling"] = s.sample_seconds;
  out["seconds"] = seconds;
  drafts["calls"] = s.drafts.calls;
  drafts["rows"] = s.drafts.rows;
  drafts["accepted"] = s.drafts.accepted;
  drafts["seconds"] = s.drafts.seconds;
  for (const DraftSourceStats& source : s.drafts.sources) {
    nb::dict one;
    one["drafted"] = source.drafted;
    one["kept"] = source.kept;
    one["accepted"] = source.accepted;
    one["model_calls"] = source.model_calls;
    one["late_calls"] = source.late_calls;
    one["seconds"] = source.seconds;
    sources[source.name.c_str()] = one;
  }
  drafts["sources"] = sources;
  out["drafts"] = drafts;
  return out;
}

// Waits in pieces, so that KeyboardInterrupt and other signals are heard in the main thread.
template <typename WaitFor>
bool WaitHearing(double seconds, const WaitFor& wait_for) {
  for (double left = seconds; left > 0; left -= kSignalSeconds) {
    bool there;
    {
      nb::gil_scoped_release release;
      there = wait_for(std::min(left, kSignalSeconds));
    }
    if (there) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return false;
}

// (bytes, tokens, why it ended, stop text, report, notes, thoughts)
nb::object OutputOf(Job& job) {
  if (!job.done()) RaiseInvalid("the output is not complete");
  const Result<Generation>& output = job.output();
  if (!output.ok()) Raise(output.error());
  return nb::make_tuple(BytesOf(output->text), output->tokens, StopName(output->stop),
                        BytesOf(output->stop_text), ReportOf(output->stats), output->notes,
                        BytesOf(output->reasoning), NameOf(output->closed_by));
}

nb::object CapturesOf(Job& job) {
  nb::list found;
  if (!job.grammar() || !job.grammar()->has_captures() || !job.done() || !job.output().ok()) {
    return found;
  }
  // Of the answer, which the thoughts stand before.
  std::vector<OutputPiece> pieces;
  const std::vector<TokenId>& tokens = job.output()->tokens;
  const auto thoughts = static_cast<size_t>(job.output()->stats.reasoning_tokens);
  for (size_t i = thoughts; i < tokens.size(); ++i) pieces.push_back({.token = tokens[i]});
  for (const Capture& c : Take(job.grammar()->FindCaptures(pieces))) {
    found.append(
        nb::make_tuple(nb::str(c.name.data(), c.name.size()), c.begin, c.end, BytesOf(c.text)));
  }
  return found;
}

// A job with the engine that runs it, which must not go before. A job that nothing in Python refers
// to ends.
struct BoundJob {
  BoundJob(std::shared_ptr<AsyncEngine> of, std::shared_ptr<Job> made)
      : engine(std::move(of)), job(std::move(made)) {}
  BoundJob(BoundJob&&) = default;
  ~BoundJob() {
    if (engine == nullptr) return;
    // With the last of an engine its thread is joined, which may have to free what is Python's.
    nb::gil_scoped_release release;
    if (!engine->forked() && !job->done()) engine->Cancel(job->id());
    engine.reset();
  }

  std::shared_ptr<AsyncEngine> engine;
  std::shared_ptr<Job> job;
};

void BindJob(nb::module_& module) {
  nb::class_<BoundJob>(module, "Job")
      .def_prop_ro("id", [](const BoundJob& self) { return self.job->id(); })
      .def_prop_ro("has_captures",
                   [](const BoundJob& self) {
                     return self.job->grammar() && self.job->grammar()->has_captures();
                   })
      .def_prop_ro("done", [](const BoundJob& self) { return self.job->done(); })
      .def(
          "wait",
          [](const BoundJob& self, double seconds) {
            return WaitHearing(seconds, [&](double s) { return self.job->Wait(s); });
          },
          nb::arg("seconds"))
      .def(
          "wait_done",
          [](const BoundJob& self, double seconds) {
            return WaitHearing(seconds, [&](double s) { return self.job->WaitDone(s); });
          },
          nb::arg("seconds"))
      .def("take",
           [](const BoundJob& self) {
             const Job::News news = self.job->Take();
             return nb::make_tuple(BytesOf(news.bytes), news.tokens, news.done);
           })
      .def("arm", [](const BoundJob& self) { return self.job->Arm(); })
      .def("cancel", [](const BoundJob& self) { self.engine->Cancel(self.job->id()); })
      .def("output", [](const BoundJob& self) { return OutputOf(*self.job); })
      .def("captures", [](const BoundJob& self) { return CapturesOf(*self.job); })
      .def("details",
           [](const BoundJob& self) {
             std::string out("{");
             if (self.job->done() && self.job->output().ok()) {
               const Generation& made = *self.job->output();
               out.append(DetailsJson(made.details));
               if (made.chunks > 0) out.append(1, ',').append(ConflictsJson(made.conflicts));
             }
             out.append(1, '}');
             return out;
           })
      .def("logs", [](const BoundJob& self) {
        nb::list logs;
        if (!self.job->done()) return logs;
        for (const TokenLog& log : self.job->logs()) {
          nb::list top;
          for (const TokenLogprob& t : log.top) top.append(nb::make_tuple(t.token, t.logprob));
          logs.append(nb::make_tuple(log.token, log.logprob, top));
        }
        return logs;
      });
}

nb::dict InfoDict(const EngineInfo& info) {
  nb::dict out;
  out["architecture"] = info.architecture;
  out["weights"] = info.weights;
  out["kernels"] = info.kernels;
  out["parameters"] = info.parameters;
  out["weight_bytes"] = info.weight_bytes;
  out["context_length"] = info.context_length;
  out["threads"] = info.threads;
  out["has_chat_template"] = info.has_chat_template;
  out["lora"] = info.lora;
  return out;
}

// The search that contrast of an extraction is. Raises what it cannot be used with.
SearchOptions ContrastOf(const std::string& contrast, const EngineRequest& request) {
  const GenerateOptions& given = request.options;
  const char* const apart = given.logprobs >= 0         ? "logprobs"
                            : given.details             ? "details"
                            : !given.logit_bias.empty() ? "logit_bias"
                            : !request.stops.empty()    ? "stop"
                            : request.free_first > 0    ? "free_first"
                                                        : nullptr;
  if (Status status = RefuseDiffusion(given.diffusion); !status.ok()) Raise(status.error());
  if (apart != nullptr) Raise({ErrorCode::kUnsupported, "cannot be used with contrast", apart});
  SearchOptions options = GreedyOrDrawn(given.sampling);
  options.max_tokens = given.max_tokens;
  options.skip_forced = given.skip_forced;
  options.contrast_prompt = "(none)";
  options.contrast_auto = contrast == "auto";
  if (options.contrast_auto) return options;
  const char* const end = contrast.data() + contrast.size();
  const auto [at, error] = std::from_chars(contrast.data(), end, options.contrast);
  if (error != std::errc() || at != end) {
    Raise({ErrorCode::kInvalid, "must be a number or \"auto\"", "contrast"});
  }
  return options;
}

BoundJob Submit(const BoundEngine& self, const nb::tuple& prompt,
                const std::optional<Grammar>& grammar, const nb::dict& options,
                const std::vector<std::string>& stops,
                const std::vector<std::pair<TokenId, float>>& logit_bias, bool streams,
                uint64_t group, nb::object constraint) {
  EngineRequest request = RequestOf(prompt);
  request.group = group;
  RequestOptions members;
  request.options = GenerateOptionsOf(options, members);
  request.free_first = members.free_first;
  if (members.document) request.document = members.chunks;
  if (!members.thinking.empty()) {
    Result<Thinking> read = ParseThinking(members.thinking);
    if (!read.ok()) Raise(InFile("thinking", read.error()));
    request.thinking = *read;
  }
  request.options.logit_bias = logit_bias;
  request.stops = stops;
  request.grammar = grammar;
  request.constraint = ConstraintOf(std::move(constraint), self.engine->model().vocabulary());
  std::optional<SearchOptions> contrast;
  if (!members.contrast.empty()) {
    if (members.document) {
      Raise(Error{ErrorCode::kUnsupported, "cannot be used with document", "contrast"});
    }
    contrast = ContrastOf(members.contrast, request);
  }
  Result<std::shared_ptr<Job>> job = [&] {
    nb::gil_scoped_release release;
    if (contrast) return Job::StartSearch(*self.engine, self.armed, request, *std::move(contrast));
    return Job::Start(*self.engine, self.armed, std::move(request), streams);
  }();
  return {self.engine, Take(std::move(job))};
}

}  // namespace

EngineRequest RequestOf(const nb::tuple& prompt) {
  EngineRequest request;
  const auto kind = nb::cast<std::string>(prompt[0]);
  if (kind == "lora") {  // around another prompt
    request = RequestOf(nb::cast<nb::tuple>(prompt[2]));
    request.lora = TextOf(prompt[1], "lora");
    return request;
  }
  request.now = LocalTime();
  if (kind == "prompt") {
    request.prompt = TextOf(prompt[1], "the prompt");
    request.parse_special = nb::cast<bool>(prompt[2]);
  } else if (kind == "tokens") {
    request.tokens = OptionValue<std::vector<TokenId>>(prompt[1], "the prompt", "tokens, ints");
  } else if (kind == "chat") {
    request.chat_json = TextOf(prompt[1], "the messages");
  } else {
    request.extract = ExtractInput{TextOf(prompt[1], "the schema"), TextOf(prompt[2], "a text")};
    request.extract->instruction = TextOf(prompt[3], "the instruction");
    request.extract->examples = Take(ExamplesFromJson(TextOf(prompt[4], "the examples")));
    const std::string view = TextOf(prompt[5], "schema_view");
    const std::optional<SchemaView> named = SchemaViewNamed(view);
    if (!named && !view.empty()) {
      Raise({ErrorCode::kInvalid, kSchemaViewNames, "schema_view"});
    }
    request.extract->view = named.value_or(SchemaView::kDefault);
    request.extract->record = TextOf(prompt[6], "the record");
    request.extract->problem = TextOf(prompt[7], "the problem");
    if (!prompt[8].is_none()) {
      request.extract->prefer_text =
          OptionValue<double>(prompt[8], "prefer_text", "a number from 0 (off) to 1000");
    }
    if (Status status = CheckPreferText(*request.extract); !status.ok()) Raise(status.error());
  }
  return request;
}

// The text of `source` in the form in which the model sees it.
static std::string AsSeen(const BoundEngine& self, nb::handle text) {
  return CopiedText(self.engine->model().tokenizer(), TextOf(text, "source")).text();
}

// Where the source has the values of a record: by pointer, in characters and in bytes.
static nb::tuple FindSpansIn(const BoundEngine& self, nb::handle record, nb::handle source,
                             nb::handle schema) {
  nb::dict characters, bytes;
  const Result<json::Value> value = json::Parse(TextOf(record, "the record"));
  const Result<json::Value> tree = json::Parse(TextOf(schema, "the schema"));
  if (value.ok()) {
    const CopiedText copied(self.engine->model().tokenizer(), TextOf(source, "source"));
    const SpanKind kind = tree.ok() ? SpanKindOf(*tree) : SpanKind::kSpan;
    for (const Span& span : copied.Spans(*value, kind)) {
      const auto pair = [](size_t begin, size_t end) {
        nb::list out;
        out.append(begin);
        out.append(end);
        return out;
      };
      characters[span.pointer.c_str()] = pair(span.begin, span.end);
      bytes[span.pointer.c_str()] = pair(span.begin_byte, span.end_byte);
    }
  }
  return nb::make_tuple(characters, bytes);
}

void BindEngine(nb::module_& module) {
  BindJob(module);
  nb::class_<BoundEngine>(module, "Engine")
      .def(nb::new_([](const std::string& path, const nb::dict& given) {
             const EngineOptions options = EngineOptionsOf(given);
             auto engine = [&] {
               nb::gil_scoped_release release;
               return AsyncEngine::Load(path, options);
             }();
             auto bound = std::make_unique<BoundEngine>();
             bound->engine = Take(std::move(engine));
             return bound.release();
           }),
           nb::arg("path"), nb::arg("options") = nb::dict())
      .def_prop_ro("vocabulary",
                   [](const BoundEngine& self) {
                     return std::const_pointer_cast<Vocabulary>(self.engine->model().vocabulary());
                   })
      .def_prop_ro("info",
                   [](const BoundEngine& self) { return InfoDict(InfoOf(self.engine->model())); })
      .def("as_seen", &AsSeen, nb::arg("text"))
      .def("find_spans", &FindSpansIn, nb::arg("record"), nb::arg("source"), nb::arg("schema"))
      .def_prop_ro("extract_defaults",
                   [](const BoundEngine& self) {
                     nb::list out;
                     for (const ExtractDefault& one : self.engine->model().choices().List()) {
                       out.append(nb::make_tuple(one.name, one.value, one.source));
                     }
                     return out;
                   })
      .def_prop_ro("shows_views",
                   [](const BoundEngine& self) {
                     const Result<ExtractPrompt>& prompt = self.engine->model().extract();
                     return prompt.ok() && prompt->shows_views();
                   })
      .def(
          "compiler",
          [](const BoundEngine& self, size_t cached_grammars) {
            CompilerOptions options;
            options.cached_grammars = cached_grammars;
            return Compiler(self.engine->model().vocabulary(), options);
          },
          nb::arg("cached_grammars"))
      .def(
          "encode",
          [](const BoundEngine& self, nb::handle text, bool special) {
            return self.engine->model().tokenizer().Encode(TextOf(text, "the text"),
                                                           {.parse_special = special});
          },
          nb::arg("text"), nb::arg("special") = false)
      .def(
          "decode",
          [](const BoundEngine& self, const std::vector<TokenId>& tokens) {
            const LoadedModel& model = self.engine->model();
            for (const TokenId token : tokens) {
              if (token < 0 || token >= model.vocabulary()->size()) {
                throw nb::index_error(("there is no token " + std::to_string(token)).c_str());
              }
            }
            return BytesOf(model.tokenizer().Decode(tokens));
          },
          nb::arg("tokens"))
      .def(
          "prompt_tokens",
          [](const BoundEngine& self, const nb::tuple& prompt) {
            return Take(PromptTokensOf(RequestOf(prompt), self.engine->model()));
          },
          nb::arg("prompt"))
      .def("submit", &Submit, nb::arg("prompt"), nb::arg("grammar").none(), nb::arg("options"),
           nb::arg("stops"), nb::arg("logit_bias"), nb::arg("streams"), nb::arg("group"),
           nb::arg("constraint").none() = nb::none())
      .def("wait_armed",
           [](const BoundEngine& self) -> std::optional<std::vector<int64_t>> {
             std::vector<int64_t> ids;
             const std::shared_ptr<ArmedJobs> armed = self.armed;
             nb::gil_scoped_release release;
             if (!armed->Wait(ids)) return std::nullopt;
             return ids;
           })
      .def("close", [](const BoundEngine& self) {
        Status saved = [&] {
          nb::gil_scoped_release release;
          Status closed = self.engine->Close();
          self.armed->Close();
          return closed;
        }();
        if (!saved.ok()) Raise(saved.error());
      });
  // JSON without white space, as prompts and keys of caches want it.
  module.def(
      "compact_json",
      [](nb::handle text) {
        const std::string given = TextOf(text, "the JSON");
        const Result<json::Value> tree = json::Parse(given);
        const std::string compact = tree.ok() ? json::Dump(*tree) : given;
        return nb::str(compact.data(), compact.size());
      },
      nb::arg("text"));
}

}  // namespace pawl::python
