// A document on its way to its record, for `pawl extract --document`: chunks are handed in one by
// one, and those that an earlier run has written are taken from its file.
//
//   auto run = std::make_shared<DocumentRun>(extractor, text, "--text", options, done);
//   while (engine.running() < most && run->SubmitNext()) {
//   }
#ifndef PAWL_SRC_CLI_DOCUMENT_RUN_H_
#define PAWL_SRC_CLI_DOCUMENT_RUN_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/cli/extractor.h"
#include "src/engine/document.h"

namespace pawl::cli {

// --document, --chunk-tokens and --passes.
struct DocumentFlags {
  bool document = false;
  DocumentOptions options;

  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check(const ExtractFlags& extract) const;
  Status CheckFor(const LoadedModel& model) const;
};

// Where the chunks of a document that is being read are kept: a line of JSON for each. A run that
// ends early leaves the file, and one that comes to its end removes it.
class ChunkFile {
 public:
  // `digest`: of the document and of what is asked about it. `resume`: what the file has of this
  // document is known; what was cut off in the middle is gone. Errors: kIo.
  static Result<std::unique_ptr<ChunkFile>> Open(const std::string& path, const std::string& digest,
                                                 bool resume);
  // What an earlier run has made of the chunk; nullopt: nothing. The caller takes it.
  std::optional<Result<Generation>> Take(int chunk);
  size_t known() const { return known_.size(); }
  // Errors: kIo.
  Status Add(int chunk, const Result<Generation>& output);
  void Remove();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  ChunkFile() = default;
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::map<int, Result<Generation>> known_;
};

class DocumentRun : public std::enable_shared_from_this<DocumentRun> {
 public:
  struct Options {
    DocumentOptions document;
    std::string chunk_file;  // empty: none
    bool resume = false;
    std::string settings;  // what else chunks depend on, as text
    size_t ahead = 16;     // chunks that have begun
  };
  using Done = std::function<void(Result<Generation> output)>;

  // `source`: how errors call the text. The extractor outlives this.
  DocumentRun(Extractor& extractor, std::string text, std::string source, Options options,
              Done done);
  // Hands the next chunk in. false: there is none now, or at all.
  bool SubmitNext();
  // Once the record is written: nothing of the document is needed any more.
  void RemoveFile();
  // Of the text that is read, 0 to 1.
  double fraction() const;
  // Of it, what an earlier run had read.
  double known_fraction() const { return known_fraction_; }

 private:
  struct Slot {
    DocumentChunk chunk;
    std::optional<Result<Generation>> output;
  };
  std::string DigestOf() const;
  Status OpenFile();
  Status Keep(int number, const Result<Generation>& output);
  void Open();
  void Store(int number, Result<Generation> output, bool fresh);
  void End(Result<Generation> output);

  Extractor& extractor_;
  const std::string text_, source_;
  const Options options_;
  Done done_;
  std::unique_ptr<ChunkFile> file_, done_file_;
  bool opened_ = false;
  int64_t longest_ = 0;
  DocumentChunks chunks_;
  DocumentOutput output_;
  std::map<int, Slot> slots_;  // that have begun and are not merged
  size_t read_ = 0;            // bytes, of all passes
  double known_fraction_ = 0;
  bool at_end_ = false, ended_ = false;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DOCUMENT_RUN_H_
