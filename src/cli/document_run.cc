// Outputs of chunks are kept with all digits, so a run that goes on merges the same as one without
// a break. The file names its document by a digest of the text and of the settings: another
// document is read from its beginning.
#include "src/cli/document_run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/engine/schema_view.h"

namespace pawl::cli {
namespace {

constexpr int64_t kCharactersOfAToken = 16;  // at most, as a bound of strings

std::string AllDigits(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  return digits;
}

std::string ChunkJson(int chunk, const Result<Generation>& output) {
  std::string out = "{\"chunk\":" + std::to_string(chunk);
  if (!output.ok()) {
    return out + ",\"nothing\":" + json::Quote(output.error().message) +
           ",\"place\":" + json::Quote(output.error().place) + "}";
  }
  out += ",\"text\":" + json::Quote(output->text);
  if (!output->reasoning.empty()) out += ",\"reasoning\":" + json::Quote(output->reasoning);
  if (output->stop == StopReason::kClosed) {
    out += ",\"closed_by\":" + std::to_string(static_cast<int>(output->closed_by));
  }
  out += ",\"tokens\":[" + std::to_string(output->stats.prompt_tokens) + "," +
         std::to_string(output->stats.output_tokens) + "," + std::to_string(output->stats.budget) +
         "],\"values\":[";
  for (size_t i = 0; i < output->details.size(); ++i) {
    const ValueDetails& value = output->details[i];
    out += (i > 0 ? ",{\"at\":" : "{\"at\":") + json::Quote(value.pointer);
    if (value.span) {
      out += ",\"span\":[" + std::to_string(value.span->begin) + "," +
             std::to_string(value.span->end) + "," + std::to_string(value.span->begin_byte) + "," +
             std::to_string(value.span->end_byte) + "]";
    }
    if (value.probability) out += ",\"probability\":" + AllDigits(*value.probability);
    out += ",\"surprise\":" + AllDigits(value.surprise);
    for (const ValueDetails::Alternative& one : value.alternatives) {
      out += (&one == value.alternatives.data() ? ",\"alternatives\":[[" : ",[") +
             json::Quote(one.value) + "," + AllDigits(one.probability) + "]";
    }
    out += value.alternatives.empty() ? "}" : "]}";
  }
  return out + "]}";
}

// nullopt: it is not what ChunkJson writes.
std::optional<std::pair<int, Result<Generation>>> ChunkOf(const json::Value& line) {
  const JsonReader in(line);
  int chunk = 0;
  if (!in["chunk"].Read(chunk, 0, 1 << 30)) return std::nullopt;
  if (in["nothing"].present()) {
    Error error{ErrorCode::kUnsatisfiable, in["nothing"].String(), in["place"].String("")};
    if (!in.ok()) return std::nullopt;
    return std::pair(chunk, Result<Generation>(std::move(error)));
  }
  Generation out;
  out.text = in["text"].String();
  out.reasoning = in["reasoning"].String("");
  int closed_by = 0;
  if (in["closed_by"].Read(closed_by, 0, 3)) {
    out.stop = StopReason::kClosed;
    out.closed_by = static_cast<ClosedBy>(closed_by);
  }
  const JsonReader tokens = in["tokens"];
  out.stats.prompt_tokens = static_cast<int>(tokens.Item(0).Whole());
  out.stats.output_tokens = static_cast<int>(tokens.Item(1).Whole());
  out.stats.budget = static_cast<int>(tokens.Item(2).Whole());
  for (const JsonReader value : in["values"].items()) {
    ValueDetails& one = out.details.emplace_back();
    one.pointer = value["at"].String();
    if (const JsonReader span = value["span"]; span.present()) {
      one.span = {span.Item(0).Whole(), span.Item(1).Whole(), span.Item(2).Whole(),
                  span.Item(3).Whole()};
    }
    if (value["probability"].present()) one.probability = value["probability"].Number(0, 1e300);
    one.surprise = value["surprise"].Number(-1e300, 1e300);
    for (const JsonReader other : value["alternatives"].items()) {
      one.alternatives.push_back({other.Item(0).String(), other.Item(1).Number(0, 1e300)});
    }
  }
  if (!in.ok()) return std::nullopt;
  return std::pair(chunk, Result<Generation>(std::move(out)));
}

}  // namespace

// ---- Options ----

void DocumentFlags::AddTo(CLI::App* command) {
  command->add_flag(
      "--document", document,
      "A text may be longer than the context: it is read in chunks, and their records "
      "become one (docs/extraction.md)");
  CountOption(command, "--chunk-tokens", options.chunk_tokens, 0, 1 << 24,
              "With --document: tokens of the text in a chunk; 0: half of the model's context");
  CountOption(
      command, "--passes", options.passes, 1, 16,
      "With --document: how often the text is read, each time with other borders of chunks");
}

Status DocumentFlags::Check(const ExtractFlags& extract) const {
  const auto wrong = [](ErrorCode code, const char* option, const char* what) {
    return Error{code, what, option};
  };
  if (!document) {
    if (options.chunk_tokens != 0) {
      return wrong(ErrorCode::kInvalid, "--chunk-tokens", "needs --document");
    }
    if (options.passes != 1) return wrong(ErrorCode::kInvalid, "--passes", "needs --document");
    return {};
  }
  if (!extract.retry.sampler.empty() || !extract.setting.contrast.empty()) {
    return wrong(ErrorCode::kUnsupported, "--document", "is for records that are drawn alone");
  }
  return {};
}

Status DocumentFlags::CheckFor(const LoadedModel& model) const {
  if (!document) return {};
  const Status status = CheckDocument(options, model);
  if (status.ok()) return {};
  const bool tokens = status.error().place == "chunk_tokens";
  return Error{status.error().code, status.error().message, tokens ? "--chunk-tokens" : "--passes"};
}

// ---- The file ----

Result<std::unique_ptr<ChunkFile>> ChunkFile::Open(const std::string& path,
                                                   const std::string& digest, bool resume) {
  std::unique_ptr<ChunkFile> out(new ChunkFile);
  out->path_ = path;
  const std::string head = "{\"document\":" + json::Quote(digest) + "}\n";
  size_t kept = 0;
  if (resume && os::Exists(path)) {
    Result<std::string> there = ReadFile(path, size_t{4} << 30);
    if (!there.ok()) return there.error();
    const std::string_view text = *there;
    const auto other = [&](int number) {
      return Error{ErrorCode::kInvalid,
                   "is not what a run writes; delete the file, or start again without --resume",
                   path + ": line " + std::to_string(number)};
    };
    if (!text.starts_with("{\"document\":\"") && text.find('\n') != std::string_view::npos)
      return other(1);
    if (text.starts_with(head)) {
      int number = 1;
      kept = head.size();
      for (size_t end; (end = text.find('\n', kept)) != std::string_view::npos; kept = end + 1) {
        const Result<json::Value> line = json::Parse(text.substr(kept, end - kept));
        auto chunk = line.ok() ? ChunkOf(*line) : std::nullopt;
        ++number;
        if (!chunk) return other(number);
        out->known_.insert_or_assign(chunk->first, std::move(chunk->second));
      }
    }
  }
  out->file_.reset(std::fopen(path.c_str(), kept > 0 ? "r+" : "w"));
  const bool placed = out->file_ != nullptr && os::Truncate(::fileno(out->file_.get()), kept) &&
                      std::fseek(out->file_.get(), 0, SEEK_END) == 0;
  const bool headed = placed && (kept > 0 || (std::fputs(head.c_str(), out->file_.get()) >= 0 &&
                                              std::fflush(out->file_.get()) == 0));
  if (headed) return out;
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno), path};
}

std::optional<Result<Generation>> ChunkFile::Take(int chunk) {
  const auto found = known_.find(chunk);
  if (found == known_.end()) return std::nullopt;
  std::optional<Result<Generation>> out(std::move(found->second));
  known_.erase(found);
  return out;
}

Status ChunkFile::Add(int chunk, const Result<Generation>& output) {
  const std::string line = ChunkJson(chunk, output) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
      std::fflush(file_.get()) == 0) {
    return {};
  }
  return Error{ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno), path_};
}

void ChunkFile::Remove() {
  file_.reset();
  (void)std::remove(path_.c_str());
}

// ---- The run ----

DocumentRun::DocumentRun(Extractor& extractor, std::string text, std::string source,
                         Options options, Done done)
    : extractor_(extractor),
      text_(std::move(text)),
      source_(std::move(source)),
      options_(std::move(options)),
      done_(std::move(done)),
      chunks_(ChunksOf(text_, options_.document, extractor.model())),
      output_(extractor.schema()) {
  const int tokens = options_.document.chunk_tokens > 0 ? options_.document.chunk_tokens
                                                        : extractor.model().context_length() / 2;
  longest_ =
      std::min(MaxStringFor(text_), std::max(MaxStringFor(""), kCharactersOfAToken * tokens));
}

// What makes other outputs of the same text: an earlier run with other settings is no help.
std::string DocumentRun::DigestOf() const {
  const GenerateOptions& options = extractor_.options();
  Digest digest(DigestKind::kSha256);
  digest.Add(std::to_string(options_.document.chunk_tokens) + "," +
             std::to_string(options_.document.passes) + "," + std::to_string(options.max_tokens) +
             "," + AllDigits(double{options.sampling.temperature}) + "," +
             std::to_string(options.sampling.seed) + "\n");
  const LoadedModel& model = extractor_.model();
  digest.Add(model.path() + "\n");
  if (const uint64_t key = model.AdapterKey(model.own_adapter()); key != 0) {
    digest.Add(std::to_string(key) + "\n");
  }
  for (const ExtractDefault& one : extractor_.settings()) digest.Add(one.name + one.value + "\n");
  for (const ExtractExample& one : extractor_.examples()) {
    digest.Add(json::Quote(one.text) + json::Quote(one.record) + "\n");
  }
  digest.Add(options_.settings + "\n");
  digest.Add(extractor_.schema() + "\n" + text_);
  return digest.Hex();
}

Status DocumentRun::OpenFile() {
  Result<std::unique_ptr<ChunkFile>> file =
      ChunkFile::Open(options_.chunk_file, DigestOf(), options_.resume);
  if (!file.ok()) return file.error();
  file_ = *std::move(file);
  return {};
}

// A text of one chunk needs no file: one is made when a second chunk is there.
Status DocumentRun::Keep(int number, const Result<Generation>& output) {
  if (options_.chunk_file.empty() || (number == 0 && at_end_)) return {};
  if (file_ == nullptr) {
    if (Status status = OpenFile(); !status.ok()) return status;
  }
  return file_->Add(number, output);
}

void DocumentRun::Open() {
  opened_ = true;
  if (options_.chunk_file.empty() || !os::Exists(options_.chunk_file)) return;
  if (!options_.resume) {
    (void)std::remove(options_.chunk_file.c_str());
  } else if (Status status = OpenFile(); !status.ok()) {
    End(status.error());
  }
}

bool DocumentRun::SubmitNext() {
  if (!opened_) Open();
  if (at_end_ || ended_ || slots_.size() >= options_.ahead) return false;
  const std::optional<DocumentChunk> chunk = chunks_.Next();
  if (!chunk) {
    at_end_ = true;
    if (slots_.empty()) Store(-1, Error{}, false);
    return false;
  }
  slots_[chunk->number].chunk = *chunk;
  const std::string_view text = chunk->TextOf(text_);
  std::optional<Result<Generation>> known;
  if (file_ != nullptr) known = file_->Take(chunk->number);
  if (known) {
    known_fraction_ = static_cast<double>(chunks_.DoneBehind(*chunk)) /
                      static_cast<double>(std::max<size_t>(1, chunks_.total()));
    Store(chunk->number, *std::move(known), false);
  } else if (!CheckExtractText(text).ok()) {
    // What is white space to others is no text.
    Store(chunk->number, Error{ErrorCode::kUnsatisfiable, "holds only white space", source_},
          false);
  } else {
    extractor_.Add(text, source_,
                   [self = shared_from_this(), one = *chunk](Result<Generation> output) {
                     if (output.ok()) MoveToDocument(one, *output);
                     self->Store(one.number, std::move(output), true);
                   },
                   longest_, {.begin = chunk->cut_begin, .end = chunk->cut_end});
  }
  return true;
}

void DocumentRun::Store(int number, Result<Generation> output, bool fresh) {
  if (ended_) return;
  if (number >= 0) {
    const bool kept = output.ok() || output.error().code == ErrorCode::kUnsatisfiable;
    if (fresh && kept) {
      if (Status status = Keep(number, output); !status.ok()) return End(status.error());
    }
    slots_[number].output.emplace(std::move(output));
  }
  while (!slots_.empty() && slots_.begin()->second.output) {
    Slot& next = slots_.begin()->second;
    read_ = chunks_.DoneBehind(next.chunk);
    const Status added = output_.Add(next.chunk, *std::move(next.output));
    slots_.erase(slots_.begin());
    if (!added.ok()) return End(added.error());
  }
  if (!at_end_ || !slots_.empty()) return;
  const Result<Grammar> grammar = extractor_.GrammarFor(longest_);
  if (!grammar.ok()) return End(grammar.error());
  End(output_.Take(*grammar, extractor_.schema()));
}

void DocumentRun::End(Result<Generation> output) {
  if (ended_) return;
  ended_ = true;
  // Chunks of a document that failed are needed by the run that goes on.
  if (file_ != nullptr && output.ok()) done_file_ = std::move(file_);
  done_(std::move(output));
}

void DocumentRun::RemoveFile() {
  if (done_file_ != nullptr) done_file_->Remove();
}

double DocumentRun::fraction() const {
  return static_cast<double>(read_) / static_cast<double>(std::max<size_t>(1, chunks_.total()));
}

}  // namespace pawl::cli
