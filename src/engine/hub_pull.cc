// The hub's list of a revision has the length and the checksum of every file: SHA-256 of files that
// it keeps in large storage, git's SHA-1 of all others. So nothing that a server sends is trusted:
// a file counts when its bytes have the length and the checksum of the list.
//
// Small files come first and the ref last. Until the ref is written the revision has no name here,
// and so a download that was cut is not taken for a model.
#include "src/engine/hub_pull.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/engine/hub_store.h"
#include "src/engine/model_choice.h"

namespace pawl {
namespace {

struct HubFile {
  std::string name;
  std::string etag;  // the checksum, by which the blob is named
  DigestKind kind = DigestKind::kSha256;
  uint64_t size = 0;
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;  // those that may be fetched, by name

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const HubFile& file : files) names.push_back(file.name);
    return names;
  }
  const HubFile* Find(std::string_view name) const {
    const auto found = std::ranges::find(files, name, &HubFile::name);
    return found == files.end() ? nullptr : &*found;
  }
};

bool HasEnd(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

bool MayBeFetched(std::string_view name) {
  return HasEnd(name, {".safetensors", ".gguf", ".json", ".jinja", ".txt"});
}

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

std::string TextOf(const json::Value* value) {
  return value != nullptr && value->type == json::Type::kString ? value->text : "";
}

std::optional<uint64_t> SizeOf(const json::Value* value) {
  if (value == nullptr || value->type != json::Type::kNumber || value->text.size() > 15 ||
      !std::ranges::all_of(value->text, IsDigit)) {
    return std::nullopt;
  }
  return std::stoull(value->text);
}

Result<HubListing> ReadListing(std::string_view text) {
  json::ParseLimits limits;
  limits.max_values = 4'000'000;
  const Result<json::Value> value = json::Parse(text, limits);
  if (!value.ok()) return InFile("the hub's list", value.error());
  HubListing listing;
  listing.commit = TextOf(value->Find("sha"));
  const json::Value* siblings = value->Find("siblings");
  if (!IsCommit(listing.commit) || siblings == nullptr || siblings->type != json::Type::kArray) {
    return Error{ErrorCode::kInvalid, "must have a commit and files: \"sha\", \"siblings\"",
                 "the hub's list"};
  }
  for (const json::Value& item : siblings->items) {
    HubFile file;
    file.name = TextOf(item.Find("rfilename"));
    if (!IsPlainName(file.name)) {
      return Error{ErrorCode::kInvalid,
                   "has the file " + json::Quote(file.name.substr(0, 200)) +
                       ", whose name leads out of its folder or has bytes that are not taken",
                   "the hub's list"};
    }
    if (!MayBeFetched(file.name)) continue;
    const json::Value* large = item.Find("lfs");
    const bool is_large = large != nullptr && large->type == json::Type::kObject;
    const std::optional<uint64_t> size = SizeOf((is_large ? *large : item).Find("size"));
    file.kind = is_large ? DigestKind::kSha256 : DigestKind::kSha1;
    file.etag = TextOf(is_large ? large->Find("sha256") : item.Find("blobId"));
    if (!size || !IsHex(file.etag, is_large ? 64 : 40)) {
      return Error{ErrorCode::kInvalid, "has no length or checksum of " + file.name,
                   "the hub's list"};
    }
    file.size = *size;
    listing.files.push_back(std::move(file));
  }
  return listing;
}

// The files of a folder of safetensors files, without the weights.
std::vector<HubFile> FolderFiles(const HubListing& listing) {
  std::vector<HubFile> files;
  for (const HubFile& file : listing.files) {
    const bool top = file.name.find('/') == std::string::npos;
    const bool templates = file.name.starts_with("additional_chat_templates/");
    const bool foreign = file.name.ends_with(".index.json") && file.name != kShardIndex;
    if ((top || templates) && !foreign && HasEnd(file.name, {".json", ".jinja", ".txt"})) {
      files.push_back(file);
    }
  }
  return files;
}

std::string Mebibytes(uint64_t bytes) {
  const uint64_t tenths = (bytes * 10 + (1 << 19)) >> 20;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

class Pull {
 public:
  Pull(const ModelName& name, const HubClient& client, const PullOptions& options)
      : name_(name), client_(client), options_(options) {
    if (!options_.pause) options_.pause = [](auto time) { std::this_thread::sleep_for(time); };
  }
  Status Run();

 private:
  Status Fetch(const HubFile& file);
  Status FetchAll(const std::vector<HubFile>& files);
  Status Transfer(const HubFile& file, PartFile& part);
  // One request. nullopt: it may be made again. Otherwise the transfer is done, or has failed.
  std::optional<Status> Try(const HubFile& file, PartFile& part);
  Status CheckAnswer(const HubAnswer& answer, const HubFile& file, PartFile& part);
  Status CheckSum(const HubFile& file, PartFile& part);
  void Report(const HubFile& file, uint64_t done) const {
    if (!options_.progress) return;
    options_.progress({file.name, done, file.size, all_done_ + done, all_size_});
  }
  void Note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }

  const ModelName& name_;
  const HubClient& client_;
  PullOptions options_;
  std::optional<HubRepo> repo_;
  HubListing listing_;
  uint64_t all_done_ = 0, all_size_ = 0;
  Error last_;  // why the last request did not bring all
};

Status Pull::Run() {
  const std::string revision = name_.revision.empty() ? "main" : name_.revision;
  const std::string& endpoint = client_.settings().endpoint;
  const Result<std::string> list =
      client_.GetText(endpoint + "/api/models/" + name_.repo + "/revision/" +
                          UrlEncoded(revision, false) + "?blobs=true",
                      options_.pause);
  if (!list.ok()) return list.error();
  Result<HubListing> listing = ReadListing(*list);
  if (!listing.ok()) return listing.error();
  listing_ = *std::move(listing);
  const Result<ModelChoice> choice = ChooseModel(listing_.Names(), name_.wanted);
  if (!choice.ok()) return choice.error();
  Result<HubRepo> repo = HubRepo::Open(client_.settings().cache, name_.repo);
  if (!repo.ok()) return repo.error();
  repo_ = *std::move(repo);
  std::vector<std::string> weights = choice->gguf;
  if (weights.empty()) {
    if (Status status = FetchAll(FolderFiles(listing_)); !status.ok()) return status;
    weights = {kOneShard};
    if (const HubFile* index = listing_.Find(kShardIndex);
        index != nullptr && listing_.Find(kOneShard) == nullptr) {
      const Result<std::string> text = ReadRegularFile(repo_->BlobPath(index->etag));
      if (!text.ok()) return text.error();
      Result<std::vector<std::string>> shards = ShardsOfIndex(*text);
      if (!shards.ok()) return InFile(kShardIndex, shards.error());
      weights = *std::move(shards);
    }
  }
  std::vector<HubFile> files;
  for (const std::string& file : weights) {
    const HubFile* listed = listing_.Find(file);
    if (listed == nullptr) {
      return Error{ErrorCode::kInvalid, "is named by the index, and the hub does not have it",
                   file};
    }
    files.push_back(*listed);
  }
  if (Status status = FetchAll(files); !status.ok()) return status;
  return IsCommit(revision) ? Status() : repo_->SetRef(revision, listing_.commit);
}

Status Pull::FetchAll(const std::vector<HubFile>& files) {
  all_done_ = all_size_ = 0;
  uint64_t missing = 0;
  for (const HubFile& file : files) {
    all_size_ += file.size;
    if (repo_->HasBlob(file.etag, file.size)) continue;
    const uint64_t there = repo_->PartBytes(file.etag);
    missing += there <= file.size ? file.size - there : file.size;
  }
  if (const uint64_t free = repo_->FreeBytes(); missing > free) {
    return Error{
        ErrorCode::kIo,
        "the disk has " + Mebibytes(free) + " left, and the model needs " + Mebibytes(missing),
        repo_->folder()};
  }
  for (const HubFile& file : files) {
    if (Status status = Fetch(file); !status.ok()) return InFile(file.name, status.error());
    all_done_ += file.size;
  }
  return {};
}

Status Pull::Fetch(const HubFile& file) {
  const Result<HubLock> lock =
      repo_->Lock(file.etag, [&] { Note("waits for another process that fetches " + file.name); });
  if (!lock.ok()) return lock.error();
  if (!repo_->HasBlob(file.etag, file.size)) {
    // Git's checksum is that of the bytes behind their length.
    const std::string length = "blob " + std::to_string(file.size) + std::string(1, '\0');
    Result<PartFile> part = PartFile::Open(repo_->PartPath(file.etag), file.kind,
                                           file.kind == DigestKind::kSha1 ? length : "");
    if (!part.ok()) return part.error();
    if (Status status = Transfer(file, *part); !status.ok()) return status;
  }
  Report(file, file.size);
  return repo_->Link(listing_.commit, file.name, file.etag);
}

Status Pull::Transfer(const HubFile& file, PartFile& part) {
  if (part.size() > file.size) {
    if (Status status = part.Restart(); !status.ok()) return status;
  }
  if (part.size() > 0) {
    Note("goes on with " + file.name + " at " + Mebibytes(part.size()) + " of " +
         Mebibytes(file.size));
  }
  HubTries tries(options_.pause);
  while (part.size() < file.size) {
    const uint64_t before = part.size();
    if (const std::optional<Status> end = Try(file, part)) {
      if (!end->ok()) return *end;
      break;
    }
    if (!tries.Again(part.size() > before)) return last_;
  }
  if (Status status = CheckSum(file, part); !status.ok()) {
    part.Discard();
    return status;
  }
  return part.Finish(repo_->BlobPath(file.etag));
}

std::optional<Status> Pull::Try(const HubFile& file, PartFile& part) {
  Status wrong;
  bool again = false, accepted = false;
  const HubReceiver receiver{[&](const HubAnswer& answer) {
                               again = IsPassing(answer.status) || answer.status == 416;
                               if (again) {
                                 last_ = ErrorOfStatus(answer, client_.has_token());
                                 // The hub has fewer bytes than are here.
                                 if (answer.status == 416) wrong = part.Restart();
                                 return false;
                               }
                               wrong = CheckAnswer(answer, file, part);
                               return accepted = wrong.ok();
                             },
                             [&](std::string_view bytes) {
                               if (bytes.size() > file.size - part.size()) {
                                 wrong =
                                     Error{ErrorCode::kInvalid,
                                           "the hub sends more than the " +
                                               std::to_string(file.size) + " bytes that it lists",
                                           ""};
                                 part.Discard();
                                 return false;
                               }
                               wrong = part.Append(bytes);
                               Report(file, part.size());
                               return wrong.ok();
                             }};
  const std::string url = client_.settings().endpoint + "/" + name_.repo + "/resolve/" +
                          listing_.commit + "/" + UrlEncoded(file.name, true);
  Status status = client_.Get(url, part.size(), receiver);
  if (!wrong.ok()) return wrong;
  if (again) return std::nullopt;
  if (accepted && part.size() == file.size) return Status();
  if (!status.ok() && status.error().code != ErrorCode::kIo) return status;
  last_ = Error{ErrorCode::kIo,
                "the connection was cut at " + std::to_string(part.size()) + " of " +
                    std::to_string(file.size) + " bytes" +
                    (status.ok() ? "" : ": " + status.error().message),
                ""};
  return std::nullopt;
}

Status Pull::CheckAnswer(const HubAnswer& answer, const HubFile& file, PartFile& part) {
  if (answer.status != 200 && answer.status != 206) {
    return ErrorOfStatus(answer, client_.has_token());
  }
  // A server that knows no ranges sends all of it.
  if (answer.status == 200 && part.size() > 0) {
    if (Status status = part.Restart(); !status.ok()) return status;
  }
  if (answer.status == 206) {
    const std::string range = answer.Header("Content-Range");
    const std::string expected = "bytes " + std::to_string(part.size()) + "-" +
                                 std::to_string(file.size - 1) + "/" + std::to_string(file.size);
    if (range != expected) {
      return Error{
          ErrorCode::kInvalid,
          "the hub sends \"" + range.substr(0, 100) + "\" where \"" + expected + "\" was asked for",
          ""};
    }
  }
  const std::string length = answer.Header("Content-Length");
  const std::string expected = std::to_string(file.size - part.size());
  if (!length.empty() && length != expected) {
    return Error{
        ErrorCode::kInvalid,
        "the hub sends " + length.substr(0, 20) + " bytes where its list leaves " + expected, ""};
  }
  return {};
}

Status Pull::CheckSum(const HubFile& file, PartFile& part) {
  const std::string sum = part.Hex();
  if (sum == file.etag) return {};
  return Error{ErrorCode::kInvalid,
               "what was fetched has the checksum " + sum + ", and the hub lists " + file.etag +
                   "; it is removed",
               ""};
}

}  // namespace

Result<std::string> PullModel(const std::string& name, const HubClient& client,
                              const PullOptions& options) {
  const Result<ModelName> parsed = ParseHubName(name);
  if (!parsed.ok()) return InFile(name, parsed.error());
  if (client.settings().offline) {
    return Error{ErrorCode::kIo, "HF_HUB_OFFLINE forbids requests", name};
  }
  if (Status status = Pull(*parsed, client, options).Run(); !status.ok()) {
    return InFile(name, status.error());
  }
  ModelPaths paths;
  paths.hub = {client.settings().cache};
  return ResolveModel(name, paths);
}

}  // namespace pawl
