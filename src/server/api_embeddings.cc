// /v1/embeddings: one vector for each text, of models whose files say how states become one, or of
// any model with `pawl serve --pooling`.
#include <bit>
#include <cstdint>
#include <utility>

#include "src/server/api.h"

namespace pawl::server {
namespace {

// The bytes of the numbers, the lowest first, as clients ask for them by default.
std::string Base64(std::span<const float> numbers) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes, out;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = i; j < i + 3; ++j) {
      three = three << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += kDigits[three >> shift & 63];
  }
  const size_t past = (3 - bytes.size() % 3) % 3;
  out.replace(out.size() - past, past, past, '=');
  return out;
}

class EmbeddingFormatter : public Formatter {
 public:
  EmbeddingFormatter(size_t dimensions, bool base64) : dimensions_(dimensions), base64_(base64) {}

  void Add(const CallOut&, const ChoiceOut&, std::span<const Delta>, size_t,
           std::string&) override {}
  void End(const CallOut&, std::string&) override {}

  HttpReply Whole(const CallOut& out) override {
    JsonWriter json;
    json.Object().Key("object").String("list").Key("data").Array();
    for (const ChoiceOut& choice : out.choices) {
      std::vector<float> vector = choice.embedding;
      if (dimensions_ > 0) {
        vector.resize(dimensions_);
        Normalize(vector);
      }
      json.Object().Key("object").String("embedding").Key("index").Int(choice.index);
      json.Key("embedding");
      if (base64_) {
        json.String(Base64(vector));
      } else {
        json.Array();
        for (const float number : vector) json.Number(double{number});
        json.End();
      }
      json.End();
    }
    json.End().Key("model").String(out.model).Key("usage").Object();
    json.Key("prompt_tokens").Int(out.prompt_tokens);
    json.Key("total_tokens").Int(out.prompt_tokens).End();
    json.Key("pawl").Object().Key("ignored").Array();
    for (const std::string& pointer : out.ignored) json.String(pointer);
    HttpReply reply;
    reply.body = json.End().End().End().Take();
    return reply;
  }

 private:
  const size_t dimensions_;  // 0: all
  const bool base64_;
};

}  // namespace

Status StartEmbeddings(const ApiRequest& request) {
  const ServedModel& model = *request.server->model;
  const JsonReader in = JsonReader(request.body).Object();
  if (!model.pooling().ok()) {
    const Error& why = model.pooling().error();
    return Error{ErrorCode::kUnsupported,
                 "has no embeddings: its files do not say how they are made (" + why.ToString() +
                     "); to choose, start the server with --pooling mean or --pooling last",
                 "#/model"};
  }
  CallSpec spec;
  spec.route = "/v1/embeddings";
  spec.embeds = *model.pooling();
  spec.adapter = request.adapter;
  spec.key = request.key;
  if (Status status = ReadPrompts(in["input"], *request.server, spec.prompts); !status.ok()) {
    return status;
  }
  for (PromptSpec& prompt : spec.prompts) {
    prompt.parse_special = false;
    prompt.framed = true;
    prompt.thinking = {.mode = Thinking::Mode::kOff};
  }
  const std::string format = in["encoding_format"].String("float");
  if (format != "float" && format != "base64") {
    in["encoding_format"].Fail("must be float or base64");
  }
  const int64_t dimensions = in["dimensions"].Whole(1, model.info().hidden, 0);
  if (in["stream"].Bool(false)) in["stream"].Unsupported("is not there for embeddings");
  if (!in.ok()) return in.error();
  in.Ignore({"model", "user"});
  AddIgnored(in, spec);
  Call::Start(
      request.server, request.exchange, std::move(spec),
      std::make_unique<EmbeddingFormatter>(static_cast<size_t>(dimensions), format == "base64"));
  return {};
}

}  // namespace pawl::server
