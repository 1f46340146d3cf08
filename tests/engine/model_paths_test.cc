// Names of models against stores that the tests lay out, whole and damaged.
#include "src/engine/model_paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "src/base/file.h"
#include "src/engine/model_choice.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

class ModelPathsTest : public testing::Test {
 protected:
  void SetUp() override {
    base_ = testing::TempDir() + "stores-" + std::to_string(::getpid());
    fs::remove_all(base_);
    fs::create_directories(base_);
    paths_.hub = {base_ + "/hub"};
    paths_.ollama = {base_ + "/none", base_ + "/ollama"};
    paths_.lmstudio = {base_ + "/lmstudio"};
  }
  void TearDown() override { fs::remove_all(base_); }

  std::string Put(const std::string& name, std::string_view content) {
    const std::string path = base_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    EXPECT_TRUE(WriteFile(path, content).ok()) << path;
    return path;
  }
  // A file of a snapshot: a link to a blob, as huggingface_hub makes it.
  void PutSnapshot(const std::string& repo, const std::string& file, std::string_view content,
                   const std::string& commit = kCommit) {
    const std::string folder = "hub/models--" + repo;
    const std::string blob = std::to_string(blobs_++);
    Put(folder + "/blobs/" + blob, content);
    const fs::path link = base_ + "/" + folder + "/snapshots/" + commit + "/" + file;
    fs::create_directories(link.parent_path());
    std::string up = "../../";
    for (const char c : file) up += c == '/' ? "../" : "";
    fs::create_symlink(up + "blobs/" + blob, link);
    Put(folder + "/refs/main", kCommit);
  }
  std::string Snapshot(const std::string& repo) const {
    return base_ + "/hub/models--" + repo + "/snapshots/" + kCommit;
  }
  std::string Found(const std::string& name) const {
    const Result<std::string> path = ResolveModel(name, paths_);
    return path.ok() ? *path : "error: " + path.error().ToString();
  }
  void Refuses(const std::string& name, ErrorCode code, const std::vector<std::string>& parts) {
    const Result<std::string> path = ResolveModel(name, paths_);
    ASSERT_FALSE(path.ok()) << *path;
    EXPECT_EQ(path.error().code, code) << path.error().ToString();
    EXPECT_TRUE(path.error().place.starts_with(name)) << path.error().place;
    for (const std::string& part : parts) {
      EXPECT_NE(path.error().ToString().find(part), std::string::npos)
          << part << " is not in " << path.error().ToString();
    }
  }
  static std::string Manifest(const std::string& digest, const std::string& size = "4") {
    return R"({"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"x"},)"
           R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
           digest + R"(","size":)" + size + "}]}";
  }

  std::string base_;
  ModelPaths paths_;
  int blobs_ = 0;
};

TEST_F(ModelPathsTest, PathsThatExistComeFirst) {
  EXPECT_EQ(Found(base_), base_);
  const std::string file = Put("ollama:llama", "");
  EXPECT_EQ(Found(file), file);
  Refuses("/no/such/folder", ErrorCode::kIo, {"no such model folder or file"});
  Refuses("a/b/c", ErrorCode::kIo, {"no such model folder or file"});
}

TEST_F(ModelPathsTest, FoldersOfTheHub) {
  PutSnapshot("org--name", "config.json", "{}");
  PutSnapshot("org--name", "model.safetensors", "w");
  EXPECT_EQ(Found("org/name"), Snapshot("org--name"));
  EXPECT_EQ(Found("org/name:safetensors"), Snapshot("org--name"));
  EXPECT_EQ(Found("org/name@main"), Snapshot("org--name"));
  EXPECT_EQ(Found("org/name@" + kCommit), Snapshot("org--name"));
  Put("hub/models--org--name/refs/pr/1", kCommit + "\n");
  EXPECT_EQ(Found("org/name@pr/1"), Snapshot("org--name"));
  Refuses("org/name@other", ErrorCode::kIo,
          {"revision other is not in " + base_ + "/hub/models--org--name",
           "`pawl pull org/name@other` fetches it"});
  Refuses("org/none", ErrorCode::kIo,
          {"no such model folder or file, and no org/none in " + base_ + "/hub",
           "`pawl pull org/none` fetches it"});
  Refuses("org/name:Q8_0", ErrorCode::kIo,
          {"has neither a GGUF file", "`pawl pull org/name:Q8_0`"});
}

// What a download that was cut leaves is no model.
TEST_F(ModelPathsTest, FoldersThatAreNotWhole) {
  PutSnapshot("org--name", "config.json", "{}");
  Refuses("org/name", ErrorCode::kIo, {"has neither", "`pawl pull org/name` fetches it"});
  PutSnapshot("org--name", "model.safetensors.index.json",
              R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  PutSnapshot("org--name", "one.safetensors", "w");
  Refuses("org/name", ErrorCode::kIo, {"two.safetensors: is missing", "`pawl pull org/name`"});
  PutSnapshot("org--name", "two.safetensors", "w");
  EXPECT_EQ(Found("org/name"), Snapshot("org--name"));
  fs::remove(base_ + "/hub/models--org--name/blobs/3");
  Refuses("org/name", ErrorCode::kIo, {"two.safetensors: is a link to nothing"});
}

TEST_F(ModelPathsTest, GgufFilesOfTheHub) {
  const std::string folder = Snapshot("org--name-GGUF");
  PutSnapshot("org--name-GGUF", "name-Q8_0.gguf", "g");
  EXPECT_EQ(Found("org/name-GGUF"), folder + "/name-Q8_0.gguf");
  PutSnapshot("org--name-GGUF", "name-Q5_K_M.gguf", "g");
  EXPECT_EQ(Found("org/name-GGUF"), folder + "/name-Q8_0.gguf");
  PutSnapshot("org--name-GGUF", "name-q4_k_m.gguf", "g");
  PutSnapshot("org--name-GGUF", "mmproj-F16.gguf", "g");
  EXPECT_EQ(Found("org/name-GGUF"), folder + "/name-q4_k_m.gguf");
  EXPECT_EQ(Found("org/name-GGUF:q5_k_m"), folder + "/name-Q5_K_M.gguf");
  EXPECT_EQ(Found("org/name-GGUF@main:name-Q8_0.gguf"), folder + "/name-Q8_0.gguf");
  Refuses("org/name-GGUF:F16", ErrorCode::kIo,
          {"has no file of type F16; it has name-Q5_K_M.gguf, name-Q8_0.gguf, name-q4_k_m.gguf"});
  PutSnapshot("org--name-GGUF", "F32/name-F32-00001-of-00002.gguf", "g");
  Refuses("org/name-GGUF:F32", ErrorCode::kIo, {"F32/name-F32-00002-of-00002.gguf"});
  PutSnapshot("org--name-GGUF", "F32/name-F32-00002-of-00002.gguf", "g");
  EXPECT_EQ(Found("org/name-GGUF:F32"), folder + "/F32/name-F32-00001-of-00002.gguf");
  Refuses("org/name-GGUF:F32/name-F32-00002-of-00002.gguf", ErrorCode::kInvalid,
          {"is part 2 of 2", "F32/name-F32-00001-of-00002.gguf"});
}

TEST_F(ModelPathsTest, StoresOfOllama) {
  const std::string digest(64, 'b');
  const std::string blob = Put("ollama/blobs/sha256-" + digest, "GGUF");
  Put("ollama/manifests/registry.ollama.ai/library/small/latest", Manifest("sha256:" + digest));
  Put("ollama/manifests/registry.ollama.ai/ann/own/7b", Manifest("sha256:" + digest));
  Put("ollama/manifests/hf.co/org/name/Q8_0", Manifest("sha256:" + digest));
  EXPECT_EQ(Found("ollama:small"), blob);
  EXPECT_EQ(Found("ollama:small:latest"), blob);
  EXPECT_EQ(Found("ollama:ann/own:7b"), blob);
  EXPECT_EQ(Found("ollama:hf.co/org/name:Q8_0"), blob);
  Refuses("ollama:small:8b", ErrorCode::kIo,
          {base_ + "/none, " + base_ + "/ollama", "`ollama pull small:8b` fetches it"});
}

TEST_F(ModelPathsTest, ManifestsThatAreBroken) {
  const std::string digest(64, 'b');
  const std::string library = "ollama/manifests/registry.ollama.ai/library/m/";
  Put("ollama/blobs/sha256-" + digest, "GGUF");
  Put(library + "json", "{\"layers\": [");
  Put(library + "list", "[]");
  Put(library + "layers", R"({"layers":{}})");
  Put(library + "none", R"({"layers":[]})");
  Put(library + "out", Manifest("sha256:../../../../../../../../../../etc/passwd"));
  Put(library + "short", Manifest("sha256:bb"));
  Put(library + "absent", Manifest("sha256:" + std::string(64, 'c')));
  Put(library + "size", Manifest("sha256:" + digest, "5"));
  Put(library + "huge", std::string((1 << 20) + 1, ' '));
  Put(library + "adapter",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.adapter","digest":"x"}]})");
  Put("secret", Manifest("sha256:" + digest));
  fs::create_symlink(base_ + "/secret", base_ + "/" + library + "link");
  Refuses("ollama:m:json", ErrorCode::kInvalid, {"/m/json: 1:13"});
  Refuses("ollama:m:list", ErrorCode::kInvalid, {"#/layers"});
  Refuses("ollama:m:layers", ErrorCode::kInvalid, {"#/layers: must be a list"});
  Refuses("ollama:m:none", ErrorCode::kUnsupported, {"has no GGUF file"});
  Refuses("ollama:m:out", ErrorCode::kInvalid, {"64 hexadecimal digits"});
  Refuses("ollama:m:short", ErrorCode::kInvalid, {"64 hexadecimal digits"});
  Refuses("ollama:m:absent", ErrorCode::kIo, {"sha256-ccc", "is missing"});
  Refuses("ollama:m:size", ErrorCode::kInvalid, {"has 4 bytes, and the manifest says 5"});
  Refuses("ollama:m:huge", ErrorCode::kLimit, {"larger than the limit"});
  Refuses("ollama:m:adapter", ErrorCode::kUnsupported, {"has an adapter"});
  Refuses("ollama:m:link", ErrorCode::kInvalid, {"leads out of " + base_ + "/ollama"});
}

TEST_F(ModelPathsTest, FoldersOfLmStudio) {
  const std::string file = Put("lmstudio/org/name/name-Q4_K_M.gguf", "g");
  EXPECT_EQ(Found("lmstudio:org/name"), file);
  const std::string other = Put("lmstudio/org/name/name-Q6_K.gguf", "g");
  EXPECT_EQ(Found("lmstudio:org/name:name-Q6_K.gguf"), other);
  Refuses("lmstudio:org/none", ErrorCode::kIo, {base_ + "/lmstudio", "`lms get org/none`"});
  Refuses("lmstudio:name", ErrorCode::kInvalid, {"expected lmstudio:ORG/NAME"});
}

TEST_F(ModelPathsTest, NamesLeadNowhereElse) {
  Put("secret/refs/main", kCommit);
  Put("secret/snapshots/" + kCommit + "/a.gguf", "g");
  for (const char* name :
       {"ollama:../secret", "ollama:a/../../secret", "ollama:", "ollama:a:", "ollama:a:../b",
        "ollama:/etc:passwd", "lmstudio:../secret", "lmstudio:org/..",
        "lmstudio:org/name:../../secret/a.gguf", "org/name:../../a.gguf",
        "org/name:/etc/passwd.gguf", "org/name:", "org/name@", "org/name@../../secret",
        "org/name@-x", "org/name@a b"}) {
    SCOPED_TRACE(name);
    Refuses(name, ErrorCode::kInvalid, {"is no name of a model; expected "});
  }
  for (const char* name : {"../secret", "org/..name", "org/na--me", "org/.name", "a b/c", "org/"}) {
    SCOPED_TRACE(name);
    const Result<std::string> path = ResolveModel(name, paths_);
    ASSERT_FALSE(path.ok());
    EXPECT_EQ(path.error().message, "no such model folder or file");
  }
}

TEST_F(ModelPathsTest, LinksThatLeadOutAreRefused) {
  const std::string secret = Put("secret.gguf", "g");
  PutSnapshot("org--name", "README.md", "");
  fs::create_symlink(secret, Snapshot("org--name") + "/a.gguf");
  Refuses("org/name", ErrorCode::kInvalid, {"a.gguf: leads out of " + base_ + "/hub"});
  PutSnapshot("org--folder", "config.json", "{}");
  PutSnapshot("org--folder", "model.safetensors", "w");
  fs::create_symlink(secret, Snapshot("org--folder") + "/tokenizer.json");
  Refuses("org/folder", ErrorCode::kInvalid, {"tokenizer.json: leads out of " + base_ + "/hub"});
  fs::create_directories(base_ + "/outside");
  fs::create_directories(base_ + "/hub/models--org--far/snapshots");
  Put("hub/models--org--far/refs/main", kCommit);
  fs::create_symlink(base_ + "/outside", Snapshot("org--far"));
  Refuses("org/far", ErrorCode::kInvalid, {"leads out of " + base_ + "/hub"});
  Put("hub/models--org--ref/snapshots/" + kCommit + "/a.gguf", "g");
  fs::create_directories(base_ + "/hub/models--org--ref/refs");
  Put("ref", kCommit);
  fs::create_symlink(base_ + "/ref", base_ + "/hub/models--org--ref/refs/main");
  Refuses("org/ref", ErrorCode::kIo, {"revision main is not in"});
  Put("hub/models--org--bad/refs/main", "../../../../outside");
  Put("hub/models--org--bad/snapshots/x", "");
  Refuses("org/bad", ErrorCode::kIo, {"revision main is not in"});
}

TEST_F(ModelPathsTest, IndexesThatLeadOutAreRefused) {
  PutSnapshot("org--name", "config.json", "{}");
  PutSnapshot("org--name", "model.safetensors.index.json",
              R"({"weight_map":{"a":"../../secret.safetensors"}})");
  Refuses("org/name", ErrorCode::kInvalid, {"#/weight_map/a"});
}

TEST(ModelPathsOfTest, Variables) {
  std::map<std::string, std::string> variables;
  const auto paths = [&] {
    return ModelPathsOf([&](const char* name) { return variables[name]; });
  };
  EXPECT_TRUE(paths().hub.empty());
  variables["HOME"] = "/home/ann";
  EXPECT_EQ(paths().hub, std::vector<std::string>{"/home/ann/.cache/huggingface/hub"});
  EXPECT_EQ(paths().ollama, (std::vector<std::string>{"/home/ann/.ollama/models",
                                                      "/usr/share/ollama/.ollama/models"}));
  EXPECT_EQ(paths().lmstudio[0], "/home/ann/.lmstudio/models");
  variables["XDG_CACHE_HOME"] = "/cache";
  EXPECT_EQ(paths().hub[0], "/cache/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(paths().hub[0], "/home/ann/hf/hub");
  variables["HF_HUB_CACHE"] = "/big/hub";
  EXPECT_EQ(paths().hub[0], "/big/hub");
  variables["OLLAMA_MODELS"] = "/big/ollama";
  EXPECT_EQ(paths().ollama[0], "/big/ollama");
}

TEST(ModelChoiceTest, TypesInNames) {
  EXPECT_EQ(TypeInName("a/b-7B-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(TypeInName("b.q8_0.GGUF"), "Q8_0");
  EXPECT_EQ(TypeInName("b-UD-IQ2_XXS-00001-of-00003.gguf"), "UD-IQ2_XXS");
  EXPECT_EQ(TypeInName("bf16.gguf"), "BF16");
  EXPECT_EQ(TypeInName("gpt-oss-20b-MXFP4.gguf"), "MXFP4");
  EXPECT_EQ(TypeInName("Qwen2.5-0.5B.gguf"), "");
  EXPECT_EQ(TypeInName("a-Q4_K_M.bin"), "");
}

TEST(ModelChoiceTest, OneOfSeveral) {
  const auto chosen = [](const std::vector<std::string>& names, std::string_view wanted) {
    const Result<ModelChoice> choice = ChooseModel(names, wanted);
    if (!choice.ok()) return "error: " + choice.error().message;
    return choice->gguf.empty() ? std::string("folder") : choice->gguf[0];
  };
  EXPECT_EQ(chosen({"a-UD-Q4_K_XL.gguf", "a-Q2_K.gguf"}, "q4_k_xl"), "a-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen({"a-UD-Q4_K_M.gguf", "a-Q4_K_M.gguf"}, ""), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"model.safetensors", "a-Q4_K_M.gguf"}, ""), "folder");
  EXPECT_EQ(chosen({"model.safetensors", "a-Q4_K_M.gguf"}, "Q4_K_M"), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "a-Q3_K.gguf"}, ""),
            "error: has several models, and none of type Q4_K_M or Q8_0: a-Q2_K.gguf, "
            "a-Q3_K.gguf; name a type or a file");
  EXPECT_EQ(chosen({"a-Q8_0.gguf", "b-Q8_0.gguf"}, ""),
            "error: has several files of type Q8_0: a-Q8_0.gguf, b-Q8_0.gguf; name the file");
  EXPECT_EQ(chosen({"a-Q8_0.gguf"}, "b.gguf"), "error: has no file b.gguf; it has a-Q8_0.gguf");
  EXPECT_EQ(chosen({"mmproj-a.gguf", "imatrix.gguf", "a.gguf"}, ""), "a.gguf");
}

TEST(ModelNameTest, Labels) {
  const auto label = [](std::string_view text) {
    const auto name = ParseModelName(text);
    return name.ok() && *name ? (*name)->Label() : "";
  };
  EXPECT_EQ(label("Qwen/Qwen3-0.6B-GGUF@main:Q8_0"), "Qwen/Qwen3-0.6B-GGUF");
  EXPECT_EQ(label("ollama:qwen2.5:0.5b"), "qwen2.5:0.5b");
  EXPECT_EQ(label("lmstudio:org/name:a.gguf"), "org/name");
  EXPECT_EQ(label("./org/name"), "");
}

TEST(RepoOfFolderTest, Folders) {
  EXPECT_EQ(RepoOfFolder("models--org--name"), "org/name");
  EXPECT_EQ(RepoOfFolder("models--org--..--x"), "");
  EXPECT_EQ(RepoOfFolder("models--gpt2"), "");
  EXPECT_EQ(RepoOfFolder("datasets--org--name"), "");
}

}  // namespace
}  // namespace pawl
