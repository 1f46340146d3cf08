// `pawl serve`: a model behind HTTP. docs/server.md has the routes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grammar/tags/formats/chat_format.h"
#include "src/base/file.h"
#include "src/base/os/files.h"
#include "src/base/os/signals.h"
#include "src/cli/command.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/options.h"
#include "src/cli/serve_models.h"
#include "src/cli/server_log.h"
#include "src/cli/thinking_flags.h"
#include "src/cli/variables.h"
#include "src/engine/lora_names.h"
#include "src/server/model_choice.h"
#include "src/server/server.h"

namespace pawl::cli {
namespace {

constexpr const char* kServe = "serve";

struct ServeFlags {
  std::string model, name, key_file, tool_syntax, template_file, pooling, cors;
  std::string log = "json", log_file, trace_file;
  std::string host = "127.0.0.1", dtype = "stored", models, keep_alive = "5m";
  int64_t models_mb = 0;
  std::vector<std::string> allowed_hosts, lora;
  int64_t lora_mb = 1024;
  int port = 8080, threads = 0, batch = 8, queue = 256, workers = 2, max_tokens = 4096;
  std::optional<int> max_string;
  int64_t search_rows = server::ServerOptions().search_rows;
  int64_t search_nodes = server::ServerOptions().search_nodes;
  ThinkingFlags thinking;
  int max_body_mb = 8, max_waiting_mb = 64, grammar_mb = 256, store_mb = 64;
  double request_seconds = 600, drain_seconds = 15, store_seconds = 86400;
  bool no_playground = false, show_config = false, check_commands = false;
  DeviceFlags device;
  DraftFlags drafts;
  MonitorFlags monitored;
};

// One key a line; empty lines and those that begin with # are none.
Result<std::vector<std::string>> ReadKeys(const std::string& file) {
  Result<std::string> text = ReadFile(file);
  if (!text.ok()) return text.error();
  std::vector<std::string> keys;
  size_t begin = 0;
  while (begin < text->size()) {
    size_t end = text->find('\n', begin);
    if (end == std::string::npos) end = text->size();
    std::string line = text->substr(begin, end - begin);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') keys.push_back(std::move(line));
    begin = end + 1;
  }
  if (keys.empty()) return Error{ErrorCode::kInvalid, "has no keys", file};
  return keys;
}

Error AtLora(Error error) {
  if (error.place == "lora") error.place = "--lora";
  return error;
}

Status AddAdapters(const ServeFlags& flags, server::ServerOptions& options) {
  Result<std::vector<LoraAdapter>> adapters = ParseLoraAdapters(flags.lora);
  if (!adapters.ok()) return AtLora(adapters.error());
  options.model.model.lora = *std::move(adapters);
  options.model.model.lora_bytes = flags.lora_mb << 20;
  return {};
}

// --models and what belongs to it. What is of one model alone is refused.
Status AddModels(const ServeFlags& flags, server::ServerOptions& options) {
  if (Status status = AddAdapters(flags, options); !status.ok()) return status;
  const auto refused = [&](const std::string& value, const char* option) {
    return value.empty()
               ? Status()
               : Error{ErrorCode::kInvalid, "is for one model, and --models names several", option};
  };
  if (flags.models.empty()) {
    if (flags.models_mb > 0) {
      return Error{ErrorCode::kInvalid, "needs --models FILE or DIR", "--models-mb"};
    }
    if (flags.keep_alive != ServeFlags().keep_alive) {
      return Error{ErrorCode::kInvalid, "needs --models FILE or DIR", "--keep-alive"};
    }
    return {};
  }
  for (const auto& [value, option] :
       {std::pair(flags.model, "--model"),
        {flags.lora.empty() ? "" : flags.lora[0], "--lora"},
        {flags.name, "--model-name"},
        {flags.template_file, "--chat-template"},
        {flags.drafts.options.more_models.empty() ? "" : flags.drafts.options.more_models[0],
         "--draft-model"},
        {flags.drafts.options.history_file, "--draft-history"}}) {
    if (Status status = refused(value, option); !status.ok()) return status;
  }
  if (flags.device.device != "cpu") {
    return Error{ErrorCode::kUnsupported, "with --models must be cpu", "--device"};
  }
  const std::optional<double> keep_alive = server::KeepAliveOf(flags.keep_alive);
  if (!keep_alive) {
    return Error{ErrorCode::kInvalid,
                 "must be seconds, or a text such as 5m; -1 for ever, not " + flags.keep_alive,
                 "--keep-alive"};
  }
  server::ModelOfServer defaults;
  defaults.model = options.model;
  defaults.model.note = nullptr;
  defaults.max_batch = options.max_batch;
  defaults.max_queue = options.max_queue;
  defaults.max_tokens = options.max_tokens;
  defaults.keep_alive = *keep_alive;
  Result<std::vector<server::ModelOfServer>> models = ReadServedModels(flags.models, defaults);
  if (!models.ok()) return models.error();
  for (server::ModelOfServer& model : *models) {
    model.model.note = [name = model.model.name](const std::string& note) {
      Note(kServe, "note: " + name + ": " + note);
    };
  }
  options.models = *std::move(models);
  options.models_bytes = flags.models_mb << 20;
  if (flags.drafts.options.sources != "off") {
    options.draft_bytes = static_cast<int64_t>(flags.drafts.options.memory) << 20;
  }
  return {};
}

// The log and the file of spans. It outlives the server, which writes to them.
class Logs {
 public:
  Status Open(const ServeFlags& flags, server::ServerOptions& options) {
    if (!flags.log_file.empty()) {
      if (Status status = log_.Open(flags.log_file); !status.ok()) return status;
    }
    if (flags.log == "json") {
      options.log = [this](const std::string& line) { log_.Write(line); };
    }
    if (flags.trace_file.empty()) return {};
    options.trace = [this](const std::string& line) { spans_.WriteAsIs(line); };
    return spans_.Open(flags.trace_file);
  }
  void Reopen() {
    for (ServerLog* const file : {&log_, &spans_}) {
      if (Status status = file->Reopen(); !status.ok()) Note(kServe, status.error().ToString());
    }
  }

 private:
  ServerLog log_, spans_;
};

int Serve(const ServeFlags& flags, const CLI::App& command) {
  if (flags.show_config) {
    Print(ShownConfig(command));
    return kExitOk;
  }
  if (Status status = flags.drafts.Check(); !status.ok()) return Fail(kServe, status.error());
  if (Status status = flags.monitored.Check(); !status.ok()) return Fail(kServe, status.error());
  server::ServerOptions options;
  if (flags.models.empty()) {
    Result<std::string> folder = FindModelFolder(flags.model);
    if (!folder.ok()) return Fail(kServe, folder.error());
    options.model_path = *folder;
  }
  options.model.name = flags.name.empty() ? LabelOf(flags.model) : flags.name;
  options.model.tool_syntax = flags.tool_syntax;
  options.model.settings = StorePaths().settings;
  options.model.pooling = flags.pooling;
  if (!flags.thinking.marks.empty()) {
    options.model.think_open = flags.thinking.marks[0];
    options.model.think_close = flags.thinking.marks[1];
  }
  options.model.model = ModelOptionsOf(kServe, flags.threads, flags.dtype, flags.device);
  options.model.note = [](const std::string& note) { Note(kServe, "note: " + note); };
  if (!flags.template_file.empty()) {
    Result<std::string> text = ReadFile(flags.template_file);
    if (!text.ok()) return Fail(kServe, text.error());
    options.model.chat_template = *std::move(text);
  }
  if (!flags.key_file.empty()) {
    Result<std::vector<std::string>> keys = ReadKeys(flags.key_file);
    if (!keys.ok()) return Fail(kServe, keys.error());
    options.api_keys = *std::move(keys);
  }
  options.make_drafter = [&](const server::ServedModel& model) {
    return flags.drafts.Make(model.loaded());
  };
  options.http.host = flags.host;
  options.http.port = flags.port;
  options.http.max_body_bytes = static_cast<size_t>(flags.max_body_mb) << 20;
  options.http.max_waiting_bytes = static_cast<size_t>(flags.max_waiting_mb) << 20;
  options.http.cors_origin = flags.cors;
  options.http.allowed_hosts = flags.allowed_hosts;
  options.max_batch = flags.batch;
  options.max_queue = flags.queue;
  options.workers = flags.workers;
  options.max_tokens = flags.max_tokens;
  options.max_string = flags.max_string.value_or(-1);
  options.search_rows = flags.search_rows;
  options.search_nodes = flags.search_nodes;
  options.check_commands = flags.check_commands;
  options.grammar_bytes = static_cast<size_t>(flags.grammar_mb) << 20;
  options.store_bytes = static_cast<size_t>(flags.store_mb) << 20;
  options.store_seconds = flags.store_seconds;
  options.request_seconds = flags.request_seconds;
  options.drain_seconds = flags.drain_seconds;
  options.playground = !flags.no_playground;
  options.version = PAWL_VERSION;
  options.code = {flags.monitored.repo,        flags.monitored.monitors,
                  flags.monitored.lsp_server,  flags.monitored.lsp_seconds,
                  MonitorFlags::CacheFolder(), MonitorFlags::JavaHome()};
  if (Status status = AddModels(flags, options); !status.ok()) {
    return Fail(kServe, status.error());
  }
  Logs logs;
  if (Status status = logs.Open(flags, options); !status.ok()) return Fail(kServe, status.error());
  os::RaiseFileLimit();  // a connection is a file

  // Before any thread begins, so that all of them leave the signals to this one.
  os::HoldServerSignals();
  os::IgnoreBrokenPipes();

  Result<std::unique_ptr<server::Server>> server = server::Server::Start(options);
  if (!server.ok()) return Fail(kServe, server.error());
  if (Status status = (*server)->WaitUntilReady(); !status.ok()) {
    return Fail(kServe, AtLora(status.error()));
  }
  Print(fmt::format("listening on http://{}:{}\n", flags.host, (*server)->port()));
  if (Status status = FlushOutput(); !status.ok()) return Fail(kServe, status.error());
  if (options.api_keys.empty() && !server::IsLoopback(flags.host)) {
    Note(kServe, fmt::format("warning: {} is open to other machines, and no key is asked for "
                             "(--api-key-file)",
                             flags.host));
  }
  while (os::WaitForServerSignal() == os::ServerSignal::kReopen) logs.Reopen();
  // A second signal ends it at once.
  os::ReleaseServerSignals();
  if (Status status = (*server)->Stop(); !status.ok()) return Fail(kServe, status.error());
  return kExitOk;
}

std::vector<std::string> ToolSyntaxNames() {
  std::vector<std::string> names;
  for (const ChatFormat* format : ChatFormats()) {
    names.emplace_back(format->name);
    for (const std::string_view alias : TextsOf(format->aliases)) names.emplace_back(alias);
  }
  std::ranges::sort(names);
  return names;
}

void AddModelsTo(CLI::App* command, ServeFlags& flags) {
  TextOption(command, "--model", flags.model, "MODEL", kModelHelp);
  command
      ->add_option("--model-name", flags.name,
                   "What clients call it (default: the folder, or ORG/NAME)")
      ->type_name("NAME");
  TextOption(
      command, "--lora", flags.lora, "NAME=DIR",
      "A LoRA adapter of the model, as PEFT saves it. Clients ask for it with \"model\": NAME; "
      "may be given several times");
  CountOption(command, "--lora-mb", flags.lora_mb, 1, 1 << 20, "Memory for all adapters, in MiB");
  TextOption(command, "--models", flags.models, "FILE|DIR",
             "Several models, loaded when requests name them: a JSON file that lists them, or a "
             "folder with model folders and GGUF files");
  command
      ->add_option("--models-mb", flags.models_mb,
                   "Memory for the process with the models of --models, in MiB (default: half of "
                   "the machine's)")
      ->transform(WholeNumber(1, 1 << 30))
      ->type_name("N");
  TextOption(command, "--keep-alive", flags.keep_alive, "TIME",
             "A model of --models that no request has named for so long is unloaded: seconds, 90s, "
             "5m, 1h; -1: never")
      ->capture_default_str();
}

// What the texts of the model look like.
void AddTextsTo(CLI::App* command, ServeFlags& flags) {
  command->add_option("--chat-template", flags.template_file, "File with another chat template")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--tool-syntax", flags.tool_syntax,
                   "How the model writes tool calls (default: by its chat template)")
      ->check(CLI::IsMember(ToolSyntaxNames()))
      ->type_name("NAME");
  command
      ->add_option(
          "--pooling", flags.pooling,
          "How /v1/embeddings makes a text's vector: mean, of the states of all tokens, or "
          "last, that of the last token (default: as the model's files say)")
      ->check(CLI::IsMember(std::vector<std::string>{"mean", "last"}))
      ->type_name("KIND");
  flags.thinking.AddMarksTo(command);
  command
      ->add_option("--max-string", flags.max_string,
                   "Most characters of a string that neither schema nor request bounds; 0: "
                   "any number (default: for answers the length of the text, at least 256; for "
                   "calls any number)")
      ->transform(WholeNumber(0, kMostCount))
      ->type_name("N");
  CountOption(command, "--search-rows", flags.search_rows, 1, uint64_t{1} << 40,
              "Most rows of the model for one search");
  CountOption(command, "--search-nodes", flags.search_nodes, 1, uint64_t{1} << 30,
              "Most hypotheses of one search");
  command->add_flag("--check-commands", flags.check_commands,
                    "Let the checks of requests run commands and read files of this machine");
}

}  // namespace

void AddServe(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kServe, "Serve a model over HTTP (OpenAI's API and others)");
  const auto flags = std::make_shared<ServeFlags>();
  AddModelsTo(command, *flags);
  TextOption(command, "--host", flags->host, "ADDRESS", "Address to listen on; 0.0.0.0: all")
      ->capture_default_str();
  CountOption(command, "--port", flags->port, 0, 65535, "Port; 0: any that is free");
  TextOption(command, "--api-key-file", flags->key_file, "FILE",
             "File with the keys that clients may use, one a line; without it keys are not "
             "looked at");
  command
      ->add_option("--cors-origin", flags->cors,
                   "Let web pages from this origin use the server; *: from any")
      ->type_name("ORIGIN");
  command
      ->add_option("--allowed-host", flags->allowed_hosts,
                   "Name by which clients may reach the server (Host), besides localhost and "
                   "127.0.0.1; may be given several times. Without it any name is good when the "
                   "server listens on other addresses or asks for keys")
      ->type_name("NAME");
  AddTextsTo(command, *flags);
  CountOption(command, "--batch", flags->batch, 1, 1024,
              "Outputs that the model works on at a time");
  CountOption(command, "--queue", flags->queue, 1, 1 << 20,
              "Requests that may wait; more are answered with status 429");
  CountOption(command, "--max-tokens", flags->max_tokens, 1, kMostCount,
              "Budget of outputs without one of their own");
  RealOption(command, "--request-seconds", flags->request_seconds, 0.1, 1e6, "X",
             "Most seconds for a request");
  RealOption(command, "--drain-seconds", flags->drain_seconds, 0, 1e6, "X",
             "Seconds that running requests are given at the end");
  CountOption(command, "--max-body-mb", flags->max_body_mb, 1, 1024,
              "Largest body of a request, in MiB");
  CountOption(command, "--max-waiting-mb", flags->max_waiting_mb, 1, 1 << 20,
              "Memory for all bodies that have not arrived whole, in MiB");
  CountOption(command, "--grammar-mb", flags->grammar_mb, 1, 1 << 20,
              "Memory for compiled grammars, in MiB");
  CountOption(
      command, "--store-mb", flags->store_mb, 0, 1 << 20,
      "Memory for the answers of /v1/responses that clients may ask for again or go on from, "
      "in MiB; 0: none are stored");
  RealOption(command, "--store-seconds", flags->store_seconds, 1, 1e9, "X",
             "How long such an answer is stored");
  CountOption(command, "--workers", flags->workers, 1, 256,
              "Threads for large bodies, prompts and compiling; one more where it is one");
  ChoiceOption(command, "--dtype", flags->dtype, DtypeNames(), "TYPE",
               "How weights are kept in memory");
  flags->device.AddTo(command);
  flags->drafts.AddTo(command);
  flags->monitored.AddTo(command);
  CountOption(command, "--threads", flags->threads, 0, 1024, "Threads of the model; 0: all cores");
  ChoiceOption(command, "--log", flags->log, {"json", "none"}, "FORM",
               "A line for each request on stderr: json or none");
  command
      ->add_option("--log-file", flags->log_file,
                   "The lines go to the end of this file, which is opened anew on SIGHUP")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--trace-file", flags->trace_file,
                   "A span for each request, as a line of OpenTelemetry's JSON, goes to the end of "
                   "this file, which is opened anew on SIGHUP")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_flag("--show-config", flags->show_config,
                 "Print the options as a file for --config, and end")
      ->configurable(false);
  command->add_flag("--no-playground", flags->no_playground, "No page at /");
  command->footer(
      "Example:\n  pawl serve --port 8080 &\n  curl http://127.0.0.1:8080/v1/extract -d "
      "'{\"text\": \"Ann Lee, ann@example.org\", \"schema\": {\"type\": \"object\", ...}}'");
  command->callback(
      [flags, command, &action] { action = [flags, command] { return Serve(*flags, *command); }; });
}

}  // namespace pawl::cli
