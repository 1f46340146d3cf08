// The table of styles. What a style means as a grammar is in structural_tag_xml.cc, what its text
// means as JSON in src/engine/call_arguments.cc.
#include "grammar/tags/formats/argument_style.h"

namespace pawl {

const ArgumentStyle* ArgumentStyleOf(std::string_view name) {
  using Marks = ArgumentStyle::Marks;
  static constexpr ArgumentStyle kStyles[] = {
      {"qwen_xml", Marks::kNone, "<parameter=", ">", "", "</parameter>"},
      {"minimax_xml", Marks::kNone, "<parameter name=\"", "\">", "", "</parameter>"},
      {"atem_xml", Marks::kNone, "<atem:parameter name=\"", "\">", "", "</atem:parameter>"},
      {"glm_xml", Marks::kNone, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
      {"hunyuan_xml", Marks::kNone, "<arg_key:opensource>", "</arg_key:opensource>",
       "<arg_value:opensource>", "</arg_value:opensource>"},
      {"minicpm_xml", Marks::kCdata, "<param name=\"", "\">", "", "</param>"},
      {"deepseek_xml", Marks::kIsString, "<｜DSML｜parameter name=\"", "\" string=\"", "",
       "</｜DSML｜parameter>"},
      {"deepseek_v4_1_xml", Marks::kIsString, "<｜DSML｜ parameter name=\"", "\" string=\"", "",
       "</｜DSML｜ parameter>"},
      {"cohere_xml", Marks::kCohere, "<cofl:value", " type=\"", "", "</cofl:value>"},
      {"minimax_m3_xml", Marks::kMinimaxM3, "]<]minimax[>[<", ">", "", "]<]minimax[>["},
      {"kimi_k3_xml", Marks::kKimi, "<|open|>argument key=\"", "\" type=\"", "",
       "<|close|>argument<|sep|>"},
      {"gemma4", Marks::kGemma, "", ":", "", ""},
      {"python", Marks::kPython, "", "=", "", ""}};
  for (const ArgumentStyle& style : kStyles) {
    if (style.name == name) return &style;
  }
  return nullptr;
}

}  // namespace pawl
