// What a call tells about its prompts, apart from their outputs: their tokens in front of an
// output, the model's probabilities of these, and what the details of a record are about.
#include <utility>

#include "src/base/failure.h"
#include "src/server/api.h"
#include "src/server/call_choice.h"
#include "src/server/server_state.h"

namespace pawl::server {

// The prompts' own probabilities come first; what a prompt is scored for is the same for all of its
// choices.
void Call::ScorePrompts() {
  scores_.resize(spec_.prompts.size());
  score_left_ = static_cast<int>(spec_.prompts.size());
  for (size_t p = 0; p < spec_.prompts.size(); ++p) {
    Choice& choice = *choices_[p * static_cast<size_t>(spec_.draws())];
    auto done = [self = shared_from_this(), p](Result<TokenScores> scores) {
      const Status told = Guarded([&]() -> Status {
        self->Scored(p, std::move(scores));
        return {};
      });
      if (!told.ok()) self->GiveUp(FailureError(told.error()));
    };
    // Locked, so that what follows the scores does not set the id first.
    const std::lock_guard lock(mutex_);
    const Result<AsyncEngine::Id> id =
        server_->engine->SubmitScore(choice.prompt_tokens, {.top = spec_.options.logprobs}, group_,
                                     std::move(done), spec_.adapter);
    if (id.ok()) {
      choice.id = *id;
      continue;
    }
    failure_ = FromError(id.error(), "");
    if (--score_left_ > 0) continue;
    server_->workers->Submit([self = shared_from_this()] { self->OnWorker(&Call::Launch); }, size_);
  }
}

void Call::Scored(size_t prompt, Result<TokenScores> scores) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    if (scores.ok()) {
      scores_[prompt] = *std::move(scores);
    } else if (!failure_) {
      failure_ = FromError(scores.error(), spec_.prompts[prompt].pointer);
    }
    last = --score_left_ == 0;
  }
  if (last) {
    server_->workers->Submit([self = shared_from_this()] { self->OnWorker(&Call::Launch); }, size_);
  }
}

void Call::EchoPrompts() {
  for (const auto& choice : choices_) {
    ChoiceOut& out = out_.choices[static_cast<size_t>(choice->index)];
    const Tokenizer& tokenizer = server_->model->tokenizer();
    // Tokens of a client may end inside of characters.
    out.content = ShownBytes(tokenizer.Decode(choice->prompt_tokens, true)) + out.content;
    if (scores_.empty()) continue;
    std::vector<TokenEntry> prompt;
    const TokenScores& scores = scores_[choice->prompt];
    for (size_t i = 0; i < choice->prompt_tokens.size(); ++i) {
      TokenEntry entry;
      entry.token = choice->prompt_tokens[i];
      entry.bytes = server_->model->vocabulary()->bytes(entry.token);
      entry.in_prompt = true;
      // The first token has no probability.
      if (i > 0) entry.logprob = static_cast<float>(scores.logprobs[i - 1]);
      if (i > 0) entry.top = scores.top[i - 1];
      prompt.push_back(std::move(entry));
    }
    out.tokens.insert(out.tokens.begin(), std::make_move_iterator(prompt.begin()),
                      std::make_move_iterator(prompt.end()));
  }
}

// nullptr: the request does not ask for details.
std::shared_ptr<DetailsRequest> Call::DetailsOf(const Choice& choice,
                                                const std::optional<Grammar>& grammar) const {
  if (!spec_.options.details) return nullptr;
  const PromptSpec& prompt = spec_.prompts[choice.prompt];
  return std::make_shared<DetailsRequest>(DetailsRequest{.prompt = choice.prompt_tokens,
                                                         .grammar = grammar,
                                                         .schema = prompt.schema,
                                                         .text = prompt.text,
                                                         .group = group_,
                                                         .adapter = spec_.adapter});
}

// ---- Embeddings ----

void Call::SubmitEmbedding(Choice& choice) {
  auto done = [self = shared_from_this(), &choice](Result<std::vector<float>> embedding) {
    if (!embedding.ok()) return self->Done(choice, embedding.error());
    Generation nothing;
    nothing.stats.prompt_tokens = static_cast<int>(choice.prompt_tokens.size());
    {
      const std::lock_guard lock(self->mutex_);
      choice.embedding = *std::move(embedding);
    }
    self->Done(choice, std::move(nothing));
  };
  Submitted(choice, server_->engine->SubmitEmbed(choice.prompt_tokens, *spec_.embeds, group_,
                                                 std::move(done), spec_.adapter));
}

// ---- Documents ----

// The engine reads the chunks, and the record comes in whole.
void Call::SubmitDocument(Choice& choice) {
  const PromptSpec& prompt = spec_.prompts[choice.prompt];
  EngineRequest request;
  request.extract = ExtractInput{.schema = prompt.schema,
                                 .text = prompt.text,
                                 .instruction = prompt.instruction,
                                 .examples = prompt.examples,
                                 .view = prompt.view,
                                 .prefer_text = prompt.prefer_text};
  request.document = prompt.document;
  request.grammar = grammars_[choice.prompt];
  request.options = spec_.options;
  request.now = LocalTime();
  request.group = group_;
  request.lora = server_->model->LoraOf(spec_.adapter);
  Delivery delivery;
  delivery.done = [self = shared_from_this(), &choice](Result<Generation> output) {
    if (output.ok()) {
      const std::lock_guard lock(self->mutex_);
      choice.text = output->text;
      choice.lengths.push_back(static_cast<uint32_t>(output->text.size()));
    }
    self->Done(choice, std::move(output));
  };
  const Result<AsyncEngine::Id> id = server_->engine->Submit(request, std::move(delivery));
  Submitted(choice, id);
}

void Call::CopyOutput(const Generation& output, ChoiceOut& out) const {
  out.stats = output.stats;
  out.closed = output.stop == StopReason::kClosed;
  out.closed_by = output.closed_by;
  out.notes = output.notes;
  out.details = output.details;
  out.conflicts = output.conflicts;
  out.chunks = output.chunks;
}

int Call::PromptSize(const Choice& choice) const {
  if (!spec_.prompts[choice.prompt].document) return static_cast<int>(choice.prompt_tokens.size());
  return out_.choices[static_cast<size_t>(choice.index)].stats.prompt_tokens;
}

}  // namespace pawl::server
