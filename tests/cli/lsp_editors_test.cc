// The recipes of docs/editors.md, run in the editors without a screen: a file is opened, and the
// key for completions lists names of `pawl lsp` with the shipped model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

class EditorRecipes : public testing::Test {
 protected:
  void SetUp() override {
    if (RunPawl({"monitor", WriteScratch("none.ts", "const a = 1;\n")}).exit_code != 0)
      GTEST_SKIP() << "built without the monitors";
    folder_ = ScratchPath("editors");
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/bin");
    fs::create_symlink(PAWL_COMMAND, folder_ + "/bin/pawl");
    Write("cart.py",
          "class Cart:\n    def total(self, tax: float) -> float:\n        return tax\n\n"
          "    def taxes(self) -> float:\n        return 0.0\n\n\ncart = Cart()\ncart.t\n");
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  static bool Has(const std::string& command) {
    return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
  }
  // The page's block of that language.
  static std::string Recipe(const std::string& language) {
    std::ifstream file(SourceDir() + "/docs/editors.md");
    std::stringstream page;
    page << file.rdbuf();
    const std::string text = page.str(), fence = "```" + language + "\n";
    const size_t begin = text.find(fence);
    EXPECT_NE(begin, std::string::npos) << language;
    if (begin == std::string::npos) return "";
    const size_t from = begin + fence.size();
    return text.substr(from, text.find("```", from) - from);
  }
  // In the folder, with its `pawl` first on the path; what it wrote to the file `out`.
  std::string Run(const std::string& command) const {
    const std::string whole = "cd '" + folder_ + "' && HOME='" + folder_ + "' PATH='" + folder_ +
                              "/bin:'\"$PATH\" timeout 60 " + command + " > log 2>&1 < /dev/null";
    EXPECT_EQ(std::system(whole.c_str()), 0) << Read("log");
    return Read("out");
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string folder_;
};

TEST_F(EditorRecipes, Neovim) {
  if (!Has("command -v nvim")) GTEST_SKIP() << "nvim is not there";
  Write("init.lua", Recipe("lua"));
  Write("drive.lua", R"(
    vim.cmd('edit cart.py')
    local ok = vim.wait(20000, function()
      local _, client = next(vim.lsp.buf_get_clients(0))
      return client ~= nil and client.initialized
    end, 20)
    if not ok then vim.cmd('cquit!') end
    vim.api.nvim_win_set_cursor(0, { 10, 5 })
    local tries = 0
    local timer = vim.loop.new_timer()
    timer:start(100, 100, vim.schedule_wrap(function()
      tries = tries + 1
      local items = vim.fn.complete_info({ 'items' }).items
      if #items == 0 and tries < 200 then return end
      timer:stop()
      local file = io.open('out', 'w')
      for _, item in ipairs(items) do file:write(item.word, '|', item.kind, '|', item.menu, '\n') end
      file:close()
      vim.cmd('qall!')
    end))
    vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes('A<C-x><C-o>', true, false, true), 't', false)
  )");
  const std::string out = Run("nvim --headless -u init.lua -n -c 'luafile drive.lua'");
  EXPECT_NE(out.find("total|Method|def total(self, tax: float) -> float\n"), std::string::npos)
      << out << Read("log");
  EXPECT_NE(out.find("taxes|Method|def taxes(self) -> float\n"), std::string::npos) << out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2) << out;
}

TEST_F(EditorRecipes, Emacs) {
  if (!Has("emacs --batch --eval \"(require 'eglot)\""))
    GTEST_SKIP() << "emacs with eglot is not there";
  Write("init.el", Recipe("elisp"));
  Write("drive.el", R"(
    (load (expand-file-name "init.el") nil t t)
    (find-file "cart.py")
    (let ((eglot-sync-connect 20)) (apply #'eglot (eglot--guess-contact)))
    (goto-char (point-min))
    (search-forward "\ncart.t")
    (let* ((found (eglot-completion-at-point))
           (table (nth 2 found))
           (names (all-completions (buffer-substring (nth 0 found) (point)) table))
           (sorted (funcall (completion-metadata-get (completion-metadata "" table nil)
                                                     'display-sort-function)
                            names)))
      (with-temp-file "out"
        (dolist (name sorted) (insert (substring-no-properties name) "\n"))))
    (eglot-shutdown (eglot-current-server))
  )");
  const std::string out = Run("emacs --batch -l drive.el");
  std::vector<std::string> names;
  std::stringstream lines(out);
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"taxes", "total"})) << out << Read("log");
}

}  // namespace
}  // namespace pawl
