// The command is started as a process of its own with its output in files, so tests see what a
// user's shell would.
#include "tests/cli/cli_test_util.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "tests/source_dir.h"

extern char** environ;

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// One folder for each test process, so that cases can run at the same time; removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "/pawl_cli_test_" + std::to_string(::getpid())) {
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string ScratchPath(const std::string& name) {
  static const ScratchFolder folder;
  return folder.path() + "/" + name;
}

std::string WriteScratch(const std::string& name, std::string_view content) {
  const std::string path = ScratchPath(name);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

CommandResult RunPawl(const std::vector<std::string>& arguments, std::string_view input) {
  const std::string in = WriteScratch("stdin", input);
  const std::string out = ScratchPath("stdout");
  const std::string err = ScratchPath("stderr");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), PAWL_COMMAND);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  CommandResult result;
  const int spawned = ::posix_spawn(&child, PAWL_COMMAND, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return result;
  int status = 0;
  if (::waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    result.exit_code = WEXITSTATUS(status);
  }
  result.out = Slurp(out);
  result.err = Slurp(err);
  return result;
}

std::string ByteTokenizerJson() {
  // GPT-2's alphabet: printable bytes stand for themselves, the others for code points from 256 on.
  std::string vocab;
  int shifted = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    std::string name;
    AppendUtf8(static_cast<char32_t>(plain ? byte : 256 + shifted++), name);
    vocab += (vocab.empty() ? "" : ",") + json::Quote(name) + ":" + std::to_string(byte);
  }
  const auto added = [](int id, const std::string& name) {
    return "{\"id\":" + std::to_string(id) + ",\"content\":" + json::Quote(name) +
           ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
           "\"special\":true}";
  };
  return "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[" +
         added(256, "<s>") + "," + added(257, "</s>") +
         "],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
         "false,"
         "\"trim_offsets\":true,\"use_regex\":false},\"post_processor\":null,\"decoder\":{\"type\":"
         "\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
         "\"model\":{"
         "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
         "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"vocab\":{" +
         vocab + "},\"merges\":[]}}";
}

std::string ModelFolderWith(const std::string& name, std::string_view pawl_json) {
  const std::string from = SourceDir() + "/tests/data/models/llama-bf16-llama3/";
  WriteScratch(name + "/tokenizer.json", ByteTokenizerJson());
  WriteScratch(name + "/tokenizer_config.json",
               R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":false})");
  WriteScratch(name + "/generation_config.json", R"({"bos_token_id":256,"eos_token_id":257})");
  if (!pawl_json.empty()) WriteScratch(name + "/pawl.json", pawl_json);
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::error_code ignored;
    fs::copy_file(from + file, ScratchPath(name + "/" + file), ignored);
  }
  return ScratchPath(name);
}

const std::string& RandomModelFolder() {
  static const std::string folder =
      ModelFolderWith("random-model", R"({"extract":{"prompt":"{text}\n","bos":true}})");
  return folder;
}

}  // namespace pawl
