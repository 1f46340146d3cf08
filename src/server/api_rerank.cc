// /v1/rerank: documents in the order in which they answer a query, as the APIs of Jina and Cohere
// have it, for models with a head for that.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/server/api.h"

namespace pawl::server {
namespace {

constexpr size_t kMostDocuments = 2048;

class RerankFormatter : public Formatter {
 public:
  struct Wants {
    size_t top_n = 0;
    bool documents = false;  // in the answer
    bool raw = false;        // logits in place of probabilities
  };
  RerankFormatter(const RerankHead& head, std::vector<std::string> documents, const Wants& wants)
      : head_(head), documents_(std::move(documents)), wants_(wants) {}

  void Add(const CallOut&, const ChoiceOut&, std::span<const Delta>, size_t,
           std::string&) override {}
  void End(const CallOut&, std::string&) override {}

  HttpReply Whole(const CallOut& out) override {
    std::vector<double> scores;
    for (const ChoiceOut& choice : out.choices) {
      const double logit = head_.Logit(choice.embedding);
      scores.push_back(wants_.raw ? logit : 1 / (1 + std::exp(-logit)));
    }
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return scores[i]; });
    order.resize(std::min(order.size(), wants_.top_n));
    JsonWriter json;
    json.Object().Key("id").String("rerank-" + out.id).Key("object").String("list");
    json.Key("model").String(out.model).Key("results").Array();
    for (const size_t i : order) {
      json.Object().Key("index").Int(static_cast<int64_t>(i));
      json.Key("relevance_score").Number(scores[i]);
      if (wants_.documents) {
        json.Key("document").Object().Key("text").String(documents_[i]).End();
      }
      json.End();
    }
    json.End().Key("usage").Object();
    json.Key("prompt_tokens").Int(out.prompt_tokens);
    json.Key("total_tokens").Int(out.prompt_tokens).End();
    json.Key("pawl").Object().Key("ignored").Array();
    for (const std::string& pointer : out.ignored) json.String(pointer);
    HttpReply reply;
    reply.body = json.End().End().End().Take();
    return reply;
  }

 private:
  const RerankHead& head_;  // of the model, which the call keeps
  const std::vector<std::string> documents_;
  const Wants wants_;
};

// Texts, or objects with one.
std::vector<std::string> ReadDocuments(const JsonReader& in) {
  std::vector<std::string> documents;
  const JsonReader list = in.Array();
  if (in.ok() && (list.size() == 0 || list.size() > kMostDocuments)) {
    in.Fail("must have 1 to " + std::to_string(kMostDocuments) + " documents, not " +
            std::to_string(list.size()));
  }
  for (const JsonReader item : list.items()) {
    if (!in.ok()) break;
    documents.push_back((item.IsObject() ? item["text"] : item).String());
  }
  return documents;
}

}  // namespace

Status StartRerank(const ApiRequest& request) {
  const ServedModel& model = *request.server->model;
  const JsonReader in = JsonReader(request.body).Object();
  if (!model.rerank().ok()) {
    return Error{ErrorCode::kUnsupported, "cannot rank: " + model.rerank().error().ToString(),
                 "#/model"};
  }
  CallSpec spec;
  spec.route = "/v1/rerank";
  spec.embeds = Pooling{.kind = Pooling::Kind::kLast, .normalize = false};
  spec.adapter = request.adapter;
  spec.key = request.key;
  const std::string query = in["query"].String();
  std::vector<std::string> documents = ReadDocuments(in["documents"]);
  RerankFormatter::Wants wants;
  wants.top_n = static_cast<size_t>(in["top_n"].Whole(1, int64_t{1} << 31, kMostDocuments));
  wants.documents = in["return_documents"].Bool(false);
  wants.raw = in["raw_scores"].Bool(false);
  if (in["stream"].Bool(false)) in["stream"].Unsupported("is not there for ranks");
  if (!in.ok()) return in.error();
  for (size_t i = 0; i < documents.size(); ++i) {
    PromptSpec prompt;
    prompt.text = query;
    prompt.pair = documents[i];
    prompt.framed = true;
    prompt.pointer = "#/documents/" + std::to_string(i);
    spec.prompts.push_back(std::move(prompt));
  }
  in.Ignore({"model", "user"});
  AddIgnored(in, spec);
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<RerankFormatter>(*model.rerank(), std::move(documents), wants));
  return {};
}

}  // namespace pawl::server
