// The bytes, all numbers little-endian:
//
//   "PAWL-GRM"  u32 version  u64 u64 fingerprint  string kind  options
//   u64 n, n strings: texts   u64 resolves   u64 n, n x (string URI, string text)
//   u64 n, n x (string step, u64 m, m strings)   u64 checksum
//
// where a string is a u64 length and its bytes, the options are each a u64 or a string in the order
// of Options() below, and the checksum is a hash of everything before it.
#include "schemas/grammar_source.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>

#include "grammar/languages/option_fields.h"
#include "pawl/combine.h"

namespace pawl {
namespace {

constexpr std::string_view kMagic = "PAWL-GRM";
constexpr uint32_t kVersion = 5;

uint64_t Hash(std::string_view bytes, uint64_t hash) {
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;  // FNV-1a
  }
  return (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15u;
}

using Stop = std::shared_ptr<StopFlag>;

struct Kind {
  std::string_view name;
  bool takes_options;
  Result<Grammar> (*compile)(const Compiler&, const GrammarSource&, const GrammarOptions&,
                             const Stop&);
};

template <GrammarLanguage language>
Result<Grammar> CompileLanguage(const Compiler& compiler, const GrammarSource& source,
                                const GrammarOptions& options, const Stop& stop) {
  return compiler.CompileGrammar(source.texts[0], language, options, stop);
}

// One line for each kind of text that grammars are compiled from.
constexpr Kind kKinds[] = {
    {"json_schema", true,
     [](const Compiler& compiler, const GrammarSource& source, const GrammarOptions& options,
        const Stop& stop) {
       return compiler.CompileJsonSchema(source.texts[0], options.json_schema, stop);
     }},
    {"regex", false,
     [](const Compiler& compiler, const GrammarSource& source, const GrammarOptions&, const Stop&) {
       return compiler.CompileRegex(source.texts[0]);
     }},
    {"choice", false,
     [](const Compiler& compiler, const GrammarSource& source, const GrammarOptions&, const Stop&) {
       return compiler.CompileChoice(source.texts);
     }},
    {"ebnf", true, CompileLanguage<GrammarLanguage::kEbnf>},
    {"gbnf", true, CompileLanguage<GrammarLanguage::kGbnf>},
    {"lark", true, CompileLanguage<GrammarLanguage::kLark>},
    {"lark_xgrammar", true, CompileLanguage<GrammarLanguage::kLarkXgrammar>},
    {"llguidance", true, CompileLanguage<GrammarLanguage::kLlguidance>},
    {"substring", false,
     [](const Compiler& compiler, const GrammarSource& source, const GrammarOptions&, const Stop&) {
       return compiler.CompileSubstring(source.texts[0]);
     }},
    {"structural_tag", true,
     [](const Compiler& compiler, const GrammarSource& source, const GrammarOptions& options,
        const Stop& stop) {
       return compiler.CompileStructuralTag(source.texts[0], options, stop);
     }},
};

Result<const Kind*> FindKind(std::string_view name) {
  const auto* found = std::ranges::find(kKinds, name, &Kind::name);
  if (found != std::end(kKinds)) return found;
  std::string names;
  for (const Kind& kind : kKinds) {
    names += names.empty() ? "" : ", ";
    names += kind.name;
  }
  return Error{ErrorCode::kUnsupported,
               "no such kind of grammar: '" + std::string(name) + "' (there are: " + names + ")",
               "kind"};
}

class Writer {
 public:
  void Number(uint64_t value) {
    for (int i = 0; i < 8; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void Version(uint32_t value) {
    for (int i = 0; i < 4; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void Bytes(std::string_view bytes) { out_ += bytes; }
  void String(std::string_view text) {
    Number(text.size());
    Bytes(text);
  }
  // An option, for Options().
  template <typename T>
  void operator()(const T& value) {
    Number(static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
  void operator()(const std::string& value) { String(value); }
  std::string Take() { return std::move(out_); }
  const std::string& out() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  uint64_t Number() { return Little(8); }
  uint32_t Version() { return static_cast<uint32_t>(Little(4)); }
  std::string_view Bytes(uint64_t length) {
    if (length > rest_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return bytes;
  }
  std::string String() { return std::string(Bytes(Number())); }
  // A count of things that take at least `least` bytes each.
  uint64_t Count(uint64_t least) {
    const uint64_t count = Number();
    if (count > rest_.size() / least) good_ = false;
    return good_ ? count : 0;
  }
  template <typename T>
  void operator()(T& value) {
    value = static_cast<T>(static_cast<int64_t>(Number()));
  }
  void operator()(bool& value) { value = Number() != 0; }
  void operator()(std::string& value) { value = String(); }
  bool good() const { return good_; }
  bool done() const { return rest_.empty(); }

 private:
  uint64_t Little(uint64_t length) {
    const std::string_view bytes = Bytes(length);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
  }
  std::string_view rest_;
  bool good_ = true;
};

// Every option but the resolver, in the order of the bytes.
template <typename Visitor, typename Fields>
void Options(Visitor& visit, Fields& options) {
  VisitOptions(options, [&](const char*, auto& field) { visit(field); });
}

// What pawl_compile would have refused: bytes may come from anybody.
bool WithinLimits(const JsonSchemaOptions& options) {
  bool good = options.max_depth <= kMostDepth;
  VisitOptions(options, [&](const char*, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) {
      const auto value = static_cast<int64_t>(field);
      good = good && value >= 0 && value < static_cast<int64_t>(OptionNames(field).size());
    } else if constexpr (std::is_integral_v<Field>) {
      good = good && field >= Field{};
    }
  });
  return good;
}

Error Damaged() { return {ErrorCode::kInvalid, "not a serialized grammar, or damaged", ""}; }

}  // namespace

Fingerprint FingerprintOf(const Vocabulary& vocabulary) {
  Fingerprint fingerprint = {0xCBF29CE484222325u, 0x6C62272E07BB0142u};
  for (uint64_t& hash : fingerprint) {
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      hash = Hash(vocabulary.bytes(id), hash ^ vocabulary.bytes(id).size());
      hash ^= vocabulary.is_end(id) ? 2u : vocabulary.is_special(id) ? 1u : 0u;
    }
    hash = Hash("", hash ^ static_cast<uint64_t>(vocabulary.size()));
  }
  return fingerprint;
}

Result<bool> TakesOptions(std::string_view kind) {
  const Result<const Kind*> found = FindKind(kind);
  if (!found.ok()) return found.error();
  return (*found)->takes_options;
}

std::vector<std::string_view> GrammarKinds() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::string_view KindOf(GrammarLanguage language) {
  switch (language) {
    case GrammarLanguage::kEbnf:
      return "ebnf";
    case GrammarLanguage::kGbnf:
      return "gbnf";
    case GrammarLanguage::kLark:
      return "lark";
    case GrammarLanguage::kLarkXgrammar:
      return "lark_xgrammar";
    case GrammarLanguage::kLlguidance:
      break;
  }
  return "llguidance";
}

Result<Grammar> CompileSource(const Compiler& compiler, const GrammarSource& source,
                              const GrammarOptions& options,
                              const std::shared_ptr<StopFlag>& stop) {
  const Result<const Kind*> kind = FindKind(source.kind);
  if (!kind.ok()) return kind.error();
  return (*kind)->compile(compiler, source, options, stop);
}

namespace {

// One step; an intersection's other side is a source of its own, whose steps may be further ones.
Result<Grammar> Apply(const Compiler& compiler, const Grammar& grammar,
                      const GrammarSource::Step& step, const Fingerprint& fingerprint,
                      uint64_t prepare_steps, int depth) {
  if (step.name == "infill" && step.texts.size() > 1)
    return Infill(grammar, {step.texts[0], {step.texts.begin() + 1, step.texts.end()}});
  if (step.name == "words") return RequireWords(grammar, step.texts);
  if (step.name == "complement") return Complement(grammar);
  if (step.name == "intersect" && step.texts.size() == 1 && depth > 0) {
    const Result<GrammarSource> other = Deserialize(step.texts[0], fingerprint);
    if (!other.ok()) return other.error();
    const Result<Grammar> made =
        CompileKept(compiler, *other, fingerprint, prepare_steps, depth - 1);
    if (!made.ok()) return made.error();
    return Intersect(grammar, *made);
  }
  return Damaged();
}

}  // namespace

Result<Grammar> CompileKept(const Compiler& compiler, const GrammarSource& source,
                            const Fingerprint& fingerprint, uint64_t prepare_steps, int depth) {
  GrammarOptions options;
  options.json_schema = source.options;
  options.prepare_steps = prepare_steps;
  if (source.resolves) {
    options.json_schema.resolve_document =
        [documents = source.documents](std::string_view uri) -> Result<std::string> {
      for (const auto& [known, text] : documents) {
        if (known == uri) return text;
      }
      return Error{ErrorCode::kInvalid, "the document was not kept with the grammar", ""};
    };
  }
  Result<Grammar> grammar = CompileSource(compiler, source, options);
  for (const GrammarSource::Step& step : source.steps) {
    if (!grammar.ok()) return grammar;
    grammar = Apply(compiler, *grammar, step, fingerprint, prepare_steps, depth);
  }
  return grammar;
}

std::string Serialize(const GrammarSource& source, const Fingerprint& fingerprint) {
  Writer writer;
  writer.Bytes(kMagic);
  writer.Version(kVersion);
  for (const uint64_t word : fingerprint) writer.Number(word);
  writer.String(source.kind);
  Options(writer, source.options);
  writer.Number(source.texts.size());
  for (const std::string& text : source.texts) writer.String(text);
  writer.Number(source.resolves ? 1 : 0);
  writer.Number(source.documents.size());
  for (const auto& [uri, text] : source.documents) {
    writer.String(uri);
    writer.String(text);
  }
  writer.Number(source.steps.size());
  for (const GrammarSource::Step& step : source.steps) {
    writer.String(step.name);
    writer.Number(step.texts.size());
    for (const std::string& text : step.texts) writer.String(text);
  }
  writer.Number(Hash(writer.out(), kVersion));
  return writer.Take();
}

Result<GrammarSource> Deserialize(std::string_view bytes, const Fingerprint& fingerprint) {
  Reader reader(bytes);
  if (reader.Bytes(kMagic.size()) != kMagic) return Damaged();
  const uint32_t version = reader.Version();
  if (!reader.good()) return Damaged();
  if (version != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 "a serialized grammar of format version " + std::to_string(version) +
                     "; this library reads version " + std::to_string(kVersion),
                 ""};
  }
  constexpr size_t kChecksum = 8;
  if (bytes.size() < kChecksum) return Damaged();
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksum);
  if (Reader(bytes.substr(body.size())).Number() != Hash(body, kVersion)) return Damaged();
  Fingerprint found;
  for (uint64_t& word : found) word = reader.Number();
  if (found != fingerprint) {
    return Error{ErrorCode::kInvalid, "the grammar was compiled for another vocabulary", ""};
  }
  GrammarSource source;
  source.kind = reader.String();
  Options(reader, source.options);
  source.texts.resize(reader.Count(8));
  for (std::string& text : source.texts) text = reader.String();
  source.resolves = reader.Number() != 0;
  source.documents.resize(reader.Count(16));
  for (auto& [uri, text] : source.documents) {
    uri = reader.String();
    text = reader.String();
  }
  source.steps.resize(reader.Count(16));
  for (GrammarSource::Step& step : source.steps) {
    step.name = reader.String();
    step.texts.resize(reader.Count(8));
    for (std::string& text : step.texts) text = reader.String();
  }
  reader.Number();  // the checksum
  if (!reader.good() || !reader.done() || source.texts.empty() || !WithinLimits(source.options))
    return Damaged();
  return source;
}

}  // namespace pawl
