// Pawl for JavaScript: the masks that keep a language model's output inside a JSON Schema, a grammar or a regex, in
// browsers, workers and Node.
//
//   const pawl = await loadPawl();
//   const tokenizer = pawl.tokenizer(await (await fetch("tokenizer.json")).text(), { endTokens: ["<|im_end|>"] });
//   const grammar = pawl.compiler(tokenizer).jsonSchema({ type: "object", properties: { name: { type: "string" } } });
//   const matcher = grammar.matcher();
//   while (matcher.fillMask(row)) matcher.accept(sample(logits, row));
//
// The types are in index.d.ts. Objects hold memory of the module: `free()` gives it back at once, and the garbage collector
// some time after the last use.
import { awaitedLater, badArgument, bytesOf, compiled, encoder, Handle, jsonText, onlyKnown, snake, tokenList, wellFormed,
  wholeNumber, withNames } from "./common.js";
import { PawlError, Calls } from "./module.js";

export { PawlError };

const textOf = (place, value) => (typeof value === "string" ? value : jsonText(place, value));
const kBytes = 2 ** 32 - 1;

export class Vocabulary extends Handle {
  constructor(calls, handle) {
    super(calls, handle, "pawl_vocabulary_free");
    this.size = calls.plain("pawl_vocabulary_size", handle);
    this.maskWords = calls.plain("pawl_vocabulary_mask_words", handle);
  }
  get endTokens() {
    return this._calls.list("pawl_vocabulary_end_tokens", [this._handle], 64);
  }
  tokenBytes(token) {
    wholeNumber("token", token);
    const calls = this._calls;
    return calls.scope((s) => {
      const bytes = s.word(), length = s.word();
      calls.status("pawl_vocabulary_token", [this._handle, token, bytes, length], "token");
      return calls.copy(s.read(bytes), s.read(length));
    });
  }
}

export class Tokenizer extends Vocabulary {
  encode(text, options = {}) {
    onlyKnown(options, ["parseSpecial"]);
    const calls = this._calls;
    return calls.scope((s) => {
      const data = s.bytes(bytesOf("text", text)), tokens = s.word(), count = s.word();
      calls.checked("pawl_wasm_encode", [this._handle, data.at, data.length, options.parseSpecial ? 1 : 0, tokens, count]);
      return calls.take(s.read(tokens), s.read(count), Int32Array);
    });
  }
  decodeBytes(tokens, options = {}) {
    onlyKnown(options, ["keepSpecial"]);
    const calls = this._calls;
    return calls.scope((s) => {
      const list = s.tokens(tokenList("tokens", tokens)), bytes = s.word(), length = s.word();
      calls.checked("pawl_wasm_decode", [this._handle, list.at, list.length, options.keepSpecial ? 1 : 0, bytes, length]);
      return calls.take(s.read(bytes), s.read(length), Uint8Array);
    });
  }
  decode(tokens, options = {}) {
    return new TextDecoder().decode(this.decodeBytes(tokens, options));
  }
}

const kCompiler = ["cachedGrammars", "memoryBudget", "prepareSteps"];

export class Compiler extends Handle {
  constructor(calls, vocabulary, options) {
    onlyKnown(options, kCompiler);
    if (!(vocabulary instanceof Vocabulary)) throw badArgument("vocabulary", "must be a vocabulary or a tokenizer");
    if (vocabulary._calls !== calls) throw badArgument("vocabulary", "belongs to another module");
    const whole = (name, most) => options[name] === undefined ? undefined : wholeNumber(name, options[name], 0, most);
    const cached = whole("cachedGrammars", kBytes), budget = whole("memoryBudget", kBytes);
    const steps = whole("prepareSteps", Number.MAX_SAFE_INTEGER);
    const handle = withNames(kCompiler, () => calls.scope((s) => {
      // pawl_compiler_options: struct_size, cached_grammars, prepare_steps (64 bits), memory_budget
      const at = s.room(24), out = s.word();
      calls.plain("pawl_compiler_options_init", at, 24);
      const view = calls.view();
      if (cached !== undefined) view.setUint32(at + 4, cached, true);
      if (steps !== undefined) view.setBigUint64(at + 8, BigInt(steps), true);
      if (budget !== undefined) view.setUint32(at + 16, budget, true);
      calls.checked("pawl_compiler_create", [vocabulary._handle, at, out]);
      return s.read(out);
    }));
    super(calls, handle, "pawl_compiler_free");
    this.vocabulary = vocabulary;
  }
  get memoryBytes() {
    return this._calls.plain("pawl_compiler_memory_bytes", this._handle);
  }

  compile(kind, text, options) {
    if (typeof kind !== "string") throw badArgument("kind", "must be a string");
    return this._compile(kind, "text", text, options);
  }
  // `place` is what the caller's text is called.
  _compile(kind, place, text, options = undefined) {
    const calls = this._calls, bytes = bytesOf(place, text);
    if (options !== undefined && (typeof options !== "object" || options === null))
      throw badArgument("options", "must be an object");
    return withNames(Object.keys(options ?? {}), () => calls.scope((s) => {
      const name = s.bytes(encoder.encode(kind + "\0")), data = s.bytes(bytes), out = s.word();
      const read = options === undefined ? 0 : this._options(s, options);
      calls.checked("pawl_compile", [this._handle, name.at, data.at, data.length, read, out]);
      return new Grammar(calls, s.read(out), this.vocabulary);
    }));
  }
  _options(s, options) {
    const calls = this._calls, out = s.word();
    calls.checked("pawl_wasm_options_create", [out]);
    const made = s.read(out);
    s.later(() => calls.plain("pawl_wasm_options_free", made));
    const given = new Set();
    for (const [key, value] of Object.entries(options)) {
      if (value === undefined) continue;
      if (given.has(snake(key))) throw badArgument(key, "is given twice");
      given.add(snake(key));
      const name = s.bytes(encoder.encode(snake(key)));
      if (typeof value === "string") {
        const text = s.bytes(encoder.encode(wellFormed(key, value)));
        calls.checked("pawl_wasm_options_set_text", [made, name.at, name.length, text.at, text.length]);
      } else {
        const number = typeof value === "boolean" ? Number(value) : typeof value === "number" ? value : NaN;
        calls.checked("pawl_wasm_options_set_number", [made, name.at, name.length, number]);
      }
    }
    return calls.plain("pawl_wasm_options_get", made);
  }
  jsonSchema(schema, options = {}) {
    const text = schema instanceof Uint8Array ? schema : textOf("schema", schema);
    return this._compile("json_schema", "schema", text, options);
  }
  regex(pattern) {
    return this._compile("regex", "pattern", pattern);
  }
  choice(choices) {
    return this._compile("choice", "choices", jsonText("choices", choices));
  }
  ebnf(text, options) {
    return this._compile("ebnf", "text", text, options);
  }
  gbnf(text, options) {
    return this._compile("gbnf", "text", text, options);
  }
  lark(text, options) {
    return this._compile("lark", "text", text, options);
  }
  substring(text) {
    return this._compile("substring", "text", text);
  }
  structuralTag(tag, options) {
    return this._compile("structural_tag", "tag", textOf("tag", tag), options);
  }
  deserialize(bytes) {
    if (!(bytes instanceof Uint8Array)) throw badArgument("bytes", "must be a Uint8Array");
    const calls = this._calls;
    return calls.scope((s) => {
      const data = s.bytes(bytes), out = s.word();
      calls.checked("pawl_grammar_deserialize", [this._handle, data.at, data.length, out]);
      return new Grammar(calls, s.read(out), this.vocabulary);
    });
  }
}

export class Grammar extends Handle {
  constructor(calls, handle, vocabulary) {
    super(calls, handle, "pawl_grammar_free");
    this.vocabulary = vocabulary;
  }
  get notes() {
    const calls = this._calls, notes = [];
    const count = calls.plain("pawl_grammar_note_count", this._handle);
    for (let i = 0; i < count; ++i) {
      notes.push(calls.scope((s) => {
        const text = s.word(), length = s.word();
        calls.status("pawl_grammar_note", [this._handle, i, text, length], "note");
        return calls.text(s.read(text), s.read(length));
      }));
    }
    return notes;
  }
  serialize() {
    const calls = this._calls;
    return calls.scope((s) => {
      const size = s.word();
      calls.checked("pawl_grammar_serialize", [this._handle, 0, 0, size]);
      const length = s.read(size), at = s.room(length);
      calls.checked("pawl_grammar_serialize", [this._handle, at, length, size]);
      return calls.copy(at, length);
    });
  }
  matcher(options = {}) {
    onlyKnown(options, ["endTokens", "terminateWithoutEndToken"]);
    const calls = this._calls;
    return withNames(["endTokens"], () => calls.scope((s) => {
      const end = s.tokens(tokenList("endTokens", options.endTokens ?? [])), at = s.room(16), out = s.word();
      const view = calls.view();
      [16, end.at, end.length, options.terminateWithoutEndToken ? 1 : 0].forEach((v, i) => view.setUint32(at + 4 * i, v, true));
      calls.checked("pawl_matcher_create", [this._handle, at, out]);
      return new Matcher(calls, s.read(out), this);
    }));
  }
}

export class Matcher extends Handle {
  constructor(calls, handle, grammar) {
    super(calls, handle, "pawl_matcher_free");
    this.grammar = grammar;
    this._words = grammar.vocabulary.maskWords;
  }
  get steps() {
    return this._calls.plain("pawl_matcher_steps", this._handle);
  }
  get isTerminated() {
    return this._calls.plain("pawl_matcher_is_terminated", this._handle) !== 0;
  }
  get isAccepting() {
    return this._calls.plain("pawl_matcher_is_accepting", this._handle) !== 0;
  }
  accept(token) {
    wholeNumber("token", token);
    return this._calls.accepted("pawl_matcher_accept", [this._handle, token], "token");
  }
  acceptText(text) {
    const calls = this._calls;
    return calls.scope((s) => {
      const data = s.bytes(bytesOf("text", text));
      return calls.accepted("pawl_matcher_accept_bytes", [this._handle, data.at, data.length], "text");
    });
  }
  rollback(steps = 1) {
    wholeNumber("steps", steps);
    this._calls.status("pawl_matcher_rollback", [this._handle, steps], "steps");
  }
  reset() {
    this._calls.status("pawl_matcher_reset", [this._handle], "matcher");
  }
  clone() {
    const calls = this._calls;
    return calls.scope((s) => {
      const out = s.word();
      calls.status("pawl_matcher_clone", [this._handle, out], "matcher");
      return new Matcher(calls, s.read(out), this.grammar);
    });
  }
  fillMask(row) {
    if (!(row instanceof Uint32Array) || row.length < this._words)
      throw badArgument("row", `must be a Uint32Array of ${this._words} words`);
    const calls = this._calls, at = calls.row(this._words);
    const some = calls.filled("pawl_matcher_fill_mask", [this._handle, at, this._words]);
    row.set(calls.words(at, this._words));
    return some;
  }
  mask() {
    const row = new Uint32Array(this._words);
    this.fillMask(row);
    return row;
  }
  validateTokens(tokens) {
    const calls = this._calls;
    return calls.scope((s) => {
      const list = s.tokens(tokenList("tokens", tokens)), out = s.word();
      calls.status("pawl_matcher_validate_tokens", [this._handle, list.at, list.length, out], "tokens");
      return s.read(out);
    });
  }
  forcedBytes(limit = 256) {
    wholeNumber("limit", limit, 0);
    const calls = this._calls;
    return calls.scope((s) => {
      const at = s.room(limit), length = s.word();
      calls.status("pawl_matcher_forced_bytes", [this._handle, at, limit, length], "limit");
      return calls.copy(at, s.read(length));
    });
  }
  forcedText(limit = 256) {
    const bytes = this.forcedBytes(limit);
    // A character that is not there as a whole belongs to what comes next.
    let end = bytes.length;
    for (let i = 1; i <= Math.min(3, bytes.length); ++i) {
      const byte = bytes[bytes.length - i];
      if ((byte & 0xc0) === 0x80) continue;
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      if (length > i) end = bytes.length - i;
      break;
    }
    return new TextDecoder().decode(bytes.subarray(0, end));
  }
  forcedTokens() {
    return this._calls.list("pawl_matcher_forced_tokens", [this._handle], 256);
  }
  completionTokens() {
    return this._calls.list("pawl_matcher_completion_tokens", [this._handle], 1024);
  }
}

// The ids of end tokens, of which some are given by name.
function endTokenIds(json, list) {
  if (typeof list !== "object" || !Number.isInteger(list?.length))
    throw badArgument("endTokens", "must be a list of tokens or of their names");
  const given = Array.from(list);
  given.forEach((token, i) => {
    if (typeof token === "number") wholeNumber(`endTokens[${i}]`, token);
    else if (typeof token !== "string") throw badArgument(`endTokens[${i}]`, "must be the id or the name of a token");
  });
  if (given.every((token) => typeof token === "number")) return given;
  let file;
  try {
    file = JSON.parse(json);
  } catch {
    return [];  // the tokenizer's error says more
  }
  return given.map((token, i) => {
    if (typeof token === "number") return token;
    const id = file?.added_tokens?.find?.((added) => added?.content === token)?.id ?? file?.model?.vocab?.[token];
    if (typeof id !== "number") throw badArgument(`endTokens[${i}]`, `the tokenizer has no token ${JSON.stringify(token)}`);
    return id;
  });
}

export class Pawl {
  constructor(calls) {
    this._calls = calls;
    this.version = calls.zeroEnded(calls.plain("pawl_version"));
  }
  get memoryBytes() {
    return this._calls.memory.buffer.byteLength;
  }
  tokenizer(json, options = {}) {
    onlyKnown(options, ["endTokens", "paddedSize"]);
    const calls = this._calls, text = json instanceof Uint8Array ? json : textOf("json", json);
    const padded = wholeNumber("paddedSize", options.paddedSize ?? 0, 0);
    return withNames(["endTokens", "paddedSize"], () => calls.scope((s) => {
      const given = options.endTokens ?? [];
      const end = s.tokens(endTokenIds(typeof text === "string" ? text : new TextDecoder().decode(text), given));
      const data = s.bytes(bytesOf("json", text)), at = s.room(16), out = s.word();
      const view = calls.view();
      [16, padded, end.at, end.length].forEach((v, i) => view.setInt32(at + 4 * i, v, true));
      calls.checked("pawl_vocabulary_from_tokenizer_json", [data.at, data.length, at, out]);
      return new Tokenizer(calls, s.read(out));
    }));
  }
  vocabulary(parts = {}) {
    onlyKnown(parts, ["tokens", "special", "endTokens"]);
    const { tokens, special = [], endTokens = [] } = parts;
    if (!Array.isArray(tokens)) throw badArgument("tokens", "must be a list of texts or bytes");
    const calls = this._calls;
    return withNames(Object.keys(parts), () => calls.scope((s) => {
      const pointers = s.room(4 * tokens.length), lengths = s.room(4 * tokens.length);
      const all = Array.from(tokens, (token, i) => bytesOf(`tokens[${i}]`, token));
      const data = s.bytes(joined(all));
      let next = data.at;
      const view = calls.view();
      all.forEach((bytes, i) => {
        view.setUint32(pointers + 4 * i, next, true);
        view.setUint32(lengths + 4 * i, bytes.length, true);
        next += bytes.length;
      });
      const marks = s.tokens(tokenList("special", special)), end = s.tokens(tokenList("endTokens", endTokens));
      const at = s.room(32), out = s.word();
      const fields = [32, pointers, lengths, all.length, marks.at, marks.length, end.at, end.length];
      fields.forEach((v, i) => calls.view().setUint32(at + 4 * i, v, true));
      calls.checked("pawl_vocabulary_create", [at, out]);
      return new Vocabulary(calls, s.read(out));
    }));
  }
  compiler(vocabulary, options = {}) {
    return new Compiler(this._calls, vocabulary, options);
  }
}

function joined(list) {
  const all = new Uint8Array(list.reduce((sum, bytes) => sum + bytes.length, 0));
  let at = 0;
  for (const bytes of list) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

/** Loads the module; see index.d.ts. */
export async function loadPawl(options = {}) {
  onlyKnown(options, ["module", "maxMemory", "print"]);
  awaitedLater(options.module);
  const { module, maxMemory, print } = options;
  return new Pawl(await Calls.load(await compiled(module, "pawl.wasm"), { maxMemory, print }));
}
