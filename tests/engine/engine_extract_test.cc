// Extraction by the public engine: the options that a model's files give, what an output says of
// its schema, prompts of further tries, and records of samplers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

const std::string kShipped = SourceDir() + "/models/tiny-extract";
constexpr const char* kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},)"
    R"("age":{"type":"integer","minimum":0,"maximum":99}},"required":["name"]})";

// The model that ships with another pawl.json.
class OwnFolder {
 public:
  explicit OwnFolder(const std::string& pawl_json)
      : path_(testing::TempDir() + "/pawl_own_" + std::to_string(::getpid())) {
    fs::create_directories(path_);
    for (const auto& file : fs::directory_iterator(kShipped)) {
      if (file.is_regular_file()) {
        fs::copy_file(file, path_ / file.path().filename(), fs::copy_options::overwrite_existing);
      }
    }
    std::ofstream(path_ / "pawl.json", std::ios::trunc) << pawl_json;
  }
  ~OwnFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  Engine Load() const {
    Result<Engine> engine = Engine::Load(path_.string());
    EXPECT_TRUE(engine.ok()) << engine.error().ToString();
    return *std::move(engine);
  }

 private:
  fs::path path_;
};

Grammar CompiledFor(const Engine& engine, const std::string& schema) {
  const Compiler compiler(engine.vocabulary());
  const Result<Grammar> grammar = compiler.CompileJsonSchema(schema, engine.extract_options("Ann"));
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  return *grammar;
}

TEST(EngineExtractTest, ASchemaThatNothingFitsClosedIsReadAsItStands) {
  Result<Engine> engine = Engine::Load(kShipped);
  ASSERT_TRUE(engine.ok());
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}},)"
                             R"("required":["a","b"],"maxProperties":2})";
  const std::string note = "#: no value fits with closed objects, so additional keys are allowed";
  const Grammar grammar = CompiledFor(*engine, schema);
  ASSERT_FALSE(grammar.notes().empty());
  EXPECT_EQ(grammar.notes().back(), note);
  EngineRequest request;
  request.extract = ExtractInput{schema, "Ann Lee"};
  request.grammar = grammar;
  const Result<Generation> output = engine->Generate(request);
  ASSERT_TRUE(output.ok()) << output.error().ToString();
  EXPECT_NE(output->text.find("\"b\":"), std::string::npos) << output->text;
  EXPECT_NE(std::ranges::find(output->notes, note), output->notes.end());
  // Who asks for closed objects gets the error.
  JsonSchemaOptions closed = engine->extract_options();
  closed.open_if_unsatisfiable = false;
  const Compiler compiler(engine->vocabulary());
  const Result<Grammar> none = compiler.CompileJsonSchema(schema, closed);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsatisfiable);
}

TEST(EngineExtractTest, SettingsOfPawlJsonHoldWhereARequestSaysNothing) {
  const OwnFolder folder(
      R"({"extract":{"schema_view":"template","instruction":"Name the person.","keys":"required","prefer_text":2,)"
      R"("separators":[", ",": "],"examples":[{"text":"Bo is 7","record":{"name":"Bo","age":7}}]}})");
  Engine engine = folder.Load();
  const JsonSchemaOptions options = engine.extract_options();
  EXPECT_EQ(options.keys, JsonSchemaOptions::Keys::kRequired);
  EXPECT_EQ(options.item_separator, ", ");
  for (const ExtractDefault& one : engine.extract_defaults()) {
    EXPECT_EQ(one.source, one.name == "whitespace" || one.name == "nulls" ? "default" : "pawl.json")
        << one.name;
  }
  EngineRequest request;
  request.extract = ExtractInput{kPerson, "Ann Lee"};
  request.grammar = CompiledFor(engine, kPerson);
  const auto prompt = [&] {
    const Result<std::vector<TokenId>> tokens = engine.PromptTokens(request);
    EXPECT_TRUE(tokens.ok()) << tokens.error().ToString();
    return tokens.ok() ? engine.Decode(*tokens) : "";
  };
  const std::string open = prompt();
  EXPECT_NE(open.find("Name the person.\n\nTemplate: {\"name\": \"string\""), std::string::npos)
      << open;
  EXPECT_NE(open.find(R"(JSON: {"name": "Bo", "age": 7})"), std::string::npos) << open;
  request.extract->view = SchemaView::kAuto;
  request.extract->instruction = "Who?";
  request.extract->examples = {{"Cy", R"({"name":"Cy"})"}};
  const std::string asked = prompt();
  EXPECT_NE(asked.find("Who?\n\nKeys: name, age"), std::string::npos) << asked;
  EXPECT_EQ(asked.find("Bo"), std::string::npos) << asked;
  request.extract->record = R"({"name": "Lee"})";
  request.extract->problem = "the name is not whole";
  EXPECT_NE(prompt().find("JSON: {\"name\": \"Lee\"}\nThis JSON is wrong: the name is not whole\n"),
            std::string::npos)
      << prompt();
}

// The product of the values' tokens as reports tell them, and choices that add up to 1.
TEST(EngineExtractTest, DetailsAreTheFiguresOfTheTokens) {
  EngineOptions options;
  options.drafts.sources = "auto";
  options.drafts.always = true;
  Result<Engine> engine = Engine::Load(kShipped, options);
  ASSERT_TRUE(engine.ok());
  const std::string schema = R"({"type":"object","properties":{"kind":{"enum":["person","firm",)"
                             R"("street"]},"name":{"type":"string"},"old":{"type":"boolean"}},)"
                             R"("required":["kind","name","old"]})";
  EngineRequest request;
  request.extract = ExtractInput{schema, "Ann Lee lives in Rome"};
  request.grammar = CompiledFor(*engine, schema);
  request.options.max_tokens = 80;
  request.options.sampling = {.temperature = 1, .seed = 5};
  const Result<Generation> plain = engine->Generate(request);
  ASSERT_TRUE(plain.ok()) << plain.error().ToString();
  EXPECT_TRUE(plain->details.empty() && plain->figures.empty());
  request.options.details = true;
  std::string text;
  std::vector<TokenReport> reports;
  std::vector<size_t> ends;
  request.options.logprobs = 0;
  request.options.on_report = [&](const TokenReport& report) {
    text += report.bytes;
    ends.push_back(text.size());
    reports.push_back(report);
    return true;
  };
  std::string first;
  for (const bool drafts : {true, false}) {
    request.options.drafts = drafts;
    text.clear(), ends.clear(), reports.clear();
    const Result<Generation> output = engine->Generate(request);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(output->text, plain->text);
    ASSERT_EQ(output->details.size(), 3u);
    EXPECT_EQ(output->figures.size(), output->tokens.size());
    const std::string json = DetailsJson(output->details);
    if (first.empty()) first = json;
    EXPECT_EQ(json, first);
    const size_t from = text.find("\"name\":") + 7, end = text.find(",\"old\"");
    double log_probability = 0, surprise = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] <= from || (i > 0 && ends[i - 1] >= end)) continue;
      log_probability += double{reports[i].logprob};
      surprise += double{reports[i].surprise};
    }
    EXPECT_EQ(output->details[1].pointer, "/name");
    EXPECT_NEAR(*output->details[1].probability, std::exp(log_probability), 1e-9);
    EXPECT_NEAR(output->details[1].surprise, surprise, 1e-9);
    EXPECT_GT(surprise, 0);
    ASSERT_EQ(output->details[0].alternatives.size(), 3u) << json;
    ASSERT_EQ(output->details[2].alternatives.size(), 2u) << json;
    for (const size_t i : {0, 2}) {
      double sum = 0, before = 1;
      for (const ValueDetails::Alternative& one : output->details[i].alternatives) {
        EXPECT_LE(one.probability, before);
        sum += before = one.probability;
      }
      EXPECT_NEAR(sum, 1, 1e-9);
    }
  }
}

TEST(EngineExtractTest, SamplersGiveRecords) {
  Result<Engine> engine = Engine::Load(kShipped);
  ASSERT_TRUE(engine.ok());
  EngineRequest request;
  request.extract = ExtractInput{kPerson, "Ann Lee"};
  request.grammar = CompiledFor(*engine, kPerson);
  int left_out = 0;
  bool saw_null = false;
  for (const SamplerKind kind : {SamplerKind::kGcd, SamplerKind::kSmc, SamplerKind::kAsap}) {
    SamplerOptions options;
    options.sampler = kind;
    options.n = 6;
    options.particles = 3;
    options.max_tokens = 60;
    options.temperature = 2;
    options.checks = {MakeCheck(CheckGranularity::kByte, [&](const CheckQuestion& question) {
      saw_null = saw_null || question.text.find("\"age\":null") != std::string_view::npos;
      return Result<Verdict>(Verdict::kAccept);
    })};
    std::vector<std::string> told;
    options.on_output = [&](const WeightedOutput& output) {
      told.push_back(output.text);
      return true;
    };
    const Result<SamplerResult> result = engine->Sample(request, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    ASSERT_EQ(result->outputs.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const WeightedOutput& output = result->outputs[i];
      EXPECT_EQ(output.text, told[i]);
      if (!output.report.valid) continue;
      EXPECT_EQ(output.text.find("\"age\":null"), std::string::npos) << output.text;
      left_out += output.text.find("age") == std::string::npos;
      // The tokens are those that the model wrote.
      EXPECT_NE(engine->Decode(output.tokens).find("age"), std::string::npos);
    }
  }
  EXPECT_GT(left_out, 0);
  EXPECT_FALSE(saw_null);
}

// A text of many orders, longer than the chunks that the tests ask for.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 24; ++i) {
    text += "Ann Lee ordered part " + std::to_string(100 + i) +
            " on 5 March 2024. It was sent to Zo\u00eb in Porto a week later.\n\n";
  }
  return text;
}
constexpr const char* kOrders =
    R"({"type":"object","properties":{"parts":{"type":"array","items":{"type":"object",)"
    R"("properties":{"who":{"type":"string","x-pawl-source":"span"},"number":{"type":"integer",)"
    R"("x-pawl-source":"span"}},"required":["who","number"]},"minItems":1,"maxItems":9},)"
    R"("city":{"enum":["Porto","Leeds",null]}},"required":["parts","city"]})";

EngineOptions BatchesOf(int most) {
  EngineOptions options;
  options.max_batch = most;
  return options;
}

EngineRequest DocumentRequest(const Engine& engine) {
  EngineRequest request;
  request.extract = ExtractInput{kOrders, LongText()};
  JsonSchemaOptions options = engine.extract_options("");
  options.bind_source = true;
  const Result<Grammar> grammar = Compiler(engine.vocabulary()).CompileJsonSchema(kOrders, options);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  request.grammar = *grammar;
  request.document = DocumentOptions{120, 2};
  return request;
}

// The bug: a value was copied across the border of two messages. And what reads a grammar by itself
// took any value for one that waits for its text.
TEST(EngineExtractTest, AChatCopiesFromOneMessage) {
  EngineOptions with_template;
  with_template.chat_template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}";
  Result<Engine> engine = Engine::Load(kShipped, with_template);
  ASSERT_TRUE(engine.ok());
  JsonSchemaOptions options;
  options.bind_source = true;
  const Compiler compiler(engine->vocabulary());
  const auto grammar_of = [&](const std::string& value) {
    return *compiler.CompileJsonSchema(
        R"({"type":"string","x-pawl-source":"span","enum":[")" + value + "\"]}", options);
  };
  EngineRequest request;
  request.messages = {{"user", "Ann"}, {"assistant", "Eve"}, {"user", "Lee is here"}};
  for (const char* value : {"Ann", "Lee is", "Lee is here"}) {
    request.grammar = grammar_of(value);
    const Result<Generation> output = engine->Generate(request);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(output->text, '"' + std::string(value) + '"');
  }
  for (const char* value : {"Ann Lee", "Eve", "Ann Eve"}) {
    request.grammar = grammar_of(value);
    const Result<Generation> output = engine->Generate(request);
    ASSERT_FALSE(output.ok()) << output->text;
    EXPECT_EQ(output.error().place, "#/x-pawl-source");
  }
  const Grammar waits = grammar_of("Ann");
  const auto judged = MakeGrammarCheck(waits)->Judge({.text = "\"", .tokens = {}});
  ASSERT_FALSE(judged.ok());
  EXPECT_EQ(judged.error().place, "#/x-pawl-source");
  EngineRequest own;
  own.prompt = "Ann";
  own.constraint = MakeConstraint(waits);
  const Result<Generation> output = engine->Generate(own);
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.error().message.find("#/x-pawl-source"), std::string::npos);
}

TEST(EngineExtractTest, DocumentsAreOneRecordWhateverTheBatch) {
  std::vector<std::string> texts, conflicts;
  for (const int batch : {1, 8}) {
    Result<Engine> engine = Engine::Load(kShipped, BatchesOf(batch));
    ASSERT_TRUE(engine.ok());
    const EngineRequest request = DocumentRequest(*engine);
    const std::string& text = request.extract->text;
    const Result<Generation> output = engine->Generate(request);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_GT(output->chunks, 8);
    EXPECT_GT(output->stats.prompt_tokens, 1000);
    // Fits the schema, and values stand where the details say.
    const std::optional<State> state = request.grammar->Start().Advance(output->text);
    EXPECT_TRUE(state && state->accepting()) << output->text;
    int placed = 0;
    for (const ValueDetails& value : output->details) {
      EXPECT_TRUE(value.alternatives.empty());
      if (!value.span) continue;
      ++placed;
      const auto begin = static_cast<size_t>(value.span->begin_byte);
      const std::string part =
          text.substr(begin, static_cast<size_t>(value.span->end_byte) - begin);
      EXPECT_NE(output->text.find(part), std::string::npos) << value.pointer;
      EXPECT_LT(value.span->begin, value.span->begin_byte + 1);
    }
    EXPECT_GT(placed, 2);
    texts.push_back(output->text);
    conflicts.push_back(ConflictsJson(output->conflicts));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(conflicts[0], conflicts[1]);
}

TEST(EngineExtractTest, ADocumentOfOneChunkIsTheTextAlone) {
  Result<Engine> engine = Engine::Load(kShipped);
  ASSERT_TRUE(engine.ok());
  EngineRequest request = DocumentRequest(*engine);
  request.extract->text = "Ann Lee ordered part 7 for Porto.";
  request.document = DocumentOptions();
  request.options.details = true;
  const Result<Generation> one = engine->Generate(request);
  request.document.reset();
  const Result<Generation> plain = engine->Generate(request);
  ASSERT_TRUE(one.ok() && plain.ok());
  EXPECT_EQ(one->text, plain->text);
  EXPECT_EQ(DetailsJson(one->details), DetailsJson(plain->details));
  EXPECT_EQ(one->chunks, 1);
  EXPECT_TRUE(one->conflicts.empty());
}

TEST(EngineExtractTest, MistakesAboutDocumentsAreNamed) {
  Result<Engine> engine = Engine::Load(kShipped);
  ASSERT_TRUE(engine.ok());
  const EngineRequest good = DocumentRequest(*engine);
  const auto place = [&](const std::function<void(EngineRequest&)>& change) {
    EngineRequest request = good;
    change(request);
    const Result<Generation> output = engine->Generate(request);
    return output.ok() ? std::string("no error") : output.error().place;
  };
  EXPECT_EQ(place([](EngineRequest& r) { r.document->chunk_tokens = 3; }), "chunk_tokens");
  EXPECT_EQ(place([](EngineRequest& r) { r.document->chunk_tokens = 1 << 20; }), "chunk_tokens");
  EXPECT_EQ(place([](EngineRequest& r) { r.document->passes = 0; }), "passes");
  EXPECT_EQ(place([](EngineRequest& r) { r.stops = {"x"}; }), "stops");
  EXPECT_EQ(place([](EngineRequest& r) { r.extract->text = " \n"; }), "text");
  EXPECT_EQ(place([](EngineRequest& r) { r.grammar.reset(); }), "document");
  EXPECT_EQ(place([](EngineRequest& r) {
              r.extract.reset();
              r.prompt = "x";
            }),
            "document");
}

TEST(EngineExtractTest, ADocumentThatIsCancelledEndsWithWhatItHas) {
  Result<Engine> engine = Engine::Load(kShipped, BatchesOf(2));
  ASSERT_TRUE(engine.ok());
  std::optional<Result<Generation>> answer;
  const Result<RequestId> id = engine->Add(
      DocumentRequest(*engine), [&](Result<Generation> output) { answer = std::move(output); });
  ASSERT_TRUE(id.ok());
  for (int i = 0; i < 40 && engine->Step(); ++i) {
  }
  ASSERT_FALSE(answer.has_value());
  engine->Cancel(*id);
  while (engine->Step()) {
  }
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(answer->ok()) << answer->error().ToString();
  EXPECT_EQ((*answer)->stop, StopReason::kCancelled);
}

}  // namespace
}  // namespace pawl
