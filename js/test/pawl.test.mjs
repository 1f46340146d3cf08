// The package under Node: the masks of small vocabularies against trying every token, errors with their places, memory that
// runs out. The masks of large vocabularies against the native library's: scripts/wasm_masks.mjs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { loadPawl, PawlError } from "../src/index.js";

const model = new URL("../../models/tiny-extract/", import.meta.url);
const tokenizerText = readFileSync(new URL("tokenizer.json", model), "utf8");
const pawl = await loadPawl();
const other = await loadPawl();
const tokenizer = pawl.tokenizer(tokenizerText, { endTokens: [0] });

const has = (row, token) => ((row[token >> 5] >>> (token & 31)) & 1) === 1;

function errorOf(body) {
  try {
    body();
  } catch (error) {
    assert.ok(error instanceof PawlError, String(error));
    assert.ok(error instanceof Error);
    return error;
  }
  return assert.fail("no error");
}

test("a token is in the mask exactly where it is accepted", () => {
  const letters = [..."{}[]\":,-.0123456789aebntrulfsxy \\", "\":", "{\"a\"", "tr", "12", "null", "é", "\n"];
  const vocabulary = pawl.vocabulary({ tokens: [...letters, "</s>"], special: [letters.length], endTokens: [letters.length] });
  const compiler = pawl.compiler(vocabulary);
  const grammars = [
    compiler.jsonSchema({ type: "object", properties: { a: { type: "integer", maximum: 40 }, b: { enum: [true, null, "x"] } },
      required: ["a"], additionalProperties: false }),
    compiler.jsonSchema(true, { order: "any" }),
    compiler.jsonSchema({ type: "array", items: { type: "number", multipleOf: 0.5 }, uniqueItems: true }),
    compiler.regex("(a|b)*x{2,3}"),
    compiler.choice(["true", "tr\"x", "null"]),
    compiler.gbnf('root ::= "[" (root ("," root)*)? "]"'),
    compiler.ebnf('root ::= "a" root "b" | "x"'),
    compiler.lark('start: "a" start | "b"'),
    compiler.substring("tr12ae null"),
  ];
  let seed = 7;
  const below = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % n;
  };
  let masks = 0;
  for (const grammar of grammars) {
    for (let walk = 0; walk < 12; ++walk) {
      const matcher = grammar.matcher();
      const row = new Uint32Array(vocabulary.maskWords);
      for (let step = 0; step < 25; ++step) {
        const some = matcher.fillMask(row);
        ++masks;
        const allowed = [];
        for (let token = 0; token < vocabulary.size; ++token) {
          const copy = matcher.clone();
          assert.equal(copy.accept(token), has(row, token), `token ${token} after ${matcher.steps} steps`);
          copy.free();
          if (has(row, token)) allowed.push(token);
        }
        assert.equal(some, allowed.length > 0);
        assert.deepEqual(matcher.mask(), row);
        if (!some) break;
        assert.ok(matcher.accept(allowed[below(allowed.length)]));
      }
      matcher.free();
    }
  }
  assert.ok(masks > 500, String(masks));
});

test("the tokenizer writes what it reads", () => {
  for (const text of ["", "Invoice 7 from Acme, 30 EUR", "é 世界 \u{1f600}\n\t{}", "a".repeat(5000)]) {
    const tokens = tokenizer.encode(text);
    assert.equal(tokenizer.decode(tokens), text);
  }
  assert.deepEqual([...tokenizer.endTokens], [0]);
  assert.equal(Buffer.concat([...tokenizer.encode("Pay $12")].map((t) => tokenizer.tokenBytes(t))).toString(), "Pay $12");
  const error = errorOf(() => tokenizer.decode([1, 99999999]));
  assert.equal(error.code, "bad argument");
  assert.equal(error.place, "tokens[1]");
});

test("a matcher goes forward, back, and to the end", () => {
  const schema = { type: "object", properties: { name: { const: "Ann" } }, required: ["name"], additionalProperties: false };
  const grammar = pawl.compiler(tokenizer).jsonSchema(schema, { whitespace: "compact" });
  const matcher = grammar.matcher();
  assert.equal(matcher.forcedText(), '{"name":"Ann"}');
  assert.equal(tokenizer.decode(matcher.forcedTokens()), '{"name":"Ann"}');
  const tokens = tokenizer.encode('{"name":"Ann"}');
  assert.equal(matcher.validateTokens(tokens), tokens.length);
  for (const token of tokens) assert.ok(matcher.accept(token));
  assert.ok(matcher.isAccepting && !matcher.isTerminated);
  assert.ok(!matcher.accept(tokens[0]));
  assert.ok(matcher.accept(0));
  assert.ok(matcher.isTerminated);
  assert.deepEqual(matcher.mask(), new Uint32Array(tokenizer.maskWords));
  matcher.rollback(2);
  assert.equal(matcher.steps, tokens.length - 1);
  assert.equal(errorOf(() => matcher.rollback(1000)).code, "bad argument");
  matcher.reset();
  assert.ok(matcher.acceptText('{"name":'));
  assert.ok(!matcher.acceptText("7"));
  assert.equal(tokenizer.decode(matcher.completionTokens()), '"Ann"}');
  assert.equal(grammar.matcher({ endTokens: [5] }).acceptText("{"), true);
  const bytes = grammar.serialize();
  assert.equal(pawl.compiler(tokenizer).deserialize(bytes).matcher().forcedText(), '{"name":"Ann"}');
  matcher.free();
  assert.equal(errorOf(() => matcher.mask()).text, "was freed");
});

// As `pawl schema check` and the other doors say it.
test("errors have the text and the place of the native library", () => {
  const compiler = pawl.compiler(tokenizer);
  const cases = [
    [() => compiler.jsonSchema({ properties: { a: { minimum: "x" } } }), "invalid", "#/properties/a/minimum", "must be a number"],
    [() => compiler.jsonSchema('{"type": }'), "invalid", "1:10 (byte 9)", null],
    [() => compiler.jsonSchema({ type: "integer", minimum: 5, maximum: 4 }), "unsatisfiable", null, null],
    [() => compiler.jsonSchema("[1e4933]"), "limit", "1:7 (byte 6)", "a number beyond 10^4932, which is not read"],
    [() => compiler.regex("(a"), "invalid", null, null],
    [() => compiler.gbnf('root ::= "a" b'), "invalid", null, null],
    [() => compiler.compile("nothing", "x"), "unsupported", null, null],
    [() => compiler.jsonSchema(true, { order: "none" }), "bad argument", "order", "must be one of schema, any"],
    [() => compiler.jsonSchema(true, { maxDepth: -1 }), "bad argument", "maxDepth", "must be a whole number from 0 on"],
    [() => compiler.jsonSchema(true, { max_depth: -1 }), "bad argument", "max_depth", null],
    [() => compiler.jsonSchema(true, { colour: 1 }), "bad argument", "colour", "is no option of JSON Schemas"],
    [() => pawl.tokenizer("{}"), "invalid", "#/model", null],
    [() => pawl.tokenizer(tokenizerText, { endTokens: ["<none>"] }), "bad argument", "endTokens[0]", null],
    [() => pawl.compiler(tokenizer, { memory: 1 }), "bad argument", "memory", null],
    [() => pawl.vocabulary({ tokens: ["a"], special: [-1] }), "invalid", "special", "special token id -1 is outside 0..0"],
    [() => pawl.vocabulary({ tokens: ["a"], endTokens: [1] }), "invalid", "endTokens", null],
    [() => pawl.tokenizer(tokenizerText, { paddedSize: 10 }), "invalid", "paddedSize", null],
    [() => pawl.tokenizer(tokenizerText, { paddedSize: 2e9 }), "limit", "paddedSize", "more than 2^24 tokens: 2000000000"],
    [() => pawl.tokenizer(tokenizerText, { endTokens: [99999] }), "invalid", "endTokens", null],
    [() => compiler.jsonSchema(true).matcher({ endTokens: [99999] }), "invalid", "endTokens", null],
    [() => compiler.jsonSchema(true).matcher().forcedText(2 ** 31 - 1), "limit", null, null],
    [() => pawl.tokenizer("null", { endTokens: ["a"] }), "bad argument", "endTokens[0]", null],
  ];
  for (const [body, code, place, text] of cases) {
    const error = errorOf(body);
    assert.equal(error.code, code, error.message);
    if (place !== null) assert.equal(error.place, place, error.message);
    if (text !== null) assert.equal(error.text, text);
    assert.ok(error.message.includes(error.text) && error.message.startsWith(error.place));
  }
  assert.ok(compiler.jsonSchema({ const: 1 }).matcher().acceptText("1"));
});

test("arguments of a wrong kind are errors with their places, and the module works on", () => {
  const compiler = pawl.compiler(tokenizer), matcher = compiler.jsonSchema(true).matcher();
  const cyclic = {};
  cyclic.items = cyclic;
  const cases = [
    [() => compiler.jsonSchema(), "schema"],
    [() => compiler.jsonSchema(cyclic), "schema"],
    [() => compiler.jsonSchema({ const: "a\ud800" }), "schema"],
    [() => compiler.jsonSchema(Promise.resolve({ type: "string" })), "schema"],
    [() => compiler.jsonSchema(new ArrayBuffer(4)), "schema"],
    [() => compiler.jsonSchema({ properties: new Map([["a", {}]]) }), "schema"],
    [() => compiler.jsonSchema({ const: NaN }), "schema"],
    [() => compiler.jsonSchema(Infinity), "schema"],
    [() => compiler.jsonSchema({ type: String }), "schema"],
    [() => compiler.jsonSchema({ const: Symbol("x") }), "schema"],
    [() => compiler.jsonSchema(true, { maxString: 5, max_string: 6 }), "maxString"],
    [() => compiler.choice(["a", NaN]), "choices"],
    [() => compiler.jsonSchema(true, null), "options"],
    [() => compiler.jsonSchema(true, { maxString: NaN }), "maxString"],
    [() => compiler.jsonSchema(true, { whitespace: "\udc00" }), "whitespace"],
    [() => compiler.regex(7), "pattern"],
    [() => compiler.choice(cyclic), "choices"],
    [() => compiler.gbnf("\ud800"), "text"],
    [() => compiler.compile(Symbol("x"), "x"), "kind"],
    [() => compiler.structuralTag(undefined), "tag"],
    [() => compiler.deserialize("x"), "bytes"],
    [() => pawl.compiler(), "vocabulary"],
    [() => pawl.compiler(other.vocabulary({ tokens: ["a"] })), "vocabulary"],
    [() => pawl.compiler(tokenizer, { prepareSteps: 1.5 }), "prepareSteps"],
    [() => pawl.compiler(tokenizer, { memoryBudget: NaN }), "memoryBudget"],
    [() => pawl.vocabulary(), "tokens"],
    [() => pawl.vocabulary({ tokens: ["a", 5] }), "tokens[1]"],
    [() => pawl.vocabulary({ tokens: ["a", , "b"] }), "tokens[1]"],
    [() => pawl.vocabulary({ tokens: ["a"], special: [2 ** 32] }), "special[0]"],
    [() => pawl.tokenizer(cyclic), "json"],
    [() => pawl.tokenizer(tokenizerText, { endTokens: 0 }), "endTokens"],
    [() => pawl.tokenizer(tokenizerText, { endTokens: [{}] }), "endTokens[0]"],
    [() => pawl.tokenizer(tokenizerText, { paddedSize: "x" }), "paddedSize"],
    [() => pawl.tokenizer(tokenizerText, { endTokens: [2 ** 32 + 1] }), "endTokens[0]"],
    [() => pawl.tokenizer(Promise.resolve(tokenizerText)), "json"],
    [() => tokenizer.encode("a\ud800"), "text"],
    [() => tokenizer.encode(5), "text"],
    [() => tokenizer.decode(["x"]), "tokens[0]"],
    [() => tokenizer.decode([2 ** 32 + 65]), "tokens[0]"],
    [() => matcher.validateTokens([2 ** 32]), "tokens[0]"],
    [() => tokenizer.decode(5), "tokens"],
    [() => tokenizer.tokenBytes("x"), "token"],
    [() => matcher.accept(NaN), "token"],
    [() => matcher.accept(5n), "token"],
    [() => matcher.acceptText(null), "text"],
    [() => matcher.rollback(0.5), "steps"],
    [() => matcher.forcedText(-1), "limit"],
  ];
  for (const [body, place] of cases) {
    const error = errorOf(body);
    assert.equal(error.code, "bad argument", error.message);
    assert.equal(error.place, place, error.message);
  }
  assert.equal(matcher.steps, 0);
  assert.ok(matcher.acceptText("[1]"));
});

test("a module that cannot be loaded is an error with its address", async () => {
  const html = new TextEncoder().encode("<!doctype html>");
  const none = new URL("../none.wasm", import.meta.url), here = new URL("none.wasm", `file://${process.cwd()}/`);
  const cases = [
    [{ module: none }, "io", none.href, "pawl.wasm"],
    [{ module: "none.wasm" }, "io", here.href, "pawl.wasm"],
    [{ module: html }, "invalid", "module", "pawl.wasm was expected"],
    [{ module: new Uint8Array(0) }, "invalid", "module", "is empty; pawl.wasm was expected"],
    [{ module: new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]) }, "invalid", "module", "another library; pawl.wasm was expected"],
    [{ module: new Response("", { status: 404 }) }, "io", "module", "404"],
    [{ module: new URL(import.meta.url) }, "invalid", import.meta.url, "pawl.wasm was expected"],
    [{ module: "http://127.0.0.1:1/pawl.wasm" }, "io", "http://127.0.0.1:1/pawl.wasm", "fetch failed"],
    [{ module: "http://" }, "bad argument", "module", "is no address"],
    [{ module: 5 }, "bad argument", "module", null],
    [{ print: 5 }, "bad argument", "print", null],
    [{ maxMemory: NaN }, "bad argument", "maxMemory", null],
    [null, "bad argument", "options", null],
  ];
  const engine = new URL("../pawl-engine.wasm", import.meta.url);
  if (existsSync(engine)) cases.push([{ module: engine }, "invalid", engine.href, "is pawl-engine.wasm; pawl.wasm was expected"]);
  for (const [options, code, place, text] of cases) await rejected(loadPawl(options), code, place, text);
  await rejected(loadPawl({ module: Promise.reject(new TypeError("fetch failed")) }), "io", "module", "fetch failed");
});

async function rejected(promise, code, place, text) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof PawlError, String(error));
    assert.equal(error.code, code, error.message);
    assert.equal(error.place, place, error.message);
    if (text !== null) assert.ok(error.text.includes(text), error.text);
    return true;
  });
}

const npm = spawnSync("npm", ["--version"]).status === 0;
test("the package has its license", { skip: npm ? false : "no npm" }, () => {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const packed = spawnSync("npm", ["pack", "--dry-run", "--json", "--offline"], { cwd, encoding: "utf8" });
  assert.equal(packed.status, 0, packed.stderr);
  const names = JSON.parse(packed.stdout)[0].files.map((one) => one.path);
  for (const name of ["LICENSE", "package.json", "pawl.wasm", "src/index.js", "src/engine.d.ts"]) assert.ok(names.includes(name), name);
});

test("the script for masks says how it is called", () => {
  const script = fileURLToPath(new URL("../../scripts/wasm_masks.mjs", import.meta.url));
  const help = spawnSync(process.execPath, [script, "--help"], { encoding: "utf8" });
  assert.equal(help.status, 0, help.stderr);
  assert.match(help.stdout, /^usage: /);
  const wrong = spawnSync(process.execPath, [script, "--colour", "1"], { encoding: "utf8" });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /there is no option --colour/);
});

test("memory that runs out ends the call, and the next one works", async () => {
  const small = await loadPawl({ maxMemory: 24 << 20 });
  const words = small.tokenizer(tokenizerText, { endTokens: [0] });
  const compiler = small.compiler(words);
  const properties = {};
  for (let i = 0; i < 60000; ++i) properties[`property number ${i}`] = { type: "string", pattern: `^a{${i}}$` };
  const text = JSON.stringify({ type: "object", properties });
  const error = errorOf(() => compiler.jsonSchema(text, { maxSchemaBytes: 1 << 30 }));
  assert.equal(error.code, "limit", error.message);
  assert.equal(error.text, "memory ran out");
  for (let i = 0; i < 4; ++i) assert.equal(errorOf(() => compiler.jsonSchema(text, { maxSchemaBytes: 1 << 30 })).code, "limit");
  assert.equal(compiler.jsonSchema({ const: "x" }, { whitespace: "compact" }).matcher().forcedText(), '"x"');
  await assert.rejects(loadPawl({ maxMemory: 1000 }), { code: "bad argument", place: "maxMemory" });
});

test("a nested schema is a limit, not the end of the stack", () => {
  const compiler = pawl.compiler(tokenizer);
  const deep = '{"items":'.repeat(3000) + "true" + "}".repeat(3000);
  assert.equal(errorOf(() => compiler.jsonSchema(deep)).code, "limit");
  const nested = '{"items":'.repeat(200) + "true" + "}".repeat(200);
  compiler.jsonSchema(nested).matcher().mask();
  assert.equal(errorOf(() => compiler.regex("(".repeat(100000))).code === "internal", false);
  assert.ok(compiler.jsonSchema(true).matcher().acceptText("[".repeat(20000)));
});

test("what is not freed is collected, and what is freed is used again", () => {
  const compiler = pawl.compiler(tokenizer);
  const once = () => {
    const grammar = compiler.jsonSchema({ type: "array", items: { type: "string", maxLength: 20 } });
    const matcher = grammar.matcher();
    matcher.acceptText('["');
    matcher.mask();
    matcher.free();
    grammar.free();
  };
  for (let i = 0; i < 50; ++i) once();
  const before = pawl.memoryBytes;
  for (let i = 0; i < 400; ++i) once();
  assert.equal(pawl.memoryBytes, before);
});

test("works in a worker", async () => {
  const worker = new Worker(new URL("worker.mjs", import.meta.url));
  try {
    const answer = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.postMessage({ tokenizer: tokenizerText, pattern: "ab*" });
    });
    assert.deepEqual(answer, { forced: "a", complete: true });
  } finally {
    await worker.terminate();
  }
});
