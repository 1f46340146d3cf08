// The sampler against llama.cpp's interface as contract/ writes it down. What llama.cpp would do is
// done here by hand: a vocabulary of a few tokens, and tensors that compute when asked.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plugins/llama_cpp/pawl_llama.h"

// ---- What llama.cpp has ------------------------------------------------------------------------

struct llama_vocab {
  std::vector<std::string> pieces;
  std::vector<llama_token> control, ends;
};

struct ggml_tensor {
  std::vector<float> values;  // of a leaf
  std::string op;
  ggml_tensor *a = nullptr, *b = nullptr;
  int64_t size = 0;
  bool input = false;
};

struct ggml_context {
  std::vector<std::unique_ptr<ggml_tensor>> tensors;
  bool refuse_gather = false;
  ggml_tensor* Add(std::string op, int64_t size, ggml_tensor* a = nullptr,
                   ggml_tensor* b = nullptr) {
    tensors.push_back(std::make_unique<ggml_tensor>());
    ggml_tensor* t = tensors.back().get();
    t->op = std::move(op), t->size = size, t->a = a, t->b = b;
    if (t->op == "leaf") t->values.assign(static_cast<size_t>(size), 0.0f);
    return t;
  }
};

namespace {
std::vector<float> Compute(const ggml_tensor* t) {
  if (t->op == "leaf") return t->values;
  if (t->op == "reshape") return Compute(t->a);
  std::vector<float> a = Compute(t->a), b = Compute(t->b), out;
  if (t->op == "add") {
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] + b[i]);
  } else {  // get_rows of one column
    for (float id : b) out.push_back(a[static_cast<size_t>(id)]);
  }
  return out;
}
bool g_device_gathers = true;
}  // namespace

extern "C" {
llama_sampler* llama_sampler_init(llama_sampler_i* iface, llama_sampler_context_t ctx) {
  return new llama_sampler{iface, ctx};
}
void llama_sampler_free(llama_sampler* sampler) {
  if (sampler == nullptr) return;
  if (sampler->iface->free != nullptr) sampler->iface->free(sampler);
  delete sampler;
}
int32_t llama_vocab_n_tokens(const llama_vocab* v) {
  return static_cast<int32_t>(v->pieces.size());
}
llama_token_attr llama_vocab_get_attr(const llama_vocab* v, llama_token t) {
  for (llama_token c : v->control) {
    if (c == t) return LLAMA_TOKEN_ATTR_CONTROL;
  }
  return LLAMA_TOKEN_ATTR_NORMAL;
}
bool llama_vocab_is_eog(const llama_vocab* v, llama_token t) {
  for (llama_token e : v->ends) {
    if (e == t) return true;
  }
  return false;
}
int32_t llama_token_to_piece(const llama_vocab* v, llama_token t, char* bytes, int32_t length,
                             int32_t, bool) {
  const std::string& piece = v->pieces[static_cast<size_t>(t)];
  const auto size = static_cast<int32_t>(piece.size());
  if (size > length) return -size;
  if (size > 0) std::memcpy(bytes, piece.data(), piece.size());
  return size;
}
ggml_context* ggml_init(ggml_init_params) { return new ggml_context; }
void ggml_free(ggml_context* ctx) { delete ctx; }
size_t ggml_tensor_overhead(void) { return sizeof(ggml_tensor); }
int64_t ggml_nelements(const ggml_tensor* t) { return t->size; }
void ggml_set_input(ggml_tensor* t) { t->input = true; }
ggml_tensor* ggml_new_tensor_1d(ggml_context* c, ggml_type, int64_t n) { return c->Add("leaf", n); }
ggml_tensor* ggml_new_tensor_2d(ggml_context* c, ggml_type, int64_t n, int64_t m) {
  return c->Add("leaf", n * m);
}
ggml_tensor* ggml_reshape_1d(ggml_context* c, ggml_tensor* a, int64_t n) {
  EXPECT_EQ(a->size, n);
  return c->Add("reshape", n, a);
}
ggml_tensor* ggml_add(ggml_context* c, ggml_tensor* a, ggml_tensor* b) {
  return c->Add("add", a->size, a, b);
}
ggml_tensor* ggml_get_rows(ggml_context* c, ggml_tensor* a, ggml_tensor* b) {
  return c->Add("get_rows", b->size, a, b);
}
ggml_tensor* ggml_get_first_tensor(const ggml_context* c) {
  return c->tensors.empty() ? nullptr : c->tensors.front().get();
}
ggml_tensor* ggml_get_next_tensor(const ggml_context* c, ggml_tensor* t) {
  for (size_t i = 0; i + 1 < c->tensors.size(); ++i) {
    if (c->tensors[i].get() == t) return c->tensors[i + 1].get();
  }
  return nullptr;
}
ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buffers) {
  return reinterpret_cast<ggml_backend_dev_t>(buffers);
}
bool ggml_backend_dev_supports_op(ggml_backend_dev_t, const ggml_tensor* t) {
  return t->op != "get_rows" || g_device_gathers;
}
void ggml_backend_tensor_set(ggml_tensor* t, const void* data, size_t offset, size_t size) {
  EXPECT_TRUE(t->input);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(size, t->values.size() * sizeof(float));
  std::memcpy(t->values.data(), data, size);
}
}

// ---- Tests -------------------------------------------------------------------------------------

namespace {

enum : llama_token { kA, kB, kOne, kAb, kBos, kEnd, kTurn, kLong, kTokens };

llama_vocab Tokens() {
  return {{"a", "b", "1", "ab", "<s>", "</s>", "<end_of_turn>", std::string(400, 'a')},
          {kBos, kEnd},
          {kEnd, kTurn}};
}

struct Freed {
  void operator()(llama_sampler* s) const { llama_sampler_free(s); }
};
using Sampler = std::unique_ptr<llama_sampler, Freed>;

Sampler Make(const std::string& kind, const std::string& text) {
  const llama_vocab vocab = Tokens();
  pawl_error* error = nullptr;
  llama_sampler* sampler =
      pawl_llama_sampler_from_text(&vocab, kind.c_str(), text.data(), text.size(), &error);
  EXPECT_NE(sampler, nullptr) << pawl_error_message(error);
  pawl_error_free(error);
  return Sampler(sampler);
}

std::vector<llama_token> Allowed(const Sampler& s) {
  std::vector<llama_token_data> data;
  for (llama_token t = 0; t < kTokens; ++t) data.push_back({t, 0.0f, 0.0f});
  llama_token_data_array array{data.data(), data.size(), -1, true};
  s->iface->apply(s.get(), &array);
  EXPECT_TRUE(array.sorted);
  std::vector<llama_token> out;
  for (size_t i = 0; i < array.size; ++i) out.push_back(array.data[i].id);
  return out;
}

using List = std::vector<llama_token>;

TEST(LlamaCppTest, TokensAreRemovedAndTheOrderStays) {
  Sampler s = Make("regex", "ab?1|ba*");
  EXPECT_EQ(Allowed(s), (List{kA, kB, kAb}));
  std::vector<llama_token_data> data = {{kOne, 9, 0}, {kAb, 8, 0}, {kEnd, 7, 0}, {kA, 6, 0}};
  llama_token_data_array array{data.data(), data.size(), 3, true};
  s->iface->apply(s.get(), &array);
  ASSERT_EQ(array.size, 2u);
  EXPECT_EQ(data[0].id, kAb);
  EXPECT_EQ(data[0].logit, 8);
  EXPECT_EQ(data[1].id, kA);
  EXPECT_EQ(array.selected, 1);  // still kA
  EXPECT_TRUE(array.sorted);
}

TEST(LlamaCppTest, LongPiecesAndEveryEndToken) {
  Sampler s = Make("regex", "a{400}");
  s->iface->accept(s.get(), kLong);
  EXPECT_EQ(Allowed(s), (List{kEnd, kTurn}));
  EXPECT_FALSE(pawl_llama_sampler_ended(s.get()));
  s->iface->accept(s.get(), kTurn);
  EXPECT_TRUE(pawl_llama_sampler_ended(s.get()));
  EXPECT_EQ(Allowed(s), (List{kEnd, kTurn}));  // a host that goes on gets no free text
  s->iface->accept(s.get(), kB);
  EXPECT_EQ(pawl_llama_sampler_refused(s.get()), -1);
}

TEST(LlamaCppTest, ARefusedTokenLeavesTheEndAlone) {
  Sampler s = Make("choice", R"(["ab1"])");
  s->iface->accept(s.get(), kB);
  EXPECT_EQ(pawl_llama_sampler_refused(s.get()), kB);
  EXPECT_EQ(Allowed(s), (List{kEnd, kTurn}));
  EXPECT_FALSE(pawl_llama_sampler_rollback(s.get(), 0));
  s->iface->reset(s.get());
  EXPECT_EQ(pawl_llama_sampler_refused(s.get()), -1);
  EXPECT_EQ(Allowed(s), (List{kA, kAb}));
}

TEST(LlamaCppTest, WhenAllThatFitWereCut) {
  Sampler s = Make("choice", R"(["ab1"])");
  llama_token_data data[] = {{kOne, 2, 0}, {kB, 1, 0}};
  llama_token_data_array array{data, 2, -1, false};
  s->iface->apply(s.get(), &array);
  ASSERT_EQ(array.size, 1u);
  EXPECT_TRUE(data[0].id == kA || data[0].id == kAb);
  EXPECT_EQ(pawl_llama_sampler_rescues(s.get()), 1);
}

TEST(LlamaCppTest, CloneCopyStateAndReset) {
  Sampler s = Make("choice", R"(["ab1", "b1a"])");
  s->iface->accept(s.get(), kAb);
  Sampler clone(s->iface->clone(s.get()));
  EXPECT_EQ(Allowed(clone), (List{kOne}));
  clone->iface->accept(clone.get(), kOne);
  EXPECT_EQ(Allowed(s), (List{kOne}));  // the first is where it was
  EXPECT_EQ(Allowed(clone), (List{kEnd, kTurn}));
  clone->iface->reset(clone.get());  // to where the first one began
  EXPECT_EQ(Allowed(clone), (List{kA, kB, kAb}));
  clone->iface->copy_state(s.get(), clone.get());
  EXPECT_EQ(Allowed(clone), (List{kOne}));
  clone->iface->copy_state(clone.get(), clone.get());
  EXPECT_EQ(Allowed(clone), (List{kOne}));
  s.reset();  // nothing is shared that dies with the first
  clone->iface->accept(clone.get(), kOne);
  EXPECT_EQ(Allowed(clone), (List{kEnd, kTurn}));
}

TEST(LlamaCppTest, ResetLeadsToWhereTheMatcherStood) {
  const llama_vocab vocab = Tokens();
  pawl_vocabulary* vocabulary = nullptr;
  pawl_compiler* compiler = nullptr;
  pawl_grammar* grammar = nullptr;
  pawl_matcher* matcher = nullptr;
  ASSERT_EQ(pawl_llama_vocabulary(&vocab, &vocabulary, nullptr), PAWL_OK);
  ASSERT_EQ(pawl_compiler_create(vocabulary, nullptr, &compiler, nullptr), PAWL_OK);
  ASSERT_EQ(pawl_compile(compiler, "regex", "ab1", 3, nullptr, &grammar, nullptr), PAWL_OK);
  ASSERT_EQ(pawl_matcher_create(grammar, nullptr, &matcher, nullptr), PAWL_OK);
  ASSERT_EQ(pawl_matcher_accept(matcher, kA), PAWL_OK);
  Sampler s(pawl_llama_sampler_init(vocabulary, matcher));
  pawl_matcher_free(matcher);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  s->iface->accept(s.get(), kB);
  EXPECT_FALSE(pawl_llama_sampler_rollback(s.get(), 2));  // not before where it began
  EXPECT_TRUE(pawl_llama_sampler_rollback(s.get(), 1));
  EXPECT_EQ(Allowed(s), (List{kB}));
  s->iface->accept(s.get(), kB);
  s->iface->reset(s.get());
  EXPECT_EQ(Allowed(s), (List{kB}));
}

TEST(LlamaCppTest, ErrorsNameThePlace) {
  const llama_vocab vocab = Tokens();
  pawl_error* error = nullptr;
  const char* schema = R"({"minLength": "x"})";
  EXPECT_EQ(
      pawl_llama_sampler_from_text(&vocab, "json_schema", schema, std::strlen(schema), &error),
      nullptr);
  EXPECT_STREQ(pawl_error_place(error), "#/minLength");
  pawl_error_free(error);
  EXPECT_EQ(pawl_llama_sampler_init(nullptr, nullptr), nullptr);
}

// What the graph would give: the finite logits, by token.
List Finite(const ggml_tensor* logits) {
  List out;
  std::vector<float> values = Compute(logits);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) out.push_back(static_cast<llama_token>(i));
  }
  return out;
}

TEST(LlamaCppTest, InTheGraphTheMaskIsATensor) {
  Sampler s = Make("regex", "ab?1");
  ASSERT_TRUE(s->iface->backend_init(s.get(), nullptr, 1));
  ggml_context ctx;
  llama_sampler_data data{ctx.Add("leaf", kTokens + 3), nullptr, nullptr, nullptr};
  s->iface->backend_reset(s.get());
  s->iface->backend_apply(s.get(), &ctx, nullptr, &data);
  // One graph, many steps.
  for (const auto& [token, next] :
       std::vector<std::pair<llama_token, List>>{{-1, {kA, kAb}}, {kA, {kB, kOne}}, {kB, {kOne}}}) {
    if (token >= 0) s->iface->accept(s.get(), token);
    s->iface->backend_set_input(s.get());
    EXPECT_EQ(Finite(data.logits), next);
  }
}

TEST(LlamaCppTest, InTheGraphBehindATopK) {
  Sampler s = Make("regex", "ab?1");
  ggml_context ctx;
  ggml_tensor* ids = ctx.Add("leaf", 3);
  ids->values = {static_cast<float>(kOne), static_cast<float>(kAb), static_cast<float>(kB)};
  llama_sampler_data data{ctx.Add("leaf", 3), nullptr, nullptr, ids};
  s->iface->backend_apply(s.get(), &ctx, nullptr, &data);
  s->iface->backend_set_input(s.get());
  EXPECT_EQ(Finite(data.logits), (List{1}));  // of the candidates only the second fits
}

TEST(LlamaCppTest, InTheGraphWithDrafts) {
  Sampler s = Make("choice", R"(["ab1", "aab"])");
  EXPECT_FALSE(s->iface->backend_init(s.get(), nullptr, 4));  // no call said that drafts will come
  ASSERT_TRUE(pawl_llama_sampler_set_draft(s.get(), nullptr, 0));
  ASSERT_TRUE(s->iface->backend_init(s.get(), nullptr, 4));
  ggml_context ctx;
  std::vector<ggml_tensor*> rows;
  for (int i = 0; i < 4; ++i) {
    llama_sampler_data data{ctx.Add("leaf", kTokens), nullptr, nullptr, nullptr};
    s->iface->backend_apply(s.get(), &ctx, nullptr, &data);
    rows.push_back(data.logits);
  }
  const llama_token draft[] = {kA, kB, kB};
  ASSERT_TRUE(pawl_llama_sampler_set_draft(s.get(), draft, 3));
  s->iface->backend_set_input(s.get());
  EXPECT_EQ(Finite(rows[0]), (List{kA, kAb}));
  EXPECT_EQ(Finite(rows[1]), (List{kA, kB, kAb}));
  EXPECT_EQ(Finite(rows[2]), (List{kOne}));
  EXPECT_EQ(Finite(rows[3]), (List{kEnd, kTurn}));  // the third of the draft does not fit
  EXPECT_EQ(Allowed(s), (List{kA, kAb}));           // and nothing was accepted
  s->iface->accept(s.get(), kA);                    // the draft is over
  s->iface->backend_set_input(s.get());
  EXPECT_EQ(Finite(rows[0]), (List{kA, kB, kAb}));
  EXPECT_EQ(Finite(rows[1]), (List{kEnd, kTurn}));
  const llama_token long_draft[] = {kB, kOne, kB};
  EXPECT_EQ(pawl_llama_sampler_validate(s.get(), long_draft, 3), 2u);
}

TEST(LlamaCppTest, ADeviceThatCannotGatherDeclines) {
  Sampler s = Make("regex", "a");
  auto* device = reinterpret_cast<ggml_backend_buffer_type_t>(s.get());  // any that is not null
  EXPECT_TRUE(s->iface->backend_init(s.get(), device, 1));
  g_device_gathers = false;
  EXPECT_FALSE(s->iface->backend_init(s.get(), device, 1));
  g_device_gathers = true;
}

TEST(LlamaCppTest, OnRandomWalksTheGraphAndTheCpuAgree) {
  std::mt19937 random(7);
  for (const char* pattern : {"(ab|1){2,5}", "a*b(1|ab)*", "(a|b|1){0,6}"}) {
    for (int run = 0; run < 20; ++run) {
      Sampler s = Make("regex", pattern);
      ggml_context ctx;
      llama_sampler_data data{ctx.Add("leaf", kTokens), nullptr, nullptr, nullptr};
      s->iface->backend_apply(s.get(), &ctx, nullptr, &data);
      for (int step = 0; step < 12 && !pawl_llama_sampler_ended(s.get()); ++step) {
        const List allowed = Allowed(s);
        s->iface->backend_set_input(s.get());
        ASSERT_EQ(Finite(data.logits), allowed);
        const llama_token token = allowed[random() % allowed.size()];
        for (llama_token t = 0; t < kTokens; ++t) {
          const bool fits = std::find(allowed.begin(), allowed.end(), t) != allowed.end();
          ASSERT_EQ(pawl_llama_sampler_validate(s.get(), &t, 1), fits ? 1u : 0u);
        }
        s->iface->accept(s.get(), token);
        ASSERT_EQ(pawl_llama_sampler_refused(s.get()), -1);
      }
    }
  }
}

}  // namespace
