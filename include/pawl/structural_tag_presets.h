// Structural tags for the tool calls of model families.
//
//   const pawl::Tool tools[] = {{"get_weather", R"({"type":"object",...})"}};
//   auto tag = pawl::ToolCallTag(pawl::ToolCallFormat::kHermes, tools, {.reasoning = true});
//   auto grammar = compiler.CompileStructuralTag(*tag);
//
// The tag is JSON text as docs/structural_tags.md describes it, to be compiled as it is or changed.
//
// Errors: kInvalid for no tools where a call is required, a tool that is not there, parameters that
// are not JSON; place: the tool's name.
//
// Thread safety: no shared state.
#ifndef PAWL_STRUCTURAL_TAG_PRESETS_H_
#define PAWL_STRUCTURAL_TAG_PRESETS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pawl/export.h"
#include "pawl/result.h"

namespace pawl {

struct Tool {
  std::string name;
  std::string parameters = {};  // a JSON Schema as text; empty: any object
};

enum class ToolCallFormat {
  kLlama3,      // {"name": "f", "parameters": {...}}
  kHermes,      // <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>: Hermes, Qwen 2.5, 3
  kQwenXml,     // <tool_call>\n<function=f>\n<parameter=a>...: Qwen 3 Coder, 3.5
  kDeepSeekR1,  // DeepSeek R1 and V3: the arguments in a code fence
  kDeepSeekV31,  // DeepSeek V3.1
  kMistral,      // [TOOL_CALLS][{"name": "f", "arguments": {...}}]
  kGptOss,       // harmony: channels analysis, commentary (to=functions.f) and final
};

struct ToolCallOptions {
  enum class Choice {
    kAuto,      // text with any number of calls in it
    kRequired,  // calls, at least one, from the first byte on
    kNamed,     // one call of the tool `named`
  };
  Choice choice = Choice::kAuto;
  std::string named = {};
  bool parallel = true;  // more than one call
  // First comes what the model thinks: text up to </think> ([/THINK], or messages in the analysis
  // channel); the mark that opens it may stand in the prompt or in the output. Llama 3 has none.
  bool reasoning = false;
};

// "llama3", "hermes", "qwen", "qwen_xml", "deepseek_r1", "deepseek_v3", "deepseek_v3_1", "mistral",
// "gpt_oss"; nullopt for other names.
PAWL_EXPORT std::optional<ToolCallFormat> ToolCallFormatOf(std::string_view name);

PAWL_EXPORT Result<std::string> ToolCallTag(ToolCallFormat format, std::span<const Tool> tools,
                                            const ToolCallOptions& options = {});

}  // namespace pawl

#endif  // PAWL_STRUCTURAL_TAG_PRESETS_H_
