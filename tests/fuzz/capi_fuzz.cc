// Arbitrary bytes as calls of the C library: the first names the kind of grammar, then come its
// text, how it is compiled, what is made of it, and one call of a matcher after another. Masks must
// agree with accepting, a clone with what it was cloned from, a tree of drafts with its paths, a
// grammar with itself after a path through bytes, and a roll back must lead where the matcher
// stood; bad arguments are refused as the header says; nothing may leak or crash.
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/pawl.h"
#include "tests/fuzz/capi_fuzz_calls.h"
#include "tests/fuzz/fuzz_util.h"

namespace pawl::fuzz {
namespace {

const char* const kKinds[] = {"json_schema", "regex",         "choice",    "lark",
                              "ebnf",        "gbnf",          "substring", "structural_tag",
                              "regex",       "lark_xgrammar", "telepathy"};

pawl_vocabulary* NewVocabulary() {
  std::vector<std::string> texts;
  for (int b = 0; b < 256; ++b) texts.emplace_back(1, static_cast<char>(b));
  texts.insert(texts.end(), {"ab", "<tool>", "<end>", "<eot>"});
  std::vector<const char*> tokens;
  std::vector<size_t> lengths;
  for (const std::string& text : texts) {
    tokens.push_back(text.data());
    lengths.push_back(text.size());
  }
  const int32_t special[] = {kTool, kFirstEnd, kFirstEnd + 1};
  pawl_vocabulary_tokens init;
  pawl_vocabulary_tokens_init(&init, sizeof init);
  init.tokens = tokens.data();
  init.lengths = lengths.data();
  init.count = tokens.size();
  init.special = special;
  init.special_count = 3;
  init.end_tokens = special + 1;
  init.end_token_count = 2;
  pawl_vocabulary* vocabulary = nullptr;
  Require(pawl_vocabulary_create(&init, &vocabulary, nullptr) == PAWL_OK, "vocabulary", "");
  return vocabulary;
}

const pawl_vocabulary* Bytes260() {
  static const Handle<pawl_vocabulary, pawl_vocabulary_free> made(NewVocabulary());
  return made.get();
}

// Documents come, are missing, or are not given at all, as their addresses say.
void Resolve(void* context, const char* uri, size_t length, pawl_document* document) {
  ++*static_cast<int*>(context);
  const std::string_view name(uri, length);
  if (name.ends_with("0")) return;
  if (name.ends_with("1")) {
    pawl_document_set_error(document, "not here", 8);
  } else {
    pawl_document_set_text(document, "{\"type\":\"integer\"}", 18);
  }
}

class Run {
 public:
  explicit Run(Calls& in) : in_(in) {
    pawl_compiler_options options;
    pawl_compiler_options_init(&options, sizeof options);
    options.cached_grammars = in_.input().size() % 3;
    compiler_.Take([&](pawl_compiler** out) {
      return pawl_compiler_create(Bytes260(), &options, out, nullptr);
    });
    in_.Require(compiler_.get() != nullptr, "a compiler");
  }

  // A grammar of the kind and text that come next; none when they are refused.
  GrammarHandle Compile() {
    const std::string_view kind = kKinds[in_.Byte() % std::size(kKinds)];
    const std::string text = in_.Text();
    const uint8_t ways = in_.Byte();
    const bool takes = kind != "regex" && kind != "choice" && kind != "substring";
    GrammarHandle grammar;
    Failure failure(in_);
    int asked = 0;
    struct {
      pawl_json_schema_options known;
      std::array<unsigned char, 16> later;
    } options;
    std::memset(static_cast<void*>(&options), 0, sizeof options);
    const bool bad = (ways & 1) != 0 && !SetOptions(options.known, options.later, ways, &asked);
    const pawl_status status = grammar.Take([&](pawl_grammar** out) {
      return pawl_compile(compiler_.get(), kind.data(), text.data(), text.size(),
                          (ways & 1) != 0 ? &options.known : nullptr, out, failure.out());
    });
    failure.Check(status);
    if (kind == "telepathy") {
      in_.Require(status == PAWL_UNSUPPORTED, "an unknown kind");
    } else if ((ways & 1) != 0 && !takes) {
      in_.Require(status == PAWL_BAD_ARGUMENT, "options where there are none");
    } else if (bad) {
      in_.Require(status == PAWL_BAD_ARGUMENT || status == PAWL_UNSUPPORTED, "bad options");
    } else {
      in_.Require(status != PAWL_BAD_ARGUMENT, "good options are refused");
    }
    return grammar;
  }

  // What is made of a grammar; the grammar itself where that is refused.
  GrammarHandle Combine(GrammarHandle grammar) {
    GrammarHandle made;
    Failure failure(in_);
    pawl_status status = PAWL_OK;
    const uint8_t op = in_.Byte();
    switch (op % 5) {
      case 0: {
        const std::string prefix = in_.Text();
        const TextList after(in_, 3);
        status = made.Take([&](pawl_grammar** out) {
          return pawl_grammar_infill(grammar.get(), prefix.data(), prefix.size(), after.data(),
                                     after.lengths(), after.size(), out, failure.out());
        });
        break;
      }
      case 1: {
        const TextList words(in_, 4);
        status = made.Take([&](pawl_grammar** out) {
          return pawl_grammar_require_words(grammar.get(), words.data(), words.lengths(),
                                            words.size(), out, failure.out());
        });
        break;
      }
      case 2: {
        const GrammarHandle other = Compile();
        const bool turned = (op & 0x80) != 0;
        status = made.Take([&](pawl_grammar** out) {
          return pawl_grammar_intersect(turned ? other.get() : grammar.get(),
                                        turned ? grammar.get() : other.get(), out, failure.out());
        });
        if (other.get() == nullptr) in_.Require(status == PAWL_BAD_ARGUMENT, "half of two");
        break;
      }
      case 3:
        status = made.Take([&](pawl_grammar** out) {
          return pawl_grammar_complement(grammar.get(), out, failure.out());
        });
        break;
      default: {
        const TextList choices(in_, 4);
        status = made.Take([&](pawl_grammar** out) {
          return pawl_compile_choice(compiler_.get(), choices.data(), choices.lengths(),
                                     choices.size(), out, failure.out());
        });
      }
    }
    failure.Check(status);
    return made.get() != nullptr ? std::move(made) : std::move(grammar);
  }

  // The grammar after a path through bytes.
  GrammarHandle Again(const pawl_grammar* grammar) {
    std::string bytes = BytesOf(grammar);
    size_t size = 0;
    char none = 0;
    in_.Require(pawl_grammar_serialize(grammar, &none, 1, &size, nullptr) == PAWL_LIMIT, "no room");
    GrammarHandle back;
    Failure failure(in_);
    failure.Check(Deserialize(bytes, back, failure));
    in_.Require(back.get() != nullptr, "a grammar does not come back");
    in_.Require(BytesOf(back.get()) == bytes, "a grammar comes back as another one");

    // Options that no compiler would have taken.
    constexpr size_t kKind = 28;  // where its length stands, of which one byte is enough
    const size_t order = kKind + 8 + static_cast<unsigned char>(bytes[kKind]);
    std::string odd = bytes;
    odd[order] = 77;
    SetChecksum(odd);
    GrammarHandle none_such;
    in_.Require(Deserialize(odd, none_such) == PAWL_INVALID, "an order that there is not");

    const size_t at = (in_.Byte() | size_t{in_.Byte()} << 8) % bytes.size();
    const char change = static_cast<char>(std::max<int>(1, in_.Byte()));
    bytes[at] ^= change;
    GrammarHandle damaged;
    in_.Require(Deserialize(bytes, damaged) != PAWL_OK, "damaged bytes are taken");
    // An attacker who damages them may make a checksum that fits.
    SetChecksum(bytes);
    Failure why(in_);
    why.Check(Deserialize(bytes, damaged, why));
    bytes.resize(at);
    in_.Require(Deserialize(bytes, damaged) == PAWL_INVALID, "a part is taken");
    return back;
  }

  // As a serialized grammar the input is refused, whatever it is.
  void DeserializeInput(std::string_view input) {
    GrammarHandle none;
    const pawl_status status = Deserialize(std::string(input), none);
    in_.Require(status != PAWL_OK || input.starts_with("PAWL-GRM"), "no serialized grammar");
  }

  // Every function with a NULL where the header wants none.
  void BadArguments(const pawl_grammar* grammar) {
    pawl_grammar* out = nullptr;
    const auto refused = [&](pawl_status status) {
      in_.Require(status == PAWL_BAD_ARGUMENT && out == nullptr, "a bad argument is taken");
    };
    const pawl_compiler* compiler = compiler_.get();
    const char* const texts[] = {nullptr};
    const size_t lengths[] = {SIZE_MAX};
    refused(pawl_compile(nullptr, "regex", "a", 1, nullptr, &out, nullptr));
    refused(pawl_compile(compiler, nullptr, "a", 1, nullptr, &out, nullptr));
    refused(pawl_compile(compiler, "regex", nullptr, SIZE_MAX, nullptr, &out, nullptr));
    refused(pawl_compile_choice(compiler, texts, lengths, 1, &out, nullptr));
    refused(pawl_compile_choice(compiler, nullptr, nullptr, SIZE_MAX, &out, nullptr));
    refused(pawl_grammar_infill(nullptr, "", 0, nullptr, nullptr, 0, &out, nullptr));
    refused(pawl_grammar_infill(grammar, nullptr, 1, nullptr, nullptr, 0, &out, nullptr));
    refused(pawl_grammar_infill(grammar, "", 0, texts, lengths, 1, &out, nullptr));
    refused(pawl_grammar_require_words(grammar, texts, lengths, 1, &out, nullptr));
    refused(pawl_grammar_require_words(grammar, nullptr, lengths, SIZE_MAX, &out, nullptr));
    refused(pawl_grammar_intersect(grammar, nullptr, &out, nullptr));
    refused(pawl_grammar_complement(nullptr, &out, nullptr));
    refused(pawl_grammar_complement(grammar, nullptr, nullptr));
    refused(pawl_grammar_deserialize(compiler, nullptr, SIZE_MAX, &out, nullptr));
    refused(pawl_grammar_serialize(grammar, nullptr, 0, nullptr, nullptr));
    const char* note = nullptr;
    size_t size = 0;
    const size_t notes = pawl_grammar_note_count(grammar);
    refused(pawl_grammar_note(grammar, notes, &note, &size));
    for (size_t i = 0; i < notes; ++i) {
      in_.Require(pawl_grammar_note(grammar, i, &note, &size) == PAWL_OK && size > 0, "a note");
    }
    pawl_matcher* matcher = nullptr;
    refused(pawl_matcher_create(nullptr, nullptr, &matcher, nullptr));
    pawl_matcher_options options;
    pawl_matcher_options_init(&options, sizeof options);
    options.struct_size = in_.Byte() % sizeof(size_t);
    refused(pawl_matcher_create(grammar, &options, &matcher, nullptr));
    pawl_matcher_options_init(&options, sizeof options);
    options.end_token_count = SIZE_MAX;
    refused(pawl_matcher_create(grammar, &options, &matcher, nullptr));
    const int32_t outside[] = {kSize};
    options.end_tokens = outside;
    options.end_token_count = 1;
    in_.Require(pawl_matcher_create(grammar, &options, &matcher, nullptr) == PAWL_INVALID &&
                    matcher == nullptr,
                "an end token that there is not");
  }

  // A vocabulary and a tokenizer of whatever comes next.
  void AnyVocabulary() {
    const TextList tokens(in_, 4);
    const int32_t ids[] = {in_.Byte() % 8 - 2, in_.Byte() % 8 - 2};
    pawl_vocabulary_tokens init;
    pawl_vocabulary_tokens_init(&init, sizeof init);
    init.tokens = tokens.data();
    init.lengths = tokens.lengths();
    init.count = tokens.size();
    init.special = ids;
    init.special_count = in_.Byte() % 3;
    init.end_tokens = ids + 1;
    init.end_token_count = in_.Byte() % 2;
    Handle<pawl_vocabulary, pawl_vocabulary_free> made;
    Failure failure(in_);
    failure.Check(made.Take(
        [&](pawl_vocabulary** out) { return pawl_vocabulary_create(&init, out, failure.out()); }));
    if (made.get() != nullptr)
      in_.Require(pawl_vocabulary_size(made.get()) == tokens.size(), "the size of a vocabulary");
    init.tokens = nullptr;
    init.count = SIZE_MAX;
    in_.Require(made.Take([&](pawl_vocabulary** out) {
      return pawl_vocabulary_create(&init, out, nullptr);
    }) == PAWL_BAD_ARGUMENT,
                "no tokens, very many");
    const std::string json = in_.Text();
    Failure why(in_);
    why.Check(made.Take([&](pawl_vocabulary** out) {
      return pawl_vocabulary_from_tokenizer_json(json.data(), json.size(), nullptr, out, why.out());
    }));
  }

 private:
  // Some fields as the input says. false: some value is none that is allowed.
  bool SetOptions(pawl_json_schema_options& options, std::array<unsigned char, 16>& later,
                  uint8_t ways, int* asked) {
    const size_t size = in_.Byte() % (sizeof options + later.size() + 1);
    bool good = true;
    if ((ways & 2) != 0) {
      pawl_json_schema_options_init(&options, size);
      options.struct_size = size;
      good = size >= sizeof(size_t);
      if (size <= sizeof options || (ways & 8) == 0) return good;
      later[size - sizeof options - 1] = 1;
      return false;
    }
    pawl_json_schema_options_init(&options, sizeof options);
    constexpr std::array<int32_t, 8> kValues = {0, 1, 2, 3, 40, -1, INT_MAX, INT_MIN};
    for (int edits = in_.Byte() % 4; edits > 0; --edits) {
      const uint8_t edit = in_.Byte();
      const int32_t value = kValues[edit / 16 % kValues.size()];
      const auto set = [&](auto& field, int32_t most) {
        field = value;
        good &= value >= 0 && value <= most;
      };
      switch (edit % 16) {
        case 0:
          set(options.order, PAWL_ORDER_ANY);
          break;
        case 1:
          set(options.whitespace, PAWL_WHITESPACE_ANY);
          break;
        case 2:
          set(options.profile, PAWL_PROFILE_STRICT);
          break;
        case 3:
          set(options.max_whitespace, INT_MAX);
          break;
        case 4:
          set(options.max_documents, INT_MAX);
          break;
        case 5:
          set(options.max_depth, 1'000'000);
          break;
        case 6:
          set(options.max_schema_bytes, INT_MAX);
          break;
        case 7:
          set(options.step_fuel, INT_MAX);
          break;
        case 8:
          options.assert_formats = value;
          break;
        case 9:
          options.canonical_spelling = value;
          break;
        case 10:
          options.ascii = value;
          break;
        case 11:
          options.additional_properties = value;
          break;
        case 12:
          options.allow_exponents = value;
          break;
        case 13:
          options.list_annotations = value;
          break;
        case 14:
          separator_ = in_.Text();
          options.item_separator = separator_.data();
          options.item_separator_length = separator_.size();
          break;
        default:
          options.resolve_document = Resolve;
          options.resolve_context = asked;
      }
    }
    // An edit may have been taken back by a later one of the same field.
    const auto within = [](int64_t value, int64_t most) { return value >= 0 && value <= most; };
    return within(options.order, PAWL_ORDER_ANY) &&
           within(options.whitespace, PAWL_WHITESPACE_ANY) &&
           within(options.profile, PAWL_PROFILE_STRICT) && options.max_whitespace >= 0 &&
           options.max_documents >= 0 && within(options.max_depth, 1'000'000) &&
           options.max_schema_bytes >= 0 && options.step_fuel >= 0;
  }

  std::string BytesOf(const pawl_grammar* grammar) {
    size_t length = 0;
    in_.Require(pawl_grammar_serialize(grammar, nullptr, 0, &length, nullptr) == PAWL_OK, "size");
    std::string bytes(length, '\0');
    in_.Require(pawl_grammar_serialize(grammar, bytes.data(), length, &length, nullptr) == PAWL_OK,
                "bytes");
    return bytes;
  }
  pawl_status Deserialize(const std::string& bytes, GrammarHandle& out) {
    return out.Take([&](pawl_grammar** to) {
      return pawl_grammar_deserialize(compiler_.get(), bytes.data(), bytes.size(), to, nullptr);
    });
  }
  pawl_status Deserialize(const std::string& bytes, GrammarHandle& out, Failure& failure) {
    return out.Take([&](pawl_grammar** to) {
      return pawl_grammar_deserialize(compiler_.get(), bytes.data(), bytes.size(), to,
                                      failure.out());
    });
  }
  // As schemas/grammar_source.cc has it.
  static void SetChecksum(std::string& bytes) {
    constexpr size_t kChecksum = 8;
    uint64_t hash = 2;  // the version
    for (size_t i = 0; i + kChecksum < bytes.size(); ++i)
      hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3u;
    hash = (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < kChecksum; ++i)
      bytes[bytes.size() - kChecksum + i] = static_cast<char>(hash >> (8 * i));
  }

  Calls& in_;
  Handle<pawl_compiler, pawl_compiler_free> compiler_;
  std::string separator_;
};

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl::fuzz;
  Calls in(std::string_view(reinterpret_cast<const char*>(data), size));
  MatcherHandle matcher;
  MatcherOptions options;
  {
    Run run(in);
    run.DeserializeInput(in.input());
    GrammarHandle grammar = run.Compile();
    for (int steps = in.Byte() % 3; steps > 0 && grammar.get() != nullptr; --steps)
      grammar = run.Combine(std::move(grammar));
    const uint8_t ways = in.Byte();
    if ((ways & 1) != 0) run.AnyVocabulary();
    if (grammar.get() == nullptr) return 0;
    if ((ways & 1) != 0) run.BadArguments(grammar.get());
    options = MatcherOptions(ways);
    const GrammarHandle back = run.Again(grammar.get());
    matcher = options.NewMatcher(back.get(), in);
    const MatcherHandle first = options.NewMatcher(grammar.get(), in);
    in.Require(MaskOf(first.get(), in) == MaskOf(matcher.get(), in),
               "a grammar that came back has another mask");
  }  // the matcher keeps what it needs
  Drive(matcher.get(), options, in);
  return 0;
}
