// The part of TOML that options need: sections, and keys with a string, a number, a Boolean or a
// list of these. CLI11's own reader takes what it does not understand for something else, and knows
// no lines; so this one reads the text, and CLI11 gets the values.
//
// As CLI11 has it, a key without a value is true, and ; begins a comment.
#include "src/cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/utf8.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

[[noreturn]] void FailAt(int line, const std::string& message) {
  throw CLI::ConfigError(fmt::format("line {}: {}", line, message), CLI::ExitCodes::ConfigError);
}

// A whole number, or one with a fraction and an exponent.
bool IsNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text == "inf" || text == "nan") return true;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error != std::errc::invalid_argument && at == end &&
         std::isdigit(static_cast<unsigned char>(text[0])) != 0;
}

class TomlText {
 public:
  explicit TomlText(std::string_view text) : text_(text) {}

  int line() const { return line_; }
  bool at_end() const { return at_ == text_.size(); }
  char next() const { return at_end() ? '\n' : text_[at_]; }
  bool Take(char c) {
    if (at_end() || text_[at_] != c) return false;
    Skip();
    return true;
  }
  void SkipSpaces() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  // To the next thing that is no white space and no comment. `semicolons`: these begin comments
  // too.
  void SkipLines(bool semicolons) {
    for (;;) {
      SkipSpaces();
      if (at_end()) return;
      if (text_[at_] == '#' || (semicolons && text_[at_] == ';')) SkipComment();
      if (!Take('\n')) return;
    }
  }
  // The rest of the line has to be empty.
  void EndLine(const std::string& behind) {
    SkipSpaces();
    if (next() == '#') SkipComment();
    if (!at_end() && !Take('\n')) {
      FailAt(line_, fmt::format("{} stands behind {}", Readable(Rest()), behind));
    }
  }
  // A name with dots: "extract.threads". The parts, which may be quoted.
  std::vector<std::string> Names(std::string_view ends) {
    std::vector<std::string> parts;
    do {
      SkipSpaces();
      parts.push_back(next() == '"' || next() == '\'' ? Quoted() : Bare(std::string(ends) + "."));
      SkipSpaces();
    } while (Take('.'));
    return parts;
  }
  std::vector<std::string> Values() {
    SkipSpaces();
    if (!Take('[')) return {Value()};
    const int begin = line_;
    std::vector<std::string> values;
    for (;;) {
      SkipLines(/*semicolons=*/false);
      if (Take(']')) return values;
      if (at_end()) FailAt(begin, "the list has no ] at its end");
      values.push_back(Value());
      SkipLines(/*semicolons=*/false);
      if (!Take(',') && next() != ']') {
        FailAt(at_end() ? begin : line_, at_end() ? "the list has no ] at its end"
                                                  : "a list needs commas between its values");
      }
    }
  }

 private:
  void Skip() { line_ += text_[at_++] == '\n' ? 1 : 0; }
  void SkipComment() {
    while (!at_end() && text_[at_] != '\n') ++at_;
  }
  std::string_view Rest() const {
    const std::string_view rest = text_.substr(at_, text_.find('\n', at_) - at_);
    return rest.substr(0, std::min<size_t>(rest.size(), 40));
  }
  std::string Value() {
    if (next() == '"' || next() == '\'') return Quoted();
    const std::string value = Bare(",]#");
    if (value.empty()) FailAt(line_, "a value is missing");
    if (value != "true" && value != "false" && !IsNumber(value)) {
      FailAt(line_, "a text must stand in quotes: " + Readable(value));
    }
    return value;
  }
  std::string Bare(const std::string& ends) {
    const size_t begin = at_;
    while (!at_end() && (ends + " \t\r\n").find(text_[at_]) == std::string::npos) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string Quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (!at_end() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == quote) return out;
      if (c == '\\' && quote == '"') {
        Escape(out);
      } else {
        out += c;
      }
    }
    FailAt(line_, "a text has no quote at its end");
  }
  void Escape(std::string& out) {
    static constexpr std::string_view kNames = "btnfr\"\\", kMeant = "\b\t\n\f\r\"\\";
    const char c = next();
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      ++at_;
      out += kMeant[found];
      return;
    }
    const size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::string_view hex = text_.substr(std::min(at_ + 1, text_.size()), digits);
    const auto is_hex = [](char d) { return std::isxdigit(static_cast<unsigned char>(d)) != 0; };
    if (digits == 0 || hex.size() != digits || !std::ranges::all_of(hex, is_hex)) {
      FailAt(line_, "\\ begins no escape; a text in '...' has none");
    }
    const auto point = static_cast<uint32_t>(std::stoul(std::string(hex), nullptr, 16));
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) {
      FailAt(line_, fmt::format("\\{}{} is no character", c, hex));
    }
    AppendUtf8(point, out);
    at_ += 1 + digits;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

std::string JoinedNames(std::span<const std::string> names, const char* between) {
  return fmt::format("{}", fmt::join(names, between));
}

}  // namespace

const CLI::Option* ConfigFile::OptionAt(const CLI::ConfigItem& item, int line) const {
  const CLI::App* app = &app_;
  for (const std::string& name : item.parents) {
    const auto commands =
        app->get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
    if (commands.empty()) {
      FailAt(line, fmt::format("there is no command {}", JoinedNames(item.parents, " ")));
    }
    app = commands.front();
  }
  if (item.name.empty()) return nullptr;
  const std::string of =
      "pawl" + (item.parents.empty() ? "" : " " + JoinedNames(item.parents, " "));
  for (const std::string& name : {"--" + item.name, item.name}) {
    const CLI::Option* const option = app->get_option_no_throw(name);
    if (option == nullptr || option == app->get_help_ptr()) continue;
    if (option == app_.get_config_ptr() || !option->get_configurable()) break;
    return option;
  }
  FailAt(line, fmt::format("{} has no option {}{}", of, item.name,
                           item.parents.empty() ? "; options stand under [COMMAND]" : ""));
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  std::string text{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  TomlText in(text);
  std::vector<CLI::ConfigItem> read;
  std::vector<std::string> section;
  std::map<std::vector<std::string>, int> sections;  // with their lines
  for (;;) {
    in.SkipLines(/*semicolons=*/true);
    if (in.at_end()) return read;
    const int line = in.line();
    CLI::ConfigItem item;
    if (in.Take('[')) {
      section = in.Names("]\n#");
      if (!in.Take(']')) FailAt(line, "the name of a section has no ] at its end");
      in.EndLine("the name of a section");
      if (section == std::vector<std::string>{"default"}) section.clear();
      item.parents = section;
      OptionAt(item, line);
      if (const auto [before, fresh] = sections.emplace(section, line); !fresh) {
        FailAt(line, fmt::format("[{}] stands in line {} too", JoinedNames(section, "."),
                                 before->second));
      }
      continue;
    }
    std::vector<std::string> names = in.Names("=#");
    item.name = names.back();
    if (item.name.empty()) FailAt(line, "a name of an option is missing");
    names.pop_back();
    item.parents = section;
    item.parents.insert(item.parents.end(), names.begin(), names.end());
    const CLI::Option* const option = OptionAt(item, line);
    const auto before = std::ranges::find(lines_, option, &Line::option);
    if (before != lines_.end()) {
      FailAt(line, fmt::format("{} stands in line {} too", item.name, before->number));
    }
    item.inputs = in.Take('=') ? in.Values() : std::vector<std::string>{"true"};
    in.EndLine("the value of " + item.name);
    lines_.push_back({option, line});
    if (!item.inputs.empty()) read.push_back(std::move(item));
  }
}

std::string ConfigFile::Placed(const std::string& message,
                               std::span<const char* const> arguments) const {
  if (message.starts_with("line ")) {
    return fmt::format("--config: {}: {}", app_.get_config_ptr()->as<std::string>(), message);
  }
  const std::string name = message.substr(0, message.find(": "));
  const bool given = std::ranges::any_of(arguments, [&](std::string_view argument) {
    return argument == name || argument.starts_with(name + "=");
  });
  if (given || !name.starts_with("--")) return message;
  // CLI11 takes values in the order of the file: the one that it refuses is the last that it took.
  const Line* refused = nullptr;
  for (const Line& line : lines_) {
    if (line.option->check_lname(name.substr(2)) && line.option->count() > 0) refused = &line;
  }
  if (refused == nullptr) return message;
  return fmt::format("--config: {}: line {}: {}", app_.get_config_ptr()->as<std::string>(),
                     refused->number, message);
}

}  // namespace pawl::cli
