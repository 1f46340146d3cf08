// The model in WebAssembly under Node: the records and tokens of the native library (engine_records.json, which
// scripts/make_engine_records.py wrote), streams, outputs that are cancelled, errors with their places.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { loadEngine, PawlError } from "../src/engine.js";

const module = new URL("../pawl-engine.wasm", import.meta.url);
const skip = existsSync(module) ? false : "no js/pawl-engine.wasm (scripts/build_wasm.sh --engine)";
const masks = new URL(existsSync(new URL("../pawl.wasm", import.meta.url)) ? "../pawl.wasm" : "engine_worker.mjs", import.meta.url);
const folder = new URL("../../models/tiny-extract/", import.meta.url);
const records = JSON.parse(readFileSync(new URL("engine_records.json", import.meta.url), "utf8"));
const readme = records[0];
const file = (name) => readFileSync(new URL(name, folder));
const files = () => ({
  "config.json": file("config.json"), "tokenizer.json": file("tokenizer.json"), "pawl.json": file("pawl.json"),
  "tokenizer_config.json": file("tokenizer_config.json"), "model.safetensors": file("model.safetensors"),
});
const wasm = skip ? undefined : await WebAssembly.compile(readFileSync(module));
const engine = skip ? undefined : await loadEngine({ files: folder });

test("records and tokens are those of the native library", { skip }, async () => {
  assert.equal(records.length, 21);
  for (const { schema, text, record, tokens } of records) {
    const output = await engine.extract({ schema, text });
    assert.equal(output.text, record);
    assert.deepEqual([...output.tokens], tokens);
    assert.deepEqual(output.value, JSON.parse(record));
    assert.equal(output.stop, "end");
    assert.equal(output.stats.outputTokens, tokens.length);
  }
  assert.equal(engine.info.architecture, "LlamaForCausalLM");
  assert.equal(engine.info.kernels, "wasm-simd128");
});

test("the output comes token by token, and other events have their turn", { skip }, async () => {
  let text = "", turns = 0;
  const tokens = [], turnsSeen = new Set();
  const clock = setInterval(() => ++turns, 0);
  const output = await engine.extract({ ...pick(readme), onToken: (piece, list) => {
    text += piece;
    tokens.push(...list);
    turnsSeen.add(turns);
  } });
  clearInterval(clock);
  assert.equal(text, readme.record);
  assert.deepEqual(tokens, [...output.tokens]);
  assert.ok(turnsSeen.size > 3, String(turnsSeen.size));
});

test("an output that is cancelled has what there was", { skip }, async () => {
  const stopping = new AbortController();
  let text = "";
  const output = await engine.extract({ ...pick(readme), signal: stopping.signal, onToken: (piece) => {
    text += piece;
    if (text.includes("Ann")) stopping.abort();
  } });
  assert.equal(output.stop, "cancelled");
  assert.equal(output.value, undefined);
  assert.ok(readme.record.startsWith(text) && text.length < readme.record.length, text);
  const before = await engine.extract({ ...pick(readme), signal: AbortSignal.abort() });
  assert.equal(before.stop, "cancelled");
  assert.equal(before.tokens.length, 0);
  await assert.rejects(engine.extract({ ...pick(readme), onToken: () => { throw new Error("mine"); } }), { message: "mine" });
  assert.equal((await engine.extract(pick(readme))).text, readme.record);
});

test("outputs share the calls of the model", { skip }, async () => {
  const several = await loadEngine({ module: wasm, files: files(), maxBatch: 4 });
  const some = records.slice(0, 4);
  const outputs = await Promise.all(some.map((one) => several.extract(pick(one))));
  assert.deepEqual(outputs.map((one) => one.text), some.map((one) => one.record));
  const left = several.extract(pick(readme));
  several.free();
  await assert.rejects(left, { code: "ended" });
});

test("integer weights give the tokens of the native library", { skip }, async () => {
  const small = await loadEngine({ module: wasm, files: files(), dtype: "int8" });
  assert.equal(small.info.weights, "int8");
  for (const one of records.slice(0, 6)) {
    const output = await small.extract(pick(one));
    assert.equal(output.text, one.int8.record);
    assert.deepEqual([...output.tokens], one.int8.tokens);
  }
  small.free();
});

test("errors have the text and the place of the native library", { skip }, async () => {
  const schema = { type: "object" }, cyclic = {};
  cyclic.properties = cyclic;
  const cases = [
    [{ schema: { properties: { a: { minimum: "x" } } }, text: "a" }, "invalid", "schema: #/properties/a/minimum", "must be a number"],
    [{ schema: '{"type": }', text: "a" }, "invalid", "schema: 1:10 (byte 9)", null],
    [{ schema: { type: "integer", minimum: 5, maximum: 4 }, text: "a" }, "unsatisfiable", null, null],
    [{ schema, text: " " }, "invalid", "text", "holds only white space"],
    [{ schema, text: "" }, "invalid", "text", "is empty"],
    [{ schema }, "bad argument", "text", "must be a string"],
    [{ text: "a" }, "bad argument", "schema", "is missing"],
    [{ schema, text: "a", colour: 1 }, "bad argument", "colour", null],
    [{ schema, text: "a", maxTokens: 0 }, "invalid", "maxTokens", null],
    [{ schema, text: "a", temperature: -1 }, "invalid", "temperature", null],
    [{ schema, text: "a", schemaView: "half" }, "invalid", "schemaView", null],
    [{ schema, text: "a", instruction: "Find names." }, "invalid", "instruction", null],
    [undefined, "bad argument", "schema", "is missing"],
    [null, "bad argument", "options", null],
    [{ schema, text: "a\ud800b" }, "bad argument", "text", "has half of a surrogate pair at index 1"],
    [{ schema: '{"a\udc00": 1}', text: "a" }, "bad argument", "schema", null],
    [{ schema: cyclic, text: "a" }, "bad argument", "schema", null],
    [{ schema: { const: 1n }, text: "a" }, "bad argument", "schema", null],
    [{ schema, text: "a", examples: [{ text: "\ud800", record: {} }] }, "bad argument", "examples", null],
    [{ schema, text: "a", examples: 5 }, "invalid", "examples: #", null],
    [{ schema, text: "a", signal: 5 }, "bad argument", "signal", "must be an AbortSignal"],
    [{ schema, text: "a", onToken: 5 }, "bad argument", "onToken", "must be a function"],
    [{ schema, text: "a", temperature: NaN }, "bad argument", "temperature", "must be a finite number"],
    [{ schema, text: "a", temperature: Infinity }, "bad argument", "temperature", "must be a finite number"],
    [{ schema, text: "a", maxTokens: NaN }, "bad argument", "maxTokens", "must be a finite number"],
    [{ schema, text: "a", maxTokens: 5n }, "bad argument", "maxTokens", null],
    [{ schema, text: "a", seed: null }, "bad argument", "seed", "must not be null"],
    [{ schema, text: "a", seed: Symbol("a") }, "bad argument", "seed", null],
    [{ schema, text: "a", topP: 7 }, "invalid", "topP", null],
    [{ schema, text: "a", minP: -1 }, "invalid", "minP", null],
    [{ schema, text: "a", topK: 0.5 }, "invalid", "topK", null],
    [{ schema, text: "a", preferText: -1 }, "invalid", "preferText", null],
    [{ schema, text: "word ".repeat(5000) }, "limit", "prompt", null],
  ];
  for (const [request, code, place, text] of cases) {
    await assert.rejects(engine.extract(request), (error) => {
      assert.ok(error instanceof PawlError, String(error));
      assert.equal(error.code, code, error.message);
      if (place !== null) assert.equal(error.place, place, error.message);
      if (text !== null) assert.equal(error.text, text);
      return true;
    });
  }
  const loads = [
    [{}, "bad argument", "files"],
    [{ files: {} }, "io", "model"],
    [{ files: { ...files(), "model.safetensors": file("model.safetensors").subarray(0, 100000) } }, "invalid", "model/model.safetensors"],
    [{ files: { ...files(), "config.json": "{}" } }, null, "model/config.json"],
    [{ files: { ...files(), "tokenizer.json": undefined } }, "io", "model/tokenizer.json"],
    [{ files: { ...files(), "pawl.json": 7 } }, "bad argument", 'files["pawl.json"]'],
    [{ files: files(), dtype: "int3" }, "invalid", "dtype"],
    [{ files: new URL("none/", folder) }, "io", null],
    [{ files: files(), module: new URL("none.wasm", folder) }, "io", null],
    [{ files: "http://127.0.0.1:1/model/" }, "io", "http://127.0.0.1:1/model/"],
    [{ files: "none" }, "io", new URL("none/config.json", `file://${process.cwd()}/`).href],
    [{ files: "http://" }, "bad argument", "files"],
    [{ files: 5 }, "bad argument", "files"],
    [{ files: { "config.json": { then: (_, reject) => reject(new TypeError("fetch failed")) } } }, "io", 'files["config.json"]'],
    [{ files: { "config.json": new Response("", { status: 404 }) } }, "io", "config.json"],
    [{ files: files(), module: new Uint8Array(0) }, "invalid", "module"],
    [{ files: files(), module: masks }, "invalid", masks.href],
    [{ files: files(), module: "http://127.0.0.1:1/x.wasm" }, "io", "http://127.0.0.1:1/x.wasm"],
    [{ files: files(), kvBytes: NaN }, "bad argument", "kvBytes"],
    [{ files: files(), kvBytes: 0 }, "invalid", "kvBytes"],
    [{ files: files(), maxBatch: 0 }, "invalid", "maxBatch"],
    [{ files: files(), chatTemplate: "{% if" }, null, "chatTemplate"],
    [{ files: files(), name: 5 }, "bad argument", "name"],
    [{ files: files(), maxMemory: 20 << 20 }, "limit", null],
  ];
  for (const [options, code, place] of loads) {
    await assert.rejects(loadEngine({ module: wasm, ...options }), (error) => {
      assert.ok(error instanceof PawlError, String(error));
      if (code !== null) assert.equal(error.code, code, error.message);
      if (place !== null) assert.ok(error.place.startsWith(place), `${error.place}: ${error.text}`);
      return true;
    });
  }
});

test("a relative address of a model is relative to the current folder", { skip }, async () => {
  const relative = path.relative(process.cwd(), fileURLToPath(folder));
  const own = await loadEngine({ module: wasm, files: relative });
  assert.equal((await own.extract(pick(readme))).text, readme.record);
  own.free();
});

test("memory is used again", { skip }, async () => {
  const own = await loadEngine({ module: wasm, files: files() });
  for (let i = 0; i < 3; ++i) await own.extract(pick(readme));
  const before = own.memoryBytes;
  for (let i = 0; i < 6; ++i) await own.extract(pick(readme));
  assert.equal(own.memoryBytes, before);
  own.free();
  await assert.rejects(own.extract(pick(readme)), { text: "was freed" });
});

test("works in a worker", { skip }, async () => {
  const worker = new Worker(new URL("engine_worker.mjs", import.meta.url));
  try {
    const answer = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.postMessage({ folder: folder.href, request: pick(readme) });
    });
    assert.equal(answer, readme.record);
  } finally {
    await worker.terminate();
  }
});

function pick({ schema, text }) {
  return { schema, text };
}
