// Pulling from a hub in memory, whose answers the tests spoil one by one. tests/python/test_hub.py
// does the same over connections.
#include "src/engine/hub_pull.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/engine/hub_store.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

const std::string kSha(40, 'c');

struct StoredFile {
  std::string content;
  bool large = false;
};

std::string EtagOf(const StoredFile& file) {
  Digest digest(file.large ? DigestKind::kSha256 : DigestKind::kSha1);
  if (!file.large) {
    digest.Add("blob " + std::to_string(file.content.size()) + std::string(1, '\0'));
  }
  digest.Add(file.content);
  return digest.Hex();
}

// A hub at http://hub.test with its storage at http://store.test.
class HubPullTest : public testing::Test {
 protected:
  void SetUp() override {
    cache_ = testing::TempDir() + "hub-" + std::to_string(::getpid());
    fs::remove_all(cache_);
    files_["config.json"] = {"{}", false};
    files_["tokenizer.json"] = {"{\"a\":1}", false};
    files_["README.md"] = {"read", false};
    files_["model.safetensors"] = {std::string(3000, 'w'), true};
  }
  void TearDown() override { fs::remove_all(cache_); }

  std::string Listing() const {
    std::string list;
    for (const auto& [name, file] : files_) {
      const std::string size = std::to_string(file.content.size());
      list +=
          (list.empty() ? "" : ",") + ("{\"rfilename\":" + json::Quote(name)) + ",\"size\":" + size;
      list += file.large ? R"(,"lfs":{"sha256":")" + EtagOf(file) + R"(","size":)" + size + "}}"
                         : R"(,"blobId":")" + EtagOf(file) + "\"}";
    }
    return R"({"sha":")" + kSha + R"(","siblings":[)" + list + "]}";
  }
  // What the hub does with a request for a file, unless the test does it.
  Status Serve(const HubRequest& request, const HubReceiver& receiver) {
    requests_.push_back(request);
    if (spoil_ && spoil_(request, receiver)) return spoiled_;
    const std::string api = "http://hub.test/api/models/org/name/revision/";
    if (request.url.starts_with(api)) {
      const std::string text = listing_.empty() ? Listing() : listing_;
      if (receiver.head({200, {{"content-length", std::to_string(text.size())}}})) {
        receiver.body(text);
      }
      return {};
    }
    const std::string base = "http://hub.test/org/name/resolve/" + kSha + "/";
    const std::string store = "http://store.test/";
    const bool stored = request.url.starts_with(store);
    if (!stored && !request.url.starts_with(base)) {
      receiver.head({404, {}});
      return {};
    }
    const auto file = files_.find(request.url.substr(stored ? store.size() : base.size()));
    if (file == files_.end()) {
      receiver.head({404, {}});
    } else if (file->second.large && !stored) {
      receiver.head({302, {{"Location", store + file->first}}});
    } else {
      return Send(request, receiver, file->second.content, SIZE_MAX);
    }
    return {};
  }
  // At most `most` bytes; fewer than all are a connection that was cut.
  static Status Send(const HubRequest& request, const HubReceiver& receiver,
                     std::string_view content, size_t most) {
    size_t from = 0;
    for (const auto& [name, value] : request.headers) {
      if (name == "Range") from = std::stoul(value.substr(6));
    }
    const std::string size = std::to_string(content.size());
    if (from > content.size()) {
      receiver.head({416, {}});
      return {};
    }
    HubAnswer answer{from > 0 ? 206 : 200, {}};
    answer.headers.emplace_back("Content-Length", std::to_string(content.size() - from));
    if (from > 0) {
      answer.headers.emplace_back(
          "Content-Range",
          "bytes " + std::to_string(from) + "-" + std::to_string(content.size() - 1) + "/" + size);
    }
    if (!receiver.head(answer)) return {};
    const std::string_view sent = content.substr(from, most);
    for (size_t i = 0; i < sent.size(); i += 100) {
      if (!receiver.body(sent.substr(i, 100))) return {};
    }
    if (from + sent.size() < content.size()) return Error{ErrorCode::kIo, "reset by peer", ""};
    return {};
  }
  Result<std::string> Pull(const std::string& name = "org/name") {
    HubSettings settings{"http://hub.test", token_, cache_, false};
    const HubClient client(settings, [this](const auto& request, const auto& receiver) {
      return Serve(request, receiver);
    });
    PullOptions options;
    options.pause = [this](auto) { ++pauses_; };
    options.note = [this](const std::string& text) { notes_.push_back(text); };
    options.progress = [this](const PullProgress& now) {
      EXPECT_LE(now.done, now.size);
      EXPECT_LE(now.all_done, now.all_size);
      last_ = now;
    };
    return PullModel(name, client, options);
  }
  void Fails(ErrorCode code, const std::vector<std::string>& parts,
             const std::string& name = "org/name") {
    const Result<std::string> path = Pull(name);
    ASSERT_FALSE(path.ok()) << *path;
    EXPECT_EQ(path.error().code, code) << path.error().ToString();
    for (const std::string& part : parts) {
      EXPECT_NE(path.error().ToString().find(part), std::string::npos)
          << part << " is not in " << path.error().ToString();
    }
    // No name leads to what is not whole.
    ModelPaths paths;
    paths.hub = {cache_};
    EXPECT_FALSE(ResolveModel(name, paths).ok());
  }
  // Answers requests whose URL ends so with `serve`, `times` times.
  void SpoilFile(const std::string& end, int times,
                 std::function<Status(const HubRequest&, const HubReceiver&)> serve) {
    spoil_ = [this, end, times, serve](const HubRequest& request,
                                       const HubReceiver& receiver) mutable {
      if (!request.url.ends_with(end) || times == 0) return false;
      --times;
      spoiled_ = serve(request, receiver);
      return true;
    };
  }
  std::string Folder() const { return cache_ + "/models--org--name"; }
  std::string Snapshot() const { return Folder() + "/snapshots/" + kSha; }
  std::string Weights() const { return files_.at("model.safetensors").content; }
  std::string StoreUrl() const { return "http://store.test/model.safetensors"; }

  std::string cache_, token_, listing_;
  std::map<std::string, StoredFile> files_;
  std::vector<HubRequest> requests_;
  std::vector<std::string> notes_;
  std::function<bool(const HubRequest&, const HubReceiver&)> spoil_;
  Status spoiled_;
  PullProgress last_;
  int pauses_ = 0;
};

TEST_F(HubPullTest, Layout) {
  const Result<std::string> path = Pull();
  ASSERT_TRUE(path.ok()) << path.error().ToString();
  EXPECT_EQ(*path, Snapshot());
  EXPECT_EQ(*ReadFile(Folder() + "/refs/main"), kSha);
  const std::string etag = EtagOf(files_["model.safetensors"]);
  EXPECT_EQ(fs::read_symlink(Snapshot() + "/model.safetensors").string(), "../../blobs/" + etag);
  EXPECT_EQ(*ReadFile(Folder() + "/blobs/" + etag), Weights());
  EXPECT_TRUE(fs::exists(cache_ + "/.locks/models--org--name/" + etag + ".lock"));
  EXPECT_FALSE(fs::exists(Snapshot() + "/README.md"));
  EXPECT_EQ(last_.file, "model.safetensors");
  EXPECT_EQ(last_.all_done, Weights().size());
  for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
    EXPECT_EQ(entry.path().string().find(".incomplete"), std::string::npos) << entry.path();
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
  const size_t before = requests_.size();
  ASSERT_TRUE(Pull().ok());
  EXPECT_EQ(requests_.size(), before + 1);  // the list alone
}

TEST_F(HubPullTest, RevisionsAndFiles) {
  files_ = {{"a-Q8_0.gguf", {"eight", true}},
            {"a-Q4_K_M.gguf", {"four", true}},
            {"b/c-F16-00001-of-00002.gguf", {"one", true}},
            {"b/c-F16-00002-of-00002.gguf", {"two", true}}};
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(fs::exists(Snapshot() + "/a-Q4_K_M.gguf"));
  EXPECT_FALSE(fs::exists(Snapshot() + "/a-Q8_0.gguf"));
  const Result<std::string> split = Pull("org/name@refs/pr/1:F16");
  ASSERT_TRUE(split.ok()) << split.error().ToString();
  EXPECT_EQ(*split, Snapshot() + "/b/c-F16-00001-of-00002.gguf");
  EXPECT_EQ(*ReadFile(Snapshot() + "/b/c-F16-00002-of-00002.gguf"), "two");
  EXPECT_EQ(*ReadFile(Folder() + "/refs/refs/pr/1"), kSha);
  EXPECT_TRUE(std::ranges::any_of(requests_, [](const HubRequest& request) {
    return request.url.ends_with("/revision/refs%2Fpr%2F1?blobs=true");
  }));
  ASSERT_TRUE(Pull("org/name@" + kSha + ":Q8_0").ok());
  EXPECT_FALSE(fs::exists(Folder() + "/refs/" + kSha));
  Fails(ErrorCode::kIo, {"has no file of type Q2_K; it has a-Q4_K_M.gguf"}, "org/name:Q2_K");
  Fails(ErrorCode::kInvalid, {"is no name of a model"}, "org/../name");
}

TEST_F(HubPullTest, ShardsOfTheIndex) {
  files_.erase("model.safetensors");
  files_["a.safetensors"] = {"one", true};
  files_["b.safetensors"] = {"two", true};
  files_["unused.safetensors"] = {"three", true};
  files_["model.safetensors.index.json"] = {
      R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})", false};
  ASSERT_TRUE(Pull().ok());
  EXPECT_EQ(*ReadFile(Snapshot() + "/b.safetensors"), "two");
  EXPECT_FALSE(fs::exists(Snapshot() + "/unused.safetensors"));
  files_.erase("b.safetensors");
  fs::remove_all(cache_);
  Fails(ErrorCode::kInvalid, {"b.safetensors: is named by the index"});
}

TEST_F(HubPullTest, CutFiveTimes) {
  SpoilFile(StoreUrl().substr(7), 5, [this](const auto& request, const auto& receiver) {
    return Send(request, receiver, Weights(), 500);
  });
  const Result<std::string> path = Pull();
  ASSERT_TRUE(path.ok()) << path.error().ToString();
  EXPECT_EQ(pauses_, 0);
  EXPECT_EQ(*ReadFile(Snapshot() + "/model.safetensors"), Weights());
  std::vector<std::string> ranges;
  for (const HubRequest& request : requests_) {
    for (const auto& [name, value] : request.headers) {
      if (name == "Range" && request.url == StoreUrl()) ranges.push_back(value);
    }
  }
  EXPECT_EQ(ranges, (std::vector<std::string>{"bytes=500-", "bytes=1000-", "bytes=1500-",
                                              "bytes=2000-", "bytes=2500-"}));
}

TEST_F(HubPullTest, CutForEverAndResumed) {
  SpoilFile(StoreUrl().substr(7), 100, [this](const auto& request, const auto& receiver) {
    const bool first = std::ranges::none_of(
        request.headers, [](const auto& header) { return header.first == "Range"; });
    return Send(request, receiver, Weights(), first ? 700 : 0);
  });
  Fails(ErrorCode::kIo, {"org/name: model.safetensors: the connection was cut at 700 of 3000 bytes",
                         "reset by peer"});
  EXPECT_EQ(pauses_, 4);
  const std::string part =
      Folder() + "/blobs/" + EtagOf(files_["model.safetensors"]) + ".incomplete";
  EXPECT_EQ(fs::file_size(part), 700u);
  EXPECT_FALSE(fs::exists(Folder() + "/refs/main"));
  spoil_ = nullptr;
  requests_.clear();
  ASSERT_TRUE(Pull().ok());
  EXPECT_EQ(notes_,
            std::vector<std::string>{"goes on with model.safetensors at 0.0 MiB of 0.0 MiB"});
  EXPECT_EQ(requests_.back().headers.back().second, "bytes=700-");
  EXPECT_FALSE(fs::exists(part));
}

// What an earlier download left may be wrong: the checksum covers it too.
TEST_F(HubPullTest, WrongPartsAreFound) {
  const std::string part =
      Folder() + "/blobs/" + EtagOf(files_["model.safetensors"]) + ".incomplete";
  fs::create_directories(fs::path(part).parent_path());
  ASSERT_TRUE(WriteFile(part, std::string(1000, 'x')).ok());
  Fails(ErrorCode::kInvalid, {"has the checksum ", "it is removed"});
  EXPECT_FALSE(fs::exists(part));
  ASSERT_TRUE(WriteFile(part, std::string(5000, 'x')).ok());
  ASSERT_TRUE(Pull().ok());
}

TEST_F(HubPullTest, ServersWithoutRanges) {
  SpoilFile(StoreUrl().substr(7), 2,
            [this, n = 0](const auto& request, const auto& receiver) mutable {
              HubRequest whole = request;
              whole.headers.clear();
              return Send(whole, receiver, Weights(), ++n == 1 ? 500 : SIZE_MAX);
            });
  ASSERT_TRUE(Pull().ok());
}

TEST_F(HubPullTest, WrongChecksums) {
  SpoilFile(StoreUrl().substr(7), 1, [this](const auto& request, const auto& receiver) {
    return Send(request, receiver, std::string(Weights().size(), 'x'), SIZE_MAX);
  });
  Fails(ErrorCode::kInvalid, {"model.safetensors: what was fetched has the checksum "});
  ASSERT_TRUE(Pull().ok());
  fs::remove_all(cache_);
  SpoilFile("/config.json", 1, [](const auto& request, const auto& receiver) {
    return Send(request, receiver, "[]", SIZE_MAX);
  });
  Fails(ErrorCode::kInvalid, {"config.json: what was fetched has the checksum "});
}

TEST_F(HubPullTest, WrongLengths) {
  for (const size_t length : {2999u, 3001u}) {
    SpoilFile(StoreUrl().substr(7), 1, [&](const auto& request, const auto& receiver) {
      return Send(request, receiver, std::string(length, 'w'), SIZE_MAX);
    });
    Fails(ErrorCode::kInvalid,
          {"the hub sends " + std::to_string(length) + " bytes where its list leaves 3000"});
  }
  // Without a length the bytes are counted.
  SpoilFile(StoreUrl().substr(7), 1, [](const auto&, const auto& receiver) -> Status {
    receiver.head({200, {}});
    while (receiver.body(std::string(999, 'w'))) {
    }
    return {};
  });
  Fails(ErrorCode::kInvalid, {"sends more than the 3000 bytes"});
  SpoilFile(StoreUrl().substr(7), 1, [](const auto&, const auto& receiver) -> Status {
    receiver.head({206, {{"Content-Range", "bytes 0-9/10"}}});
    return {};
  });
  Fails(ErrorCode::kInvalid, {"bytes 0-9/10"});
}

TEST_F(HubPullTest, StatusesOfTheHub) {
  const auto answers = [this](int status, int times) {
    SpoilFile("?blobs=true", times, [status](const auto&, const auto& receiver) -> Status {
      receiver.head({status, {{"x-error-message", "Because\x1b[2J."}}});
      return {};
    });
  };
  answers(401, 1);
  Fails(ErrorCode::kIo, {"asks for a token", "HF_TOKEN", "(status 401: Because[2J.)"});
  token_ = "hf_x";
  answers(401, 1);
  Fails(ErrorCode::kIo, {"does not accept the token"});
  answers(403, 1);
  Fails(ErrorCode::kIo, {"refuses access (status 403"});
  answers(404, 1);
  Fails(ErrorCode::kIo, {"no such repository, revision or file"});
  EXPECT_EQ(pauses_, 0);
  answers(503, 100);
  Fails(ErrorCode::kIo, {"status 503"});
  EXPECT_EQ(pauses_, 4);
  answers(503, 2);
  EXPECT_TRUE(Pull().ok());
}

TEST_F(HubPullTest, TheTokenStaysWithTheHub) {
  token_ = "hf_secret";
  ASSERT_TRUE(Pull().ok());
  size_t with = 0, stored = 0;
  for (const HubRequest& request : requests_) {
    const bool sent = std::ranges::any_of(request.headers, [](const auto& header) {
      return header.second.find("hf_secret") != std::string::npos;
    });
    EXPECT_EQ(sent, request.url.starts_with("http://hub.test/")) << request.url;
    with += sent;
    stored += request.url == StoreUrl();
  }
  EXPECT_EQ(with, 4u);
  EXPECT_EQ(stored, 1u);
}

TEST_F(HubPullTest, RedirectsThatAreNotFollowed) {
  const auto to = [this](const std::string& location) {
    spoil_ = [location](const HubRequest&, const HubReceiver& receiver) {
      receiver.head({302, {{"Location", location}}});
      return true;
    };
  };
  for (const char* location : {"file:///etc/passwd", "http://user@store.test/x", "ftp://a/b",
                               "http://a/\"b", "http:///x", "http://a b/"}) {
    to(location);
    Fails(ErrorCode::kInvalid, {"redirects to a place that is not followed: "});
  }
  to("/again");
  Fails(ErrorCode::kInvalid, {"redirects more than 10 times"});
}

TEST_F(HubPullTest, ListsThatAreNotTaken) {
  listing_ = "{";
  Fails(ErrorCode::kInvalid, {"the hub's list: 1:"});
  listing_ = R"({"sha":"../..","siblings":[]})";
  Fails(ErrorCode::kInvalid, {"must have a commit and files"});
  for (const char* name : {"../config.json", "/etc/config.json", "a/../b.json", "a\\\\b.json",
                           "a//b.json", "a\\nb.json", ""}) {
    listing_ = R"({"sha":")" + kSha + R"(","siblings":[{"rfilename":")" + name + "\"}]}";
    Fails(ErrorCode::kInvalid, {"whose name leads out of its folder"});
  }
  for (const char* rest :
       {R"("size":2)", R"("size":2,"blobId":"../../x")", R"("size":-2,"blobId":"a")",
        R"("size":2,"lfs":{"sha256":"ab","size":2})"}) {
    listing_ = R"({"sha":")" + kSha + R"(","siblings":[{"rfilename":"config.json",)" + rest + "}]}";
    Fails(ErrorCode::kInvalid, {"has no length or checksum of config.json"});
  }
  listing_ = R"({"sha":")" + kSha + R"(","siblings":[]})";
  Fails(ErrorCode::kIo, {"has neither a GGUF file nor model.safetensors"});
}

TEST_F(HubPullTest, DisksThatAreTooSmall) {
  std::string list = Listing();
  const std::string size = "\"size\":3000}";
  list.replace(list.find(size), size.size(), "\"size\":900000000000000}");
  listing_ = list;
  Fails(ErrorCode::kIo, {Folder() + ": the disk has ", "the model needs 858306884.8 MiB"});
}

TEST_F(HubPullTest, OfflineAsksNothing) {
  const HubClient client({"http://hub.test", "", cache_, true}, nullptr);
  const Result<std::string> path = PullModel("org/name", client, {});
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().ToString(), "org/name: HF_HUB_OFFLINE forbids requests");
}

TEST_F(HubPullTest, LocksWaitForOtherProcesses) {
  const Result<HubRepo> repo = HubRepo::Open(cache_, "org/name");
  ASSERT_TRUE(repo.ok());
  const std::string path = cache_ + "/.locks/models--org--name/etag.lock";
  for (const bool removes : {false, true}) {
    Result<HubLock> first = repo->Lock("etag", [] { ADD_FAILURE() << "no one holds it"; });
    ASSERT_TRUE(first.ok());
    int waits = 0;
    const Result<HubLock> second = repo->Lock("etag", [&] {
      ++waits;
      // The other process ends, and some programs remove the file.
      if (removes) fs::remove(path);
      first = HubLock();
    });
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(waits, 1);
    EXPECT_TRUE(fs::exists(path));
  }
}

TEST(HubUrlTest, Parts) {
  const auto text = [](std::string_view url) {
    const std::optional<HubUrl> parsed = ParseUrl(url);
    return parsed ? parsed->Text() : "none";
  };
  EXPECT_EQ(text("HTTPS://Hub.Test:443/A?b"), "https://hub.test/A?b");
  EXPECT_EQ(text("http://[::1]:8080"), "http://[::1]:8080");
  EXPECT_EQ(text("http://a:b/"), "none");
  EXPECT_EQ(text("https://hub.test@evil.test/"), "none");
  EXPECT_EQ(text("https://a/\xC3\xA9"), "none");
  EXPECT_FALSE(ParseUrl("http://a")->SameOrigin(*ParseUrl("https://a")));
  EXPECT_FALSE(ParseUrl("http://a")->SameOrigin(*ParseUrl("http://a:81")));
  EXPECT_EQ(UrlEncoded("a b/\xC3\xA9?", true), "a%20b/%C3%A9%3F");
}

TEST(HubSettingsTest, Variables) {
  const std::string folder = testing::TempDir() + "token-" + std::to_string(::getpid());
  fs::create_directories(folder);
  std::map<std::string, std::string> variables{{"HOME", folder}};
  const auto read = [&] {
    return HubSettingsOf([&](const char* name) { return variables[name]; });
  };
  EXPECT_EQ(read()->endpoint, "https://huggingface.co");
  EXPECT_EQ(read()->token, "");
  variables["HF_HOME"] = folder;
  ASSERT_TRUE(WriteFile(folder + "/token", " hf_file\n").ok());
  EXPECT_EQ(read()->token, "hf_file");
  EXPECT_EQ(read()->cache, folder + "/hub");
  variables["HF_TOKEN"] = "hf_variable";
  EXPECT_EQ(read()->token, "hf_variable");
  variables["HF_ENDPOINT"] = "http://127.0.0.1:80/x/";
  EXPECT_EQ(read()->endpoint, "http://127.0.0.1:80/x");
  variables["HF_HUB_OFFLINE"] = "1";
  EXPECT_TRUE(read()->offline);
  variables["HF_TOKEN"] = "a\nurl = \"http://evil\"";
  EXPECT_EQ(read().error().place, "HF_TOKEN");
  variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  EXPECT_EQ(read()->token, "");
  variables["HF_ENDPOINT"] = "hub.test";
  EXPECT_EQ(read().error().place, "HF_ENDPOINT");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pawl
