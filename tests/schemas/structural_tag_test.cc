// Structural tags: free text and tags against a recogniser of their own on all short texts, masks
// against trying every token, formats and errors by examples.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/source_dir.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

Result<Grammar> Compile(const std::string& format, const GrammarOptions& options = {},
                        std::shared_ptr<const Vocabulary> vocabulary = Bytes()) {
  return Compiler(std::move(vocabulary))
      .CompileStructuralTag(R"({"type":"structural_tag","format":)" + format + "}", options);
}

bool Accepts(const Grammar& grammar, std::string_view text) {
  const auto state = grammar.Start().Advance(text);
  return state && state->accepting();
}

std::string Strings(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& text : list) out += (out.empty() ? "" : ",") + json::Quote(text);
  return "[" + out + "]";
}

// Free text and tags, slowly: from each place the first end of a trigger or an excluded string is
// looked for, and then every tag that begins there.
struct Spec {
  struct Tag {
    std::string begin, content, end;
  };
  std::vector<std::string> triggers, excludes;
  std::vector<Tag> tags;
  bool at_least_one = false, stop_after_first = false;

  bool TagsFrom(const std::string& text, size_t at, const std::string& trigger, bool more) const {
    for (const Tag& tag : tags) {
      const std::string all = tag.begin + tag.content + tag.end;
      if (tag.begin.starts_with(trigger) && text.compare(at, all.size(), all) == 0) {
        const size_t next = at + all.size();
        if (more ? Free(text, next) : next == text.size()) return true;
      }
    }
    return false;
  }
  bool Free(const std::string& text, size_t from) const {
    for (size_t end = from + 1; end <= text.size(); ++end) {
      bool stopped = false;
      const auto ends_here = [&](const std::string& stop) {
        return end - from >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0;
      };
      for (const std::string& exclude : excludes) stopped = stopped || ends_here(exclude);
      for (const std::string& trigger : triggers) {
        if (!ends_here(trigger)) continue;
        stopped = true;
        if (TagsFrom(text, end - trigger.size(), trigger, !stop_after_first)) return true;
      }
      if (stopped) return false;
    }
    return true;
  }
  bool Accepts(const std::string& text) const {
    return at_least_one ? TagsFrom(text, 0, "", !stop_after_first) : Free(text, 0);
  }
  std::string Json() const {
    std::string out = R"({"type":"triggered_tags","triggers":)" + Strings(triggers) +
                      R"(,"excludes":)" + Strings(excludes) + R"(,"at_least_one":)" +
                      (at_least_one ? "true" : "false") + R"(,"stop_after_first":)" +
                      (stop_after_first ? "true" : "false") + R"(,"tags":[)";
    for (size_t i = 0; i < tags.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::string(R"({"begin":)") + json::Quote(tags[i].begin) +
             R"(,"content":{"type":"const_string","value":)" + json::Quote(tags[i].content) +
             R"(},"end":)" + json::Quote(tags[i].end) + "}";
    }
    return out + "]}";
  }
};

std::string Word(std::mt19937& random, size_t least, size_t most) {
  std::string out(least + random() % (most - least + 1), 'a');
  for (char& c : out) c = static_cast<char>('a' + random() % 3 % 2 + random() % 2 * (random() % 2));
  return out;
}

Spec RandomSpec(std::mt19937& random) {
  Spec spec;
  const size_t triggers = 1 + random() % 3;
  for (size_t i = 0; i < triggers; ++i) spec.triggers.push_back(Word(random, 1, 3));
  for (size_t i = random() % 2; i > 0; --i) spec.excludes.push_back(Word(random, 1, 3));
  const size_t tags = 1 + random() % 4;
  for (size_t i = 0; i < tags; ++i) {
    spec.tags.push_back({spec.triggers[random() % triggers] + Word(random, 0, 2),
                         Word(random, 0, 2), Word(random, 0, 2)});
  }
  spec.at_least_one = random() % 3 == 0;
  spec.stop_after_first = random() % 3 == 0;
  return spec;
}

TEST(StructuralTag, FreeTextAndTagsAsARecogniserHasThem) {
  std::mt19937 random(1);
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts[i].size() < 7; ++i) {
    for (const char* c : {"a", "b", "c"}) texts.push_back(texts[i] + c);
  }
  int compiled = 0, accepted = 0;
  for (int round = 0; round < 600; ++round) {
    const Spec spec = RandomSpec(random);
    const auto grammar = Compile(spec.Json());
    if (!grammar.ok()) {
      EXPECT_EQ(grammar.error().code, ErrorCode::kInvalid) << grammar.error().ToString();
      continue;
    }
    ++compiled;
    for (const std::string& text : texts) {
      const bool expected = spec.Accepts(text);
      accepted += expected ? 1 : 0;
      ASSERT_EQ(Accepts(*grammar, text), expected) << spec.Json() << " on " << text;
    }
  }
  EXPECT_GT(compiled, 200);
  EXPECT_GT(accepted, 10000);
}

// An output whose budget is kept needs to know the end of a character that has begun.
TEST(StructuralTag, FreeTextEndsACharacterThatHasBegun) {
  for (const char* format :
       {R"({"type": "any_text"})", R"({"type": "any_text", "excludes": ["abc", "bcd"]})",
        R"({"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": "</t>"})"}) {
    const auto grammar = Compile(format);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    for (const char* begun : {"\xC3", "\xE0", "\xE1", "\xE4", "\xED", "\xEF", "\xF0", "\xF1",
                              "\xF4", "\xE4\xBD", "\xF0\x9F", "\xF0\x9F\x98", "ab\xF0\x9F"}) {
      const auto state = grammar->Start().Advance(std::string_view(begun));
      ASSERT_TRUE(state) << format;
      const auto rest = state->CompletionBytes();
      ASSERT_TRUE(rest) << format;
      EXPECT_TRUE(state->Advance(std::string_view(*rest))->accepting()) << format;
      EXPECT_EQ(state->completion_length(), static_cast<int>(rest->size()));
    }
  }
}

std::shared_ptr<const Vocabulary> Tokens() {
  static const auto vocabulary = VocabularyOf({"a",
                                               "b",
                                               "c",
                                               "ab",
                                               "ba",
                                               "abc",
                                               "bca",
                                               "aa",
                                               "cab",
                                               "bab",
                                               "{",
                                               "}",
                                               "{\"",
                                               "\":",
                                               "1",
                                               "12",
                                               "\"}",
                                               "}b",
                                               "}ba",
                                               "1}",
                                               "1}b",
                                               "{}",
                                               "{}b",
                                               "\"",
                                               "x\"",
                                               "a\":1}b",
                                               ",",
                                               "é",
                                               "\xC3",
                                               "\xA9",
                                               "aé",
                                               "\xA9"
                                               "a",
                                               "\n",
                                               "<",
                                               ">",
                                               "</",
                                               "<s>",
                                               "<t>",
                                               "aaaab",
                                               "cccc",
                                               "b{}",
                                               "ab{",
                                               "[1]",
                                               "1,2",
                                               "}<"},
                                              {"<t>"}, {"<s>"});
  return vocabulary;
}

// So many tokens that lexemes with a machine of their own are asked instead of walked.
std::shared_ptr<const Vocabulary> ManyTokens() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    std::vector<std::string> tokens;
    for (TokenId id = 0; id < Tokens()->size(); ++id) tokens.emplace_back(Tokens()->bytes(id));
    const char* const pieces[] = {"a", "b", "c",    "{",    "}", "\"", ":",  "1",   ",",  "<", ">",
                                  "/", "é", "\xC3", "\xA9", "[", "]",  "ab", "\":", "}b", "t", " "};
    std::mt19937 random(3);
    while (tokens.size() < 3000) {
      std::string token;
      for (size_t k = 2 + random() % 5; k > 0; --k) token += pieces[random() % std::size(pieces)];
      tokens.push_back(token);
    }
    return VocabularyOf(std::move(tokens), {"<t>"}, {"<s>"});
  }();
  return vocabulary;
}

void ExpectHonestMasks(const Grammar& grammar, std::mt19937& random, int steps,
                       const std::string& what) {
  const Vocabulary& vocabulary = grammar.vocabulary();
  State state = grammar.Start();
  for (int step = 0; step < steps; ++step) {
    const auto mask = state.mask();
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const bool fits = state.Advance(id).has_value();
      ASSERT_EQ(mask->Allows(id), fits || (vocabulary.is_end(id) && state.accepting()))
          << what << ", step " << step << ", token " << vocabulary.bytes(id);
      if (fits) allowed.push_back(id);
    }
    if (allowed.empty()) return;  // complete, or the vocabulary cannot spell the rest
    state = *state.Advance(allowed[random() % allowed.size()]);
  }
}

TEST(StructuralTag, MasksAreWhatTokensFit) {
  std::mt19937 random(2);
  for (int round = 0; round < 150; ++round) {
    const Spec spec = RandomSpec(random);
    const auto grammar = Compile(spec.Json(), {}, Tokens());
    if (grammar.ok()) ExpectHonestMasks(*grammar, random, 25, spec.Json());
    if (round % 10 != 0) continue;
    const auto other = Compile(spec.Json(), {}, ManyTokens());
    if (other.ok()) ExpectHonestMasks(*other, random, 25, spec.Json());
  }
  const char* const formats[] = {
      R"({"type":"triggered_tags","triggers":["a"],"tags":[{"begin":"ab","content":{"type":
         "json_schema","json_schema":{"type":"object","properties":{"a":{"type":"integer"}},
         "additionalProperties":false}},"end":"b"},{"begin":"aa","content":{"type":"json_schema",
         "json_schema":{"type":"array","items":{"type":"integer"}}},"end":"ba"}]})",
      R"({"type":"sequence","elements":[{"type":"json_schema","json_schema":{"type":"integer"}},
         {"type":"any_text","excludes":["ab","é"]},{"type":"const_string","value":"ab"}]})",
      R"({"type":"sequence","elements":[{"type":"json_schema","json_schema":true},
         {"type":"regex","pattern":"[a-c]*"}]})",
      R"({"type":"tag","begin":"<","content":{"type":"any_text","max_chars":3},"end":">"})",
      R"({"type":"tag","begin":"<","content":{"type":"any_text","max_tokens":2},"end":[">","b"]})",
      R"({"type":"token_triggered_tags","trigger_tokens":["<t>",0],"tags":[{"begin":{"type":"token",
         "token":"<t>"},"content":{"type":"json_schema","json_schema":{"type":"object"}},"end":
         {"type":"token","token":"b"}}],"exclude_tokens":[5]})",
      R"({"type":"triggered_tags","triggers":["<t>"],"tags":[{"begin":"<t>a","content":{"type":
         "any_text"},"end":"</"},{"begin":"<t>b","content":{"type":"any_tokens","max_tokens":2},
         "end":"<t>"}]})",
      R"({"type":"or","elements":[{"type":"grammar","grammar":"root ::= \"a\" root \"b\" | \"c\""},
         {"type":"grammar","syntax":"lark","grammar":"start: \"{\" start? \"}\""},
         {"type":"repeat","min":1,"max":3,"content":{"type":"const_string","value":"ab"}}]})"};
  for (const char* format : formats) {
    for (const auto& vocabulary : {Tokens(), ManyTokens()}) {
      const auto grammar = Compile(format, {}, vocabulary);
      ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
      for (int walk = 0; walk < 30; ++walk) ExpectHonestMasks(*grammar, random, 20, format);
    }
  }
}

struct Example {
  const char* format;
  std::vector<const char*> yes, no;
};

TEST(StructuralTag, Formats) {
  const std::vector<Example> examples = {
      {R"({"type":"const_string","value":"Hi"})", {"Hi"}, {"", "Hi!", "H"}},
      {R"({"type":"regex","pattern":"[A-Z]{2}"})", {"AB"}, {"A", "ABC"}},
      {R"({"type":"any_text"})", {"", "é\n<x>"}, {"\xC3", "\xFF"}},
      {R"({"type":"any_text","max_chars":2})", {"", "éé"}, {"abc"}},
      {R"({"type":"any_text","max_chars":0})", {""}, {"a"}},
      {R"({"type":"any_text","excludes":["ab","c"]})", {"", "aa", "ba"}, {"ab", "aab", "xcx"}},
      {R"({"type":"tag","begin":"<t>","content":{"type":"any_text"},"end":"</t>"})",
       {"<t></t>", "<t></</t>", "<t>a<t></t>"},
       {"<t></t></t>", "<t>", "</t>"}},
      {R"({"type":"tag","begin":"<t>","content":{"type":"any_text"},"end":["</t>","!"]})",
       {"<t>a!", "<t>a</t>"},
       {"<t>a!!", "<t>!</t>"}},
      {R"({"type":"optional","content":{"type":"const_string","value":"x"}})", {"", "x"}, {"xx"}},
      {R"({"type":"plus","content":{"type":"const_string","value":"x"}})", {"x", "xxx"}, {""}},
      {R"({"type":"star","content":{"type":"const_string","value":"x"}})", {"", "xx"}, {"y"}},
      {R"({"type":"repeat","min":2,"max":3,"content":{"type":"const_string","value":"x"}})",
       {"xx", "xxx"},
       {"x", "xxxx"}},
      {R"({"type":"repeat","min":2,"max":-1,"content":{"type":"const_string","value":"x"}})",
       {"xx", "xxxxxx"},
       {"x"}},
      {R"({"type":"json_schema","json_schema":{"type":"object"}})", {"{}", "{\"a\":[1]}"}, {"[]"}},
      {R"({"type":"json_schema","any_order":true,"json_schema":{"properties":{"a":{"const":1},
          "b":{"const":2}},"required":["a","b"],"type":"object","additionalProperties":false}})",
       {R"({"a":1,"b":2})", R"({"b":2,"a":1})"},
       {R"({"a":1})", R"({"a":1,"a":1})"}},
      {R"({"type":"tags_with_separator","separator":",","tags":[{"begin":"<","content":{"type":
          "regex","pattern":"[ab]"},"end":">"}]})",
       {"", "<a>", "<a>,<b>"},
       {",", "<a>,", "<a><b>"}},
      {R"({"type":"tags_with_separator","separator":",","at_least_one":true,"stop_after_first":true,
          "tags":[{"begin":"<","content":{"type":"regex","pattern":"[ab]"},"end":">"}]})",
       {"<a>", "<b>"},
       {"", "<a>,<a>"}},
      {R"({"type":"dispatch","rules":[["<n>",{"type":"regex","pattern":"[0-9]+"}]],
          "excludes":["!"]})",
       {"", "text <n>12 and <n>3", "<n>1<n>2"},
       {"<n>", "<n>x", "a!", "<n>1!"}},
      {R"({"type":"dispatch","loop":false,"rules":[["<n>",{"type":"regex","pattern":"[0-9]"}]]})",
       {"", "text <n>1"},
       {"<n>1 ", "<n>"}},
      // An end string of the tag around stops the text between inner tags; the inner ones have
      // their own.
      {R"({"type":"tag","begin":"[","content":{"type":"triggered_tags","triggers":["<"],"tags":[
          {"begin":"<a>","content":{"type":"any_text"},"end":"</a>"}]},"end":"]"})",
       {"[]", "[x<a>]</a>y]", "[<a></a><a>[</a>]"},
       {"[x]y]", "[<a>]", "[<b>]"}},
      {R"({"type":"json_schema","style":"qwen_xml","json_schema":{"type":"object","properties":{
          "city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],
          "additionalProperties":false}})",
       {"<parameter=city>\nRome < Paris\n</parameter>\n<parameter=days>\n3\n</parameter>\n",
        "<parameter=city></parameter>"},
       {"<parameter=days>3</parameter>",
        "<parameter=city>a</parameter><parameter=days>x</parameter>",
        "<parameter=city>a</parameter><parameter=town>x</parameter>"}},
      {R"({"type":"json_schema","style":"deepseek_xml","json_schema":{"type":"object","properties":{
          "a":{"type":["string","integer"]}},"required":["a"],"additionalProperties":false}})",
       {"<｜DSML｜parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>",
        "<｜DSML｜parameter name=\"a\" string=\"false\">7</｜DSML｜parameter>"},
       {"<｜DSML｜parameter name=\"a\" string=\"false\">x</｜DSML｜parameter>"}},
      {R"({"type":"json_schema","style":"glm_xml","any_order":true,"json_schema":{"type":"object",
          "properties":{"a":{"type":"string","maxLength":2},"b":{"enum":["x",1]}},"required":["b"],
          "additionalProperties":false}})",
       {"<arg_key>b</arg_key><arg_value>x</arg_value>",
        "<arg_key>b</arg_key>\n<arg_value>1</arg_value><arg_key>a</arg_key><arg_value>éé"
        "</arg_value>"},
       {"<arg_key>a</arg_key><arg_value>a</arg_value>",
        "<arg_key>b</arg_key><arg_value>y</arg_value>"}},
      {R"({"type":"json_schema","style":"kimi_k3_xml","json_schema":{"type":"object","properties":{
          "a\"":{"type":"number"}},"required":["a\""],"additionalProperties":false}})",
       {"<|open|>argument key=\"a&quot;\" type=\"number\"<|sep|>1<|close|>argument<|sep|>"},
       {"<|open|>argument key=\"a&quot;\" type=\"string\"<|sep|>1<|close|>argument<|sep|>"}},
      {R"({"type":"json_schema","style":"cohere_xml","json_schema":{"type":"object","properties":{
          "l":{"type":"array","items":{"$ref":"#/$defs/t"},"minItems":1}},"required":["l"],"$defs":{
          "t":{"type":"string"}},"additionalProperties":false}})",
       {"<cofl:value name=\"l\" type=\"list\"><cofl:value "
        "type=\"raw\">x</cofl:value></cofl:value>"},
       {"<cofl:value name=\"l\" type=\"list\"></cofl:value>"}},
      {R"({"type":"json_schema","style":"minimax_m3_xml","json_schema":{"type":"object","properties":{
          "c":{"type":"string"},"o":{"type":"object","properties":{"x":{"type":"boolean"}},
          "required":["x"]},"l":{"type":"array","items":{"type":"integer"},"maxItems":2},
          "e":{"enum":["a",3]}},"required":["c"]}})",
       {"]<]minimax[>[<c>hi <there>]<]minimax[>[</c>",
        "]<]minimax[>[<c>]<]minimax[>[</c>\n]<]minimax[>[<o>]<]minimax[>[<x>true]<]minimax[>[</x>"
        "]<]minimax[>[</o>]<]minimax[>[<l>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</l>"
        "]<]minimax[>[<e>3]<]minimax[>[</e>"},
       {"]<]minimax[>[<e>a]<]minimax[>[</e>", "]<]minimax[>[<c>a]<]minimax[>[b]<]minimax[>[</c>",
        "]<]minimax[>[<c>a]<]minimax[>[</c>]<]minimax[>[<z>1]<]minimax[>[</z>",
        "]<]minimax[>[<c>a]<]minimax[>[</c>]<]minimax[>[<o>{\"x\":true}]<]minimax[>[</o>"}},
      // Keys in the order of the alphabet, whatever their case; strings between marks.
      {R"({"type":"json_schema","style":"gemma4","json_schema":{"type":"object","properties":{
          "s":{"type":"string","maxLength":3},"B":{"type":"array","items":{"type":"integer"},
          "minItems":1,"maxItems":2},"a":{"enum":["x",null]},"o":{"type":"object","properties":{
          "t":{"type":"string"}},"additionalProperties":false}},"required":["B"],
          "additionalProperties":false}})",
       {"{B:[1]}", "{a:<|\"|>x<|\"|>,B:[1,2],o:{t:<|\"|>say \"hi\"\n,}<|\"|>},s:<|\"|>é<|\"|>}",
        "{a:null,B:[0],o:{}}"},
       {"{}", "{B:[]}", "{B:[1,2,3]}", "{B:[1],a:null}", "{\"B\":[1]}",
        "{B:[1],s:<|\"|>long<|\"|>}", "{B:[1],}", "{B:[1],s:\"x\"}", "{B:[1]"}},
      {R"({"type":"json_schema","style":"gemma4","json_schema":{"type":"object","properties":{
          "any":true},"required":["any"]}})",
       {"{any:{k_1:[1,-2.5e3,true,null,<|\"|>x<|\"|>,{}]}}", "{any:<|\"|><|\"|>,more:[[]]}"},
       {"{any:x}", "{any:{1:2}}", "{any:[1,]}"}},
      {R"({"type":"json_schema","style":"python","json_schema":{"type":"object","properties":{
          "s":{"type":"string"},"n":{"type":["integer","null"]},"b":{"type":"boolean"},
          "l":{"type":"array","items":{"type":"string"}},"e":{"enum":["x","it's"]}},
          "required":["s"],"additionalProperties":false}})",
       {"s=\"a \\\"b\\\"\"", "s='it\\'s', n=None, b=True",
        "s=\"\",n=3,b=false,l=[\"x\",\"y\"],e='x'", "s=\"a\", e=\"it's\""},
       {"", "n=3", "s=a", "s=\"a\"n=3", "s=\"a\", n=3.5", "s=\"a\", l=['x']", "s=\"a\", e='it's'",
        "n=3, s=\"a\""}},
      {R"({"type":"json_schema","style":"minicpm_xml","json_schema":{"type":"object","properties":{
          "s":{"type":"string"},"n":{"type":"integer"},"e":{"enum":["a<b"]}},
          "additionalProperties":false}})",
       {"", "<param name=\"s\">a & b</param><param name=\"n\">3</param>",
        "<param name=\"s\"><![CDATA[a </param> b]]></param>",
        "<param name=\"e\"><![CDATA[a<b]]></param>"},
       {"<param name=\"s\">a < b</param>", "<param name=\"e\">a<b</param>",
        "<param name=\"s\"><![CDATA[a]]>b</param>"}},
      {R"({"type":"json_schema","style":"hunyuan_xml","json_schema":{"type":"object","properties":{
          "a":{"type":"string"}},"required":["a"],"additionalProperties":false}})",
       {"<arg_key:opensource>a</arg_key:opensource>\n<arg_value:opensource>x <y>"
        "</arg_value:opensource>"},
       {"<arg_key>a</arg_key><arg_value>x</arg_value>"}},
      {R"({"type":"json_schema","style":"minimax_xml","json_schema":{"type":"object"}})",
       {"", "<parameter name=\"any_1\">{\"a\":1}</parameter>"},
       {"<parameter name=\"1\">x</parameter>"}},
  };
  for (const Example& example : examples) {
    const auto grammar = Compile(example.format);
    ASSERT_TRUE(grammar.ok()) << example.format << ": " << grammar.error().ToString();
    for (const char* text : example.yes) {
      EXPECT_TRUE(Accepts(*grammar, text)) << example.format << " on " << text;
    }
    for (const char* text : example.no) {
      EXPECT_FALSE(Accepts(*grammar, text)) << example.format << " on " << text;
    }
  }
}

TEST(StructuralTag, SpecialTokensFitWhereAStringNamesThem) {
  const auto grammar =
      Compile(R"({"type":"triggered_tags","triggers":["<t>"],"tags":[{"begin":"<t>a","content":
               {"type":"const_string","value":"b"},"end":"<t>"}]})",
              {}, Tokens());
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const TokenId t = 37, a = 0, b = 1, c = 2;
  State state = grammar->Start();
  for (const TokenId id : {c, t, a, b, t, c}) {
    ASSERT_TRUE(state.mask()->Allows(id));
    const auto next = state.Advance(id);
    ASSERT_TRUE(next) << id;
    state = *next;
  }
  EXPECT_TRUE(state.accepting());
  EXPECT_TRUE(Accepts(*grammar, "c<t>ab<t>c"));
  EXPECT_FALSE(Accepts(*grammar, "c<t>b"));
  EXPECT_FALSE(grammar->Start().Advance(t)->Advance(t));
}

TEST(StructuralTag, TheOlderForm) {
  const auto grammar = Compiler(Bytes()).CompileStructuralTag(
      R"({"type":"structural_tag","triggers":["<f="],"structures":[
          {"begin":"<f=a>","schema":{"type":"integer"},"end":"</f>"},
          {"begin":"<f=b>","schema":"{\"type\":\"boolean\"}","end":"</f>"}]})");
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  EXPECT_TRUE(Accepts(*grammar, "x<f=a>1</f>y<f=b>true</f>"));
  EXPECT_FALSE(Accepts(*grammar, "<f=b>1</f>"));
}

TEST(StructuralTag, ErrorsHaveAPointer) {
  const struct {
    const char *format, *place;
    ErrorCode code;
  } cases[] = {
      {R"({"type":"x"})", "#/format/type", ErrorCode::kInvalid},
      {R"({"value":"x"})", "#/format/type", ErrorCode::kInvalid},
      {R"([])", "#/format", ErrorCode::kInvalid},
      {R"({"type":"const_string"})", "#/format/value", ErrorCode::kInvalid},
      {R"({"type":"const_string","value":1})", "#/format/value", ErrorCode::kInvalid},
      {R"({"type":"const_string","value":"","valu":1})", "#/format/valu", ErrorCode::kUnsupported},
      {R"({"type":"sequence","elements":[{"type":"any_text"},{"type":"regex","pattern":"("}]})",
       "#/format/elements/1/pattern, byte 1", ErrorCode::kInvalid},
      {R"({"type":"grammar","grammar":"root ::= x"})", "#/format/grammar, 1:10",
       ErrorCode::kInvalid},
      {R"({"type":"json_schema","json_schema":{"properties":{"a":{"type":"strin"}}}})",
       "#/format/json_schema/properties/a/type", ErrorCode::kInvalid},
      {R"({"type":"tag","begin":"","end":"","content":{"type":"json_schema","json_schema":
          {"type":"integer","minimum":2,"maximum":1}}})",
       "#/format/content/json_schema", ErrorCode::kUnsatisfiable},
      {R"({"type":"triggered_tags","triggers":[""],"tags":[]})", "#/format/triggers/0",
       ErrorCode::kInvalid},
      {R"({"type":"triggered_tags","triggers":["a"],"tags":[{"begin":"b","end":"","content":
          {"type":"any_text"}}]})",
       "#/format/tags/0/begin", ErrorCode::kInvalid},
      {R"({"type":"triggered_tags","triggers":["a","ab"],"tags":[{"begin":"abc","end":"",
          "content":{"type":"any_text"}}]})",
       "#/format/tags/0/begin", ErrorCode::kInvalid},
      {R"({"type":"triggered_tags","triggers":["ab"],"excludes":["a"],"tags":[{"begin":"ab",
          "end":"","content":{"type":"any_text"}}]})",
       "#/format/triggers/0", ErrorCode::kInvalid},
      // Bug: what is both a trigger and excluded was taken as both.
      {R"({"type":"triggered_tags","triggers":["ab"],"excludes":["ab"],"tags":[{"begin":"ab",
          "end":"","content":{"type":"any_text"}}]})",
       "#/format/triggers/0", ErrorCode::kInvalid},
      {R"({"type":"token","token":"nothing"})", "#/format/token", ErrorCode::kInvalid},
      {R"({"type":"token","token":257})", "#/format/token", ErrorCode::kInvalid},
      {R"({"type":"repeat","min":2,"max":1,"content":{"type":"any_text"}})", "#/format/max",
       ErrorCode::kInvalid},
      {R"({"type":"json_schema","style":"qwen_xml","json_schema":{"type":"array"}})",
       "#/format/json_schema/type", ErrorCode::kUnsupported},
      {R"({"type":"json_schema","style":"qwen_xml","json_schema":{"properties":{"a":{"not":{}}}}})",
       "#/format/json_schema/properties/a/not", ErrorCode::kUnsupported},
      {R"({"type":"json_schema","style":"gemma4","json_schema":{"properties":{"a b":{}}}})",
       "#/format/json_schema/properties/a b", ErrorCode::kUnsupported},
      {R"({"type":"json_schema","style":"python","json_schema":{"properties":{"a=":{}}}})",
       "#/format/json_schema/properties/a=", ErrorCode::kUnsupported},
      {R"({"type":"json_schema","style":"python","any_order":true,"json_schema":{"properties":{}}})",
       "#/format/json_schema", ErrorCode::kUnsupported},
      {R"({"type":"json_schema","style":"xml","json_schema":{}})", "#/format/style",
       ErrorCode::kInvalid},
  };
  for (const auto& [format, place, code] : cases) {
    const auto grammar = Compile(format);
    ASSERT_FALSE(grammar.ok()) << format;
    EXPECT_TRUE(grammar.error().place.starts_with(place))
        << format << ": " << grammar.error().ToString();
    EXPECT_EQ(grammar.error().code, code) << format << ": " << grammar.error().ToString();
  }
  std::string deep = R"({"type":"any_text"})";
  for (int i = 0; i < 300; ++i) deep = R"({"type":"star","content":)" + deep + "}";
  const auto grammar = Compile(deep);
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().code, ErrorCode::kLimit);
  // Bug: what is nested too deep for JSON had no place.
  const auto deeper = Compile("[\n" + std::string(9999, '['));
  ASSERT_FALSE(deeper.ok());
  EXPECT_EQ(deeper.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(deeper.error().place.starts_with("2:")) << deeper.error().ToString();
}

TEST(StructuralTag, Presets) {
  const Tool tools[] = {
      {"weather", R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"],
                      "additionalProperties":false})"},
      {"time", R"({"type":"object","properties":{},"additionalProperties":false})"}};
  const struct {
    const char *name, *call, *other_call, *wrong;
  } formats[] = {
      {"llama3", R"({"name": "weather", "parameters": {"city":"Rome"}})",
       R"({"name": "time", "parameters": {}})", R"({"name": "time", "parameters": []})"},
      {"hermes",
       "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":\"Rome\"}}\n</tool_call>",
       "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>",
       "<tool_call>\n{\"name\": \"tim\", \"arguments\": {}}\n</tool_call>"},
      {"qwen_xml",
       "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n"
       "</tool_call>",
       "<tool_call>\n<function=time>\n</function>\n</tool_call>",
       "<tool_call>\n<function=weather>\n</function>\n</tool_call>"},
      {"deepseek_r1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
       "{\"city\":\"Rome\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n"
       "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"},
      {"deepseek_v3_1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\":\"Rome\"}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁calls▁end｜>"},
      {"mistral", R"([TOOL_CALLS][{"name": "weather", "arguments": {"city":"Rome"}}])",
       R"([TOOL_CALLS] [{"name": "time", "arguments": {}}])", "[TOOL_CALLS][]"},
      {"gpt_oss",
       "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Rome\"}"
       "<|call|>",
       " to=functions.time<|channel|>commentary json<|message|>{}<|call|>",
       "<|channel|>commentary to=functions.tim <|constrain|>json<|message|>{}<|call|>"},
  };
  for (const auto& [name, call, other, wrong] : formats) {
    const auto format = ToolCallFormatOf(name);
    ASSERT_TRUE(format) << name;
    const bool harmony = *format == ToolCallFormat::kGptOss;
    const bool thinks = *format != ToolCallFormat::kLlama3;
    const std::string thought = harmony
                                    ? "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                                : *format == ToolCallFormat::kMistral ? "hm[/THINK]"
                                                                      : "<think>hm</think>\n\n";
    const std::string text = harmony ? "<|channel|>final<|message|>Hi" : "Hi";
    using Choice = ToolCallOptions::Choice;
    for (const Choice choice : {Choice::kAuto, Choice::kRequired, Choice::kNamed}) {
      for (const bool reasoning : {false, true}) {
        const auto tag = ToolCallTag(*format, tools,
                                     {.choice = choice, .named = "time", .reasoning = reasoning});
        ASSERT_TRUE(tag.ok()) << tag.error().ToString();
        const auto grammar = Compiler(Bytes()).CompileStructuralTag(*tag);
        ASSERT_TRUE(grammar.ok()) << *tag << grammar.error().ToString();
        const std::string before = reasoning && thinks ? thought : "";
        EXPECT_TRUE(Accepts(*grammar, before + other)) << *tag;
        EXPECT_EQ(Accepts(*grammar, before + call), choice != Choice::kNamed) << *tag;
        EXPECT_EQ(Accepts(*grammar, before + text), choice == Choice::kAuto) << *tag;
        EXPECT_FALSE(Accepts(*grammar, before + wrong)) << *tag;
        EXPECT_EQ(Accepts(*grammar, call), choice != Choice::kNamed && (before.empty() || harmony))
            << *tag;
        if (!harmony && choice == Choice::kAuto) {
          EXPECT_TRUE(Accepts(*grammar, before + "Hi " + call)) << *tag;
        }
      }
    }
  }
  EXPECT_FALSE(ToolCallFormatOf("gpt"));
  EXPECT_FALSE(ToolCallTag(ToolCallFormat::kHermes, tools,
                           {.choice = ToolCallOptions::Choice::kNamed, .named = "x"})
                   .ok());
  EXPECT_FALSE(
      ToolCallTag(ToolCallFormat::kHermes, {}, {.choice = ToolCallOptions::Choice::kRequired})
          .ok());
  const Tool broken[] = {{"f", "{"}};
  EXPECT_FALSE(ToolCallTag(ToolCallFormat::kHermes, broken).ok());
  EXPECT_TRUE(ToolCallTag(ToolCallFormat::kHermes, {}).ok());
}

TEST(StructuralTag, TheExample) {
  const std::string name = SourceDir() + "/grammar/examples/tool_calls.structural_tag";
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto grammar = Compiler(Bytes()).CompileStructuralTag(read(name + ".json"));
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  std::istringstream samples(read(name + ".samples"));
  int lines = 0;
  for (std::string line; std::getline(samples, line); ++lines)
    EXPECT_EQ(Accepts(*grammar, line.substr(2)), line[0] == '+') << line;
  EXPECT_GT(lines, 5);
}

TEST(StructuralTag, AThousandTags) {
  std::string tags, triggers;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "<tool_" + std::to_string(i) + ">";
    tags += (i == 0 ? "" : ",") + std::string(R"({"begin":")") + name +
            R"(","end":"</tool>","content":{"type":"json_schema","json_schema":{"const":)" +
            std::to_string(i) + "}}}";
    triggers += (i == 0 ? "\"" : ",\"") + name + "\"";
  }
  for (const std::string& list : {std::string(R"("<tool_")"), triggers}) {
    const auto grammar =
        Compile(R"({"type":"triggered_tags","triggers":[)" + list + R"(],"tags":[)" + tags + "]}");
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    EXPECT_TRUE(Accepts(*grammar, "a<tool_7>7</tool> <tool_999>999</tool>."));
    EXPECT_FALSE(Accepts(*grammar, "a<tool_7>8</tool>"));
    EXPECT_GT(grammar->Start().mask()->count(), 150);
  }
}

}  // namespace
}  // namespace pawl
