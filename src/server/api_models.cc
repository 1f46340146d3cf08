// Lists of models, and the page for Prometheus: of one model, or of each of several.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/digest.h"
#include "src/base/os/calendar.h"
#include "src/base/os/memory.h"
#include "src/server/api_plain.h"
#include "src/server/heap_trim.h"
#include "src/server/json_writer.h"
#include "src/server/metrics.h"
#include "src/server/model_choice.h"
#include "src/server/model_host.h"

namespace pawl::server {
namespace {

HttpReply JsonReplyOf(JsonWriter& json) {
  HttpReply reply;
  reply.body = json.Take();
  return reply;
}

// As lists tell it, whether the server has one model or several.
std::vector<ModelHost::Facts> FactsOf(const ServerState& server) {
  if (server.host != nullptr) return server.host->AllFacts();
  const ModelInfo& info = server.model->info();
  std::vector<ModelHost::Facts> facts = {{.name = server.model->name(),
                                          .path = server.options.model_path,
                                          .status = "loaded",
                                          .failure = "",
                                          .architecture = info.architecture,
                                          .context_length = info.context_length,
                                          .weight_bytes = info.weight_bytes}};
  for (const ModelInfo::Adapter& adapter : info.adapters) {
    facts.push_back(facts[0]);
    facts.back().name = adapter.name;
    facts.back().parent = server.model->name();
  }
  return facts;
}

bool IsLoaded(const ModelHost::Facts& facts) { return facts.status == std::string_view("loaded"); }

void WriteModel(const ServerState& server, const ModelHost::Facts& facts, JsonWriter& json) {
  json.Object().Key("id").String(facts.name).Key("object").String("model").Key("created").Int(0);
  json.Key("owned_by").String("pawl");
  if (facts.context_length > 0) json.Key("max_model_len").Int(facts.context_length);
  if (!facts.parent.empty()) json.Key("parent").String(facts.parent);
  if (server.host != nullptr) {
    json.Key("status").Object().Key("value").String(facts.status);
    if (!facts.failure.empty()) json.Key("message").String(facts.failure);
    json.End();
  }
  json.End();
}

// The files of a model, as far as a list tells.
struct ModelFiles {
  const char* format = "safetensors";
  std::time_t changed = 0;
  std::string digest;  // of names, sizes and times; of a blob of Ollama's, the file's
};

std::string TimeOf(std::time_t at) {
  const std::tm utc = os::UniversalTime(at);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

ModelFiles FilesOf(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMost = 4096;
  ModelFiles found;
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    fs::directory_iterator at(path, error);
    for (; !error && at != fs::directory_iterator() && files.size() < kMost; at.increment(error)) {
      if (at->is_regular_file(error)) files.push_back(at->path());
    }
    std::sort(files.begin(), files.end());
  } else {
    found.format = "gguf";
    files.emplace_back(path);
  }
  Digest digest(DigestKind::kSha256);
  for (const fs::path& file : files) {
    const auto time = fs::last_write_time(file, error);
    if (error) continue;
    using std::chrono::system_clock;
    const auto ago = decltype(time)::clock::now() - time;
    const auto when = std::chrono::round<std::chrono::milliseconds>(
        system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago));
    const std::time_t seconds =
        std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()).count();
    found.changed = std::max(found.changed, seconds);
    digest.Add(file.filename().string() + ' ' + std::to_string(fs::file_size(file, error)) + ' ' +
               std::to_string(seconds) + '\n');
  }
  found.digest = digest.Hex();
  const std::string name = fs::path(path).filename().string();
  constexpr std::string_view kBlob = "sha256-";
  if (name.starts_with(kBlob) && name.size() == kBlob.size() + found.digest.size())
    found.digest = name.substr(kBlob.size());
  return found;
}

HttpReply OllamaList(const ServerState& server, bool running) {
  JsonWriter json;
  json.Object().Key("models").Array();
  for (const ModelHost::Facts& facts : FactsOf(server)) {
    if (running && !IsLoaded(facts)) continue;
    json.Object().Key("name").String(facts.name).Key("model").String(facts.name);
    const ModelFiles files = FilesOf(facts.path);
    json.Key("modified_at").String(TimeOf(files.changed));
    json.Key("size").Int(facts.weight_bytes).Key("digest").String(files.digest);
    json.Key("details").Object().Key("format").String(files.format);
    json.Key("family").String(facts.architecture).End();
    if (running && facts.expires >= 0)
      json.Key("expires_at")
          .String(TimeOf(std::time(nullptr) + static_cast<std::time_t>(facts.expires)));
    json.End();
  }
  json.End().End();
  return JsonReplyOf(json);
}

// What the process takes of the machine, and how much of it is in use.
void WriteMemory(std::string& out) {
  if (const int64_t resident = ResidentBytes(); resident > 0) {
    WriteMetric("process_resident_memory_bytes", "gauge", "Memory of the process.",
                static_cast<double>(resident), out);
  }
  const std::optional<os::HeapBytes> heap = os::AskHeap();
  if (!heap) return;
  WriteMetric("pawl_heap_used_bytes", "gauge", "Memory that was asked for and not given back.",
              static_cast<double>(heap->used), out);
  WriteMetric("pawl_heap_free_bytes", "gauge", "Memory that was given back, and may be used again.",
              static_cast<double>(heap->free), out);
}

// What does not belong to a model.
void WriteProcess(const ServerState& server, std::string& out) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "gauge", help, value, out);
  };
  gauge("pawl_stored_responses", "Answers of /v1/responses that are stored.",
        static_cast<double>(server.responses.size()));
  gauge("pawl_stored_response_bytes", "What they take.",
        static_cast<double>(server.responses.bytes()));
  WriteMemory(out);
}

// `loaded`: the model is there, and stays while this runs.
void WriteState(const ServerState& server, bool loaded, std::string& out) {
  const Metrics& m = server.metrics;
  m.WriteRequests(out);
  const auto count = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "counter", help, value, out);
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "gauge", help, value, out);
  };
  count("pawl_prompt_tokens_total", "Tokens of prompts.", static_cast<double>(m.prompt_tokens));
  count("pawl_prompt_tokens_reused_total", "Of these, found in the prefix cache.",
        static_cast<double>(m.reused_tokens));
  count("pawl_output_tokens_total", "Tokens of outputs.", static_cast<double>(m.output_tokens));
  count("pawl_output_tokens_sampled_total", "Of these, drawn from the model.",
        static_cast<double>(m.sampled_tokens));
  count("pawl_output_tokens_forced_total", "Of these, dictated by a grammar.",
        static_cast<double>(m.forced_tokens));
  count("pawl_output_tokens_closing_total", "Of these, written to close an output in time.",
        static_cast<double>(m.closing_tokens));
  count("pawl_prompt_seconds_total", "The model on prompts.",
        static_cast<double>(m.prefill_micros) * 1e-6);
  count("pawl_output_seconds_total", "The model on outputs.",
        static_cast<double>(m.decode_micros) * 1e-6);
  count("pawl_mask_seconds_total", "Masks and states of grammars.",
        static_cast<double>(m.mask_micros) * 1e-6);
  count("pawl_clients_gone_total", "Requests whose client went away.",
        static_cast<double>(m.cancelled));
  count("pawl_refused_full_total", "Requests refused because the queue was full.",
        static_cast<double>(m.refused_full));
  count("pawl_timed_out_total", "Requests given up after the time for a request.",
        static_cast<double>(m.timed_out));
  gauge("pawl_requests_live", "Requests taken and not answered yet.", server.calls);
  if (loaded) {
    const AsyncEngine& engine = *server.engine;
    gauge("pawl_outputs_running", "Outputs in the batch.", engine.running());
    gauge("pawl_outputs_waiting", "Outputs that wait for a place in the batch.", engine.waiting());
    count("pawl_model_steps_total", "Steps of the batch.", static_cast<double>(engine.steps()));
    gauge("pawl_kv_usage_ratio", "Keys and values in use, of the memory for them.",
          engine.kv_usage());
    gauge("pawl_kv_bytes",
          "Pages of keys and values that have memory, those in the prefix cache included.",
          static_cast<double>(engine.kv_bytes()));
    gauge("pawl_draft_memory_bytes", "What drafts have learnt from outputs.",
          static_cast<double>(engine.draft_bytes()));
    const GrammarStore::Stats grammars = server.grammars->stats();
    gauge("pawl_grammars", "Compiled grammars that are kept.",
          static_cast<double>(grammars.grammars));
    gauge("pawl_grammar_bytes", "What they take, keys included.",
          static_cast<double>(grammars.bytes));
    count("pawl_grammar_hits_total", "Grammars that were there.",
          static_cast<double>(grammars.hits));
    count("pawl_grammar_misses_total", "Grammars that were compiled.",
          static_cast<double>(grammars.misses));
    count("pawl_compiles_stopped_total", "Of these, given up because the client went away.",
          static_cast<double>(grammars.stopped));
    count("pawl_grammar_evictions_total", "Grammars that had to go.",
          static_cast<double>(grammars.evicted));
  }
  m.step.Write("pawl_step_seconds",
               "Processor time of the thread that all outputs share, from one call of the model to "
               "the next, that call included.",
               out);
  m.first_token.Write("pawl_first_token_seconds", "From the request to its first token.", out);
  m.request.Write("pawl_request_seconds", "From the request to the end of its answer.", out);
  m.compile.Write("pawl_compile_seconds", "Constraints into grammars.", out);
}

// A page in which names of metrics that several models have come once, each sample with the label
// of its model.
class ModelPages {
 public:
  // `page`: in Prometheus's text format; `model`: empty for what belongs to none.
  void Add(std::string_view page, const std::string& model) {
    const std::string label = model.empty() ? "" : "model=" + json::Quote(model);
    Family* family = nullptr;
    while (!page.empty()) {
      const std::string_view line = page.substr(0, page.find('\n'));
      page.remove_prefix(std::min(page.size(), line.size() + 1));
      if (line.starts_with("# HELP ")) {
        family = &Named(line.substr(7, line.find(' ', 7) - 7));
        if (family->lines.empty()) family->head = std::string(line) + "\n";
      } else if (line.starts_with("# TYPE ") && family != nullptr) {
        if (family->lines.empty()) family->head += std::string(line) + "\n";
      } else if (family != nullptr) {
        family->lines += Labelled(line, label) + "\n";
      }
    }
  }
  std::string Take() const {
    std::string out;
    for (const Family& family : families_) out += family.head + family.lines;
    return out;
  }

 private:
  struct Family {
    std::string name, head, lines;
  };
  Family& Named(std::string_view name) {
    for (Family& family : families_) {
      if (family.name == name) return family;
    }
    return families_.emplace_back(Family{.name = std::string(name), .head = "", .lines = ""});
  }
  static std::string Labelled(std::string_view line, const std::string& label) {
    if (label.empty()) return std::string(line);
    const size_t end = line.find_first_of("{ ");
    const bool labels = end != std::string_view::npos && line[end] == '{';
    const std::string_view rest = line.substr(labels ? end + 1 : std::min(end, line.size()));
    return std::string(line.substr(0, end)) + "{" + label + (labels ? "," : "}") +
           std::string(rest);
  }

  std::vector<Family> families_;
};

void WriteFacts(const ModelHost::Facts& facts, std::string& out) {
  const auto gauge = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "gauge", help, value, out);
  };
  const auto count = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "counter", help, value, out);
  };
  gauge("pawl_model_loaded", "1 while the model is loaded.", IsLoaded(facts) ? 1 : 0);
  gauge("pawl_model_bytes", "What it is counted with, of the memory for models.",
        static_cast<double>(facts.bytes));
  gauge("pawl_model_requests_waiting", "Requests that wait for it to be loaded.", facts.waiting);
  count("pawl_model_loads_total", "How often it was loaded.", static_cast<double>(facts.loads));
  count("pawl_model_unloads_total", "How often it was unloaded.",
        static_cast<double>(facts.unloads));
  count("pawl_model_load_seconds_total", "Seconds of all loads, with those that waited for memory.",
        facts.load_seconds);
}

std::string PageOfModels(const ServerState& server) {
  ModelPages pages;
  std::string page;
  server.metrics.WriteRequests(page);
  WriteMetric("pawl_models_bytes_limit", "gauge", "Memory for the process with its models.",
              static_cast<double>(server.host->budget()), page);
  WriteProcess(server, page);
  pages.Add(page, "");
  const auto loaded = server.host->Loaded();
  const auto facts = server.host->AllFacts();
  const auto states = server.host->States();
  for (size_t i = 0; i < states.size(); ++i) {
    const bool here = std::ranges::any_of(
        loaded, [&](const auto& state) { return state.get() == states[i].get(); });
    page.clear();
    WriteFacts(facts[i], page);
    WriteState(*states[i], here, page);
    pages.Add(page, facts[i].name);
  }
  return pages.Take();
}

}  // namespace

Result<HttpReply> Models(ServerState& server, const PlainRequest&) {
  JsonWriter json;
  json.Object().Key("object").String("list").Key("data").Array();
  for (const ModelHost::Facts& facts : FactsOf(server)) WriteModel(server, facts, json);
  json.End().End();
  return JsonReplyOf(json);
}

Result<HttpReply> OneModel(ServerState& server, const PlainRequest& request) {
  std::string name = PercentDecoded(
      std::string_view(request.http.path).substr(std::string_view("/v1/models/").size()));
  // The whole name first, then without the ":latest" of Ollama's clients.
  for (int i = 0; i < 2; ++i) {
    JsonWriter json;
    for (const ModelHost::Facts& facts : FactsOf(server)) {
      if (facts.name != name) continue;
      WriteModel(server, facts, json);
      return JsonReplyOf(json);
    }
    constexpr std::string_view kLatest = ":latest";
    if (name.ends_with(kLatest)) name.resize(name.size() - kLatest.size());
  }
  return Error{ErrorCode::kInvalid, "there is no such model", "#/model"};
}

Result<HttpReply> OllamaTags(ServerState& server, const PlainRequest&) {
  return OllamaList(server, false);
}

Result<HttpReply> OllamaRunning(ServerState& server, const PlainRequest&) {
  return OllamaList(server, true);
}

Result<HttpReply> MetricsPage(ServerState& server, const PlainRequest&) {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  if (server.host != nullptr) {
    reply.body = PageOfModels(server);
    return reply;
  }
  WriteState(server, server.ready, reply.body);
  WriteProcess(server, reply.body);
  return reply;
}

}  // namespace pawl::server
