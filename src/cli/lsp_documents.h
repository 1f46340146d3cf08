// The documents that an editor has open, as it shows them.
//
//   LspDocuments documents;
//   documents.Open("file:///a.ts", "typescript", text);
//   documents.Change("file:///a.ts", version, changes, &problem);   // of didChange
//   documents.Find("file:///a.ts")->text
//
// There is room for 256 documents and 256 MiB of text: the one that was used longest ago goes.
#ifndef PAWL_SRC_CLI_LSP_DOCUMENTS_H_
#define PAWL_SRC_CLI_LSP_DOCUMENTS_H_
#ifdef PAWL_HAVE_MONITORS

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "plugins/monitors/syntax.h"
#include "src/cli/lsp_wire.h"
#include "src/completion/editor_text.h"

namespace pawl::cli {

// file:///a%20b.ts -> /a b.ts; another scheme's names are left.
std::string PathOfUri(const std::string& uri);

struct LspDocument {
  std::string text;
  std::string language;
  uint64_t used = 0;               // the latest has the greatest
  std::optional<int64_t> version;  // that the client gave it last
  std::string lost;                // why it is not what the editor shows; empty: it is
};

class LspDocuments {
 public:
  static constexpr size_t kMostDocuments = 256;
  static constexpr size_t kMostBytes = size_t{256} << 20, kMostOfOne = size_t{64} << 20;

  void SetUnit(completion::ColumnUnit unit) { unit_ = unit; }
  completion::ColumnUnit unit() const { return unit_; }
  void Open(const std::string& uri, std::string language, std::string text,
            std::optional<int64_t> version = {});
  void Close(const std::string& uri);
  // nullptr: none is open. It counts as used.
  LspDocument* Find(const std::string& uri);
  // Each change in its turn, or none of them. A problem: the text stays as it was, and what the
  // editor shows is not known until it sends a whole text. An older version is not applied.
  void Change(const std::string& uri, const LspJson& version, const LspJson& changes,
              std::string* problem);

  // nullopt, with the problem: it is no position.
  std::optional<size_t> Byte(const std::string& text, const LspJson& position, const char* name,
                             std::string* problem) const;
  // The bytes of a range. Where its end stands before its start, they are exchanged.
  std::optional<std::pair<size_t, size_t>> Bytes(const std::string& text, const LspJson& range,
                                                 std::string* problem) const;
  LspJson Range(const std::string& text, size_t from, size_t to) const;

 private:
  void MakeRoom(const std::string& kept);
  void Apply(std::string& text, const LspJson& change, bool lost, std::string* problem) const;
  std::map<std::string, LspDocument> documents_;
  size_t bytes_ = 0;
  uint64_t uses_ = 0;
  completion::ColumnUnit unit_ = completion::ColumnUnit::kUtf16;
};

// What the client calls it, else by the ending of its name.
std::optional<monitors::Language> LanguageOf(const LspDocument& document, const std::string& uri);

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
#endif  // PAWL_SRC_CLI_LSP_DOCUMENTS_H_
