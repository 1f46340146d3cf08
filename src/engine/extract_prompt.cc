// Three kinds of prompts, in the order of what a model knows best: its own template for records,
// its chat template with the request as the user's words, plain text. Which one it is shows only
// here.
//
// Instruction, view and examples are the defaults that docs/evaluation.md measures. Templates of
// NuExtract take a template of the record and examples themselves.
#include "src/engine/extract_prompt.h"

#include <utility>

#include "src/base/file.h"
#include "src/engine/model_files.h"
#include "src/engine/schema_view.h"
#include "src/engine/thinking.h"

namespace pawl {
namespace {

constexpr std::string_view kInstruction = "Extract the data from the text as JSON.";
constexpr std::string_view kListInstruction =
    "Extract all records from the text as a JSON list, one record for each that the text names.";
// What NuExtract's chat templates write before the template of the record.
constexpr std::string_view kTemplateMark = "# Template:";

std::string CommaJoined(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "" : ", ") + key;
  return out;
}

std::string ViewOf(const ExtractInput& input, const Result<json::Value>& schema) {
  SchemaView view = input.view;
  if (view == SchemaView::kNone) return "";
  if (view == SchemaView::kDefault || view == SchemaView::kAuto) {
    const bool flat = schema.ok() && IsFlatSchema(*schema);
    view = flat ? SchemaView::kKeys : SchemaView::kTemplate;
  }
  if (schema.ok() && view == SchemaView::kTemplate) {
    if (const auto shown = SchemaTemplate(*schema)) return "Template: " + *shown;
  }
  if (schema.ok() && view == SchemaView::kKeys) {
    const std::vector<std::string> keys = SchemaKeys(*schema);
    if (!keys.empty()) return "Keys: " + CommaJoined(keys);
  }
  return "Schema: " + input.schema;
}

std::string InstructionOf(const ExtractInput& input, const Result<json::Value>& schema) {
  if (!input.instruction.empty()) return input.instruction;
  return std::string(schema.ok() && IsListSchema(*schema) ? kListInstruction : kInstruction);
}

std::string ExamplesOf(const ExtractInput& input) {
  std::string out;
  for (const ExtractExample& example : input.examples)
    out += "Text: " + example.text + "\nJSON: " + example.record + "\n\n";
  return out;
}

// What is said of a record that was wrong.
std::string ProblemOf(const ExtractInput& input) {
  return "This JSON is wrong: " + input.problem + "\nWrite the corrected JSON.";
}

// The text, and in prompts that are no conversation a record of it that was wrong.
std::string TextOf(const ExtractInput& input) {
  if (input.record.empty()) return input.text;
  return input.text + "\nJSON: " + input.record + "\n" + ProblemOf(input);
}

// What the user says before the examples and the text.
std::string Opening(const ExtractInput& input) {
  const Result<json::Value> schema = json::Parse(input.schema);
  std::string out = InstructionOf(input, schema);
  const std::string view = ViewOf(input, schema);
  if (!view.empty()) out += "\n\n" + view;
  return out + "\n\n";
}

json::Value TextValueOf(std::string text) {
  json::Value value;
  value.type = json::Type::kString;
  value.text = std::move(text);
  return value;
}

// As NuExtract's templates read them.
json::Value ExamplesValue(const ExtractInput& input) {
  json::Value list;
  list.type = json::Type::kArray;
  for (const ExtractExample& example : input.examples) {
    json::Value one;
    one.type = json::Type::kObject;
    one.members.emplace_back("input", TextValueOf(example.text));
    one.members.emplace_back("output", TextValueOf(example.record));
    list.items.push_back(std::move(one));
  }
  return list;
}

}  // namespace

Result<ExtractPrompt> ExtractPrompt::Make(PromptTemplate plain, const Result<ChatSource>& chat) {
  if (!plain.text.empty()) return ExtractPrompt(std::move(plain), std::nullopt);
  if (!chat.ok() && chat.error().code != ErrorCode::kIo) return chat.error();
  plain.text = "{instruction}{examples}Text: {text}\nJSON: ";
  ExtractPrompt out(std::move(plain), std::nullopt);
  out.general_ = true;
  if (chat.ok()) out.chat_ = *chat;
  return out;
}

Status ExtractPrompt::CheckPlaces(const ExtractInput& input) const {
  const auto lacks = [&](std::string_view name) {
    return plain_.text.find(name) == std::string::npos;
  };
  const auto error = [](const char* place) {
    return Error{ErrorCode::kInvalid,
                 std::string("the prompt of the model's pawl.json has no {") + place + "}", place};
  };
  if (!input.instruction.empty() && lacks("{instruction}")) return error("instruction");
  if (!input.examples.empty() && lacks("{examples}")) return error("examples");
  return {};
}

Result<std::vector<TokenId>> ExtractPrompt::Encode(const Tokenizer& tokenizer,
                                                   const ExtractInput& input, int max_tokens,
                                                   const std::optional<std::tm>& now,
                                                   const Thinking& thinking) const {
  if (!general_) {
    if (Status status = CheckPlaces(input); !status.ok()) return status.error();
    const std::string examples = ExamplesOf(input);
    std::string fields;
    if (plain_.text.find("{fields}") != std::string::npos) {
      const Result<json::Value> schema = json::Parse(input.schema);
      if (schema.ok()) fields = SchemaFields(*schema);
    }
    return EncodePrompt(tokenizer, plain_,
                        {input.schema, input.text, input.instruction, examples, fields},
                        max_tokens);
  }
  if (!chat_) {
    const std::string opening = Opening(input), examples = ExamplesOf(input), text = TextOf(input);
    return EncodePrompt(tokenizer, plain_, {input.schema, text, opening, examples}, max_tokens);
  }
  ChatInput chat;
  chat.messages.type = json::Type::kArray;
  const auto say = [&](const char* role, std::string text) {
    chat.messages.items.push_back(MakeChatMessage(role, std::move(text)));
  };
  const Result<json::Value> schema = json::Parse(input.schema);
  const auto shown = schema.ok() ? SchemaTemplate(*schema) : std::nullopt;
  if (shown && chat_->chat.literals().find(kTemplateMark) != std::string::npos) {
    chat.arguments.emplace_back("template", TextValueOf(*shown));
    if (!input.examples.empty()) chat.arguments.emplace_back("examples", ExamplesValue(input));
    const std::string before = input.instruction.empty() ? "" : input.instruction + "\n\n";
    say("user", before + TextOf(input));
  } else {
    std::string before = Opening(input);
    for (const ExtractExample& example : input.examples) {
      say("user", before + "Text: " + example.text);
      say("assistant", example.record);
      before.clear();
    }
    say("user", before + "Text: " + input.text);
    if (!input.record.empty()) {
      say("assistant", input.record);
      say("user", ProblemOf(input));
    }
  }
  chat.special_tokens = chat_->special_tokens;
  TellTemplate(thinking, chat.arguments);
  chat.now = now;
  Result<MarkedText> prompt = chat_->chat.Render(chat);
  if (!prompt.ok()) return InFile(chat_->place, prompt.error());
  return EncodeChatWithin(tokenizer, chat_->chat, *prompt, max_tokens);
}

}  // namespace pawl
