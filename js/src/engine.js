// A language model in JavaScript: pawl-engine.wasm reads a model's files from memory and writes records. Example:
//
//   const engine = await loadEngine({ files: new URL("../models/tiny-extract/", import.meta.url) });
//   const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
//   const record = await engine.extract({ schema, text: "Ann Lee lives in Porto.", onToken: (text) => show(text) });
//   record.value;                        // { name: "Ann Lee" }
//
// The types are in engine.d.ts. The model computes on the thread that asks, a call of the model at a time, and other events
// of the thread have their turn between two calls. A page asks from a worker.
import { addressOf, awaitedLater, badArgument, bytesAt, bytesOf, camel, compiled, encoder, Handle, ioError, jsonText, onlyKnown, snake,
  spelled, wellFormed, withNames } from "./common.js";
import { Calls, PawlError } from "./module.js";

export { PawlError };

const kFiles = ["config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json", "pawl.json",
  "chat_template.jinja"];
const kNeeded = ["config.json", "tokenizer.json"];
const kUnread = "cannot be read";
const kIndex = "model.safetensors.index.json";
const kLoad = ["module", "files", "maxMemory", "print", "name", "kvBytes", "maxBatch", "dtype", "chatTemplate"];
const kExtract = ["schema", "text", "instruction", "examples", "schemaView", "preferText", "maxTokens", "temperature", "topK",
  "topP", "minP", "seed", "onToken", "signal"];

// Lets other events of this thread have their turn.
const pause = typeof setImmediate === "function" ? () => new Promise((done) => setImmediate(done)) : pausesOfChannel();
function pausesOfChannel() {
  const channel = new MessageChannel(), waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  return () => new Promise((done) => {
    waiting.push(done);
    channel.port2.postMessage(0);
  });
}

// The files of a model's folder by their names.
async function filesOf(folder) {
  const base = await addressOf("files", folder);
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  const needed = async (name) => {
    const bytes = await bytesAt(new URL(name, base), kUnread);
    if (bytes === undefined) throw new PawlError("io", "no such file; a model needs it", new URL(name, base).href);
    return [name, bytes];
  };
  const found = await Promise.all(kFiles.map(async (name) =>
    kNeeded.includes(name) ? needed(name) : [name, await bytesAt(new URL(name, base), kUnread)]));
  const weights = await bytesAt(new URL("model.safetensors", base), kUnread);
  if (weights !== undefined) return Object.fromEntries([...found, ["model.safetensors", weights]]);
  const index = await bytesAt(new URL(kIndex, base), kUnread);
  if (index === undefined) await needed("model.safetensors");
  let shards = [];
  try {
    shards = [...new Set(Object.values(JSON.parse(new TextDecoder().decode(index)).weight_map))];
  } catch {
    // the engine says what is wrong with it
  }
  return Object.fromEntries([...found, [kIndex, index], ...await Promise.all(shards.map(needed))]);
}

async function bytesOfFile(name, given) {
  const place = `files[${JSON.stringify(name)}]`;
  try {
    const file = await given;
    if (typeof file === "string" || file instanceof Uint8Array) return bytesOf(place, file);
    if (file instanceof ArrayBuffer) return new Uint8Array(file);
    if (ArrayBuffer.isView(file)) return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
    if (typeof file?.arrayBuffer !== "function") throw badArgument(place, "must be bytes, a text, a Blob or a Response");
    if (file.ok === false) throw new PawlError("io", `${kUnread}: ${file.status} ${file.statusText}`.trimEnd(), file.url || name);
    return new Uint8Array(await file.arrayBuffer());
  } catch (cause) {
    throw cause instanceof PawlError ? cause : ioError(place, kUnread, cause);
  }
}

function jsonOf(calls, name, values) {
  return calls.scope((s) => {
    const data = s.word(), length = s.word();
    calls.checked(name, [...values, data, length]);
    return JSON.parse(new TextDecoder().decode(calls.take(s.read(data), s.read(length), Uint8Array)));
  });
}

// JSON has no NaN and no infinity, and would leave out what is no value of JSON: such options are errors here.
function givenJson(options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return encoder.encode(`{${given.map(([key, value]) => {
    if (value === null) throw badArgument(key, "must not be null");
    if (typeof value === "number" && !Number.isFinite(value)) throw badArgument(key, "must be a finite number");
    return `"${snake(key)}":${jsonText(key, value)}`;
  }).join(",")}}`);
}

// An output: what has come of it, and its promise.
class Coming {
  constructor(calls, engine, id, onToken, signal, resolve, reject) {
    Object.assign(this, { calls, engine, id, onToken, signal, resolve, reject });
    this.decoder = new TextDecoder();
    this.tokens = [];
    this.abort = () => calls.plain("pawl_wasm_engine_cancel", engine, id);
    if (signal?.aborted) this.abort();
    signal?.addEventListener("abort", this.abort);
  }
  // Takes what has come; true: the output has ended.
  take() {
    const { calls, engine, id } = this;
    try {
      const [bytes, tokens, ended] = calls.scope((s) => {
        const out = [s.word(), s.word(), s.word(), s.word(), s.word()];
        calls.checked("pawl_wasm_engine_take", [engine, id, ...out]);
        const [text, length, list, count, end] = out.map((at) => s.read(at));
        return [calls.take(text, length, Uint8Array), calls.take(list, count, Int32Array), end !== 0];
      });
      const text = this.decoder.decode(bytes, { stream: !ended });
      if (this.onToken !== undefined && (text !== "" || tokens.length > 0)) this.tell(text, tokens);
      if (!ended) return false;
      this.end();
      const output = jsonOf(calls, "pawl_wasm_engine_output", [engine, id]);
      if (this.failure !== undefined) throw this.failure;
      const whole = output.stop === "end" || output.stop === "closed";
      const stats = Object.fromEntries(Object.entries(output.stats).map(([key, value]) => [camel(key), value]));
      this.resolve({ ...output, tokens: Int32Array.from(output.tokens), stats, value: whole ? JSON.parse(output.text) : undefined });
    } catch (error) {
      this.end();
      this.reject(error === this.failure ? error : spelled(error, kExtract));
    }
    return true;
  }
  // What the caller's function throws ends the output, and is its error.
  tell(text, tokens) {
    if (this.failure !== undefined) return;
    try {
      this.onToken(text, tokens);
    } catch (error) {
      this.failure = error;
      this.abort();
    }
  }
  end() {
    this.signal?.removeEventListener("abort", this.abort);
  }
}

export class Engine extends Handle {
  constructor(calls, handle) {
    super(calls, handle, "pawl_wasm_engine_free");
    this.info = jsonOf(calls, "pawl_wasm_engine_info", [handle]);
    this._coming = new Set();
    this._runs = false;
  }
  get memoryBytes() {
    return this._calls.memory.buffer.byteLength;
  }
  extract(options = {}) {
    return new Promise((resolve, reject) => {
      onlyKnown(options, kExtract);
      const { schema, text, onToken, signal, ...others } = options;
      if (schema === undefined) throw badArgument("schema", "is missing");
      if (typeof text !== "string") throw badArgument("text", "must be a string");
      if (onToken !== undefined && typeof onToken !== "function") throw badArgument("onToken", "must be a function");
      if (signal !== undefined && (typeof signal?.addEventListener !== "function" || typeof signal.aborted !== "boolean"))
        throw badArgument("signal", "must be an AbortSignal");
      const calls = this._calls, handle = this._handle;
      const id = withNames(kExtract, () => calls.scope((s) => {
        const request = { ...others, schema: typeof schema === "string" ? schema : jsonText("schema", schema), text };
        const data = s.bytes(givenJson(request)), out = s.word();
        calls.checked("pawl_wasm_engine_extract", [handle, data.at, data.length, out]);
        return s.read(out);
      }));
      this._coming.add(new Coming(calls, handle, id, onToken, signal, resolve, reject));
      if (!this._runs) this._run();
    });
  }
  async _run() {
    this._runs = true;
    while (this._coming.size > 0) {
      await pause();
      try {
        if (this._at !== 0) this._calls.plain("pawl_wasm_engine_step", this._at);
      } catch {
        // each output takes the error
      }
      for (const one of [...this._coming]) {
        if (one.take()) this._coming.delete(one);
      }
    }
    this._runs = false;
  }
  free() {
    for (const one of this._coming) {
      one.end();
      one.reject(new PawlError("ended", "the engine was freed"));
    }
    this._coming.clear();
    super.free();
  }
}

/** Loads the module and a model; see engine.d.ts. */
export async function loadEngine(options = {}) {
  onlyKnown(options, kLoad);
  const { module, files, maxMemory, print, name = "model", ...others } = options;
  awaitedLater(module);
  if (files === undefined) throw badArgument("files", "is missing");
  if (typeof files !== "string" && (typeof files !== "object" || files === null))
    throw badArgument("files", "must be an address, or an object with the bytes of each file");
  if (typeof name !== "string") throw badArgument("name", "must be a string");
  wellFormed("name", name);
  if (typeof files === "object" && !(files instanceof URL)) Object.values(files).forEach(awaitedLater);
  givenJson(others);  // before anything is fetched: is each option a value?
  const [code, given] = await Promise.all([
    compiled(module, "pawl-engine.wasm"),
    typeof files === "string" || files instanceof URL ? filesOf(files) : files,
  ]);
  const calls = await Calls.load(code, { maxMemory, print });
  const names = Object.keys(given).filter((file) => given[file] !== undefined);
  for (const file of names) {
    const bytes = await bytesOfFile(file, given[file]);
    calls.scope((s) => {
      const path = s.bytes(encoder.encode(`${name}/${file}`)), at = calls.allocate(bytes.length);
      new Uint8Array(calls.memory.buffer, at, bytes.length).set(bytes);
      calls.checked("pawl_wasm_engine_file", [path.at, path.length, at, bytes.length]);
    });
  }
  // A GGUF file is a model without a folder.
  const path = names.length === 1 && names[0].endsWith(".gguf") ? `${name}/${names[0]}` : name;
  const handle = withNames(kLoad, () => calls.scope((s) => {
    const data = s.bytes(givenJson({ ...others, name: path })), out = s.word();
    calls.checked("pawl_wasm_engine_load", [data.at, data.length, out]);
    return s.read(out);
  }));
  return new Engine(calls, handle);
}
