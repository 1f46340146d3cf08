#!/usr/bin/env node
// Compares the masks of js/pawl.wasm with those of the native library, bit for bit, and their times.
//
//   scripts/build_wasm.sh
//   ninja -C build wasm_masks
//   node scripts/wasm_masks.mjs --tokenizer FOLDER --end 128001 --data MASKBENCH --schemas 300 --pairs 9 --json FILE
//
// The schemas are spread evenly over the files of MaskBench; --first moves them. Of each the valid instances are written
// token by token, with a mask before every token. A run is a process of its own, so nothing is known before; native and
// WebAssembly take turns. Exit code 1: a mask differs, or the median of the ratios is above 6.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { loadPawl } from "../js/src/index.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const kBar = 6;
const settings = { order: "any", whitespace: "any" };

const kUsage = `usage: wasm_masks.mjs --tokenizer FOLDER --end TOKEN --data MASKBENCH [options]
  --tokenizer FOLDER  the folder of a tokenizer.json
  --end TOKEN         the id of the token that ends an output
  --data MASKBENCH    the folder of MaskBench's schemas
  --schemas N         schemas to compare, spread over the files (300)
  --first N           moves them (0)
  --pairs N           pairs of processes (9)
  --build FOLDER      where bin/wasm_masks is (build)
  --json FILE         writes the figures there
Exit code 1: a mask differs, or the median of the ratios is above ${kBar}. 2: wrong arguments.`;
// With --run the script is the half in WebAssembly, which it starts itself.
const kNames = ["tokenizer", "end", "data", "schemas", "first", "pairs", "build", "json", "run", "work", "hashes"];
const kNumbers = { end: 0, schemas: 1, first: 0, pairs: 1 };

function wrong(text) {
  console.error(`wasm_masks.mjs: ${text}\n${kUsage}`);
  process.exit(2);
}

function options(list) {
  if (list.includes("--help") || list.includes("-h")) {
    console.log(kUsage);
    process.exit(0);
  }
  const found = { build: join(root, "build"), schemas: "300", first: "0", pairs: "9" };
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i].slice(2);
    if (!list[i].startsWith("--") || !kNames.includes(name)) wrong(`there is no option ${list[i]}`);
    if (list[i + 1] === undefined) wrong(`${list[i]} needs a value`);
    found[name] = list[i + 1];
  }
  for (const name of found.run === undefined ? ["tokenizer", "end", "data"] : ["tokenizer", "end", "work", "hashes"]) {
    if (found[name] === undefined) wrong(`--${name} is missing`);
  }
  for (const [name, least] of Object.entries(kNumbers)) {
    if (!/^[0-9]{1,9}$/.test(found[name]) || Number(found[name]) < least) wrong(`--${name} must be a whole number from ${least} on`);
  }
  const needed = { tokenizer: join(found.tokenizer, "tokenizer.json"), ...(found.data === undefined ? {} : { data: found.data }) };
  for (const [name, path] of Object.entries(needed)) if (!existsSync(path)) wrong(`--${name}: there is no ${path}`);
  return found;
}

async function tokenizerOf(found) {
  const pawl = await loadPawl();
  const json = readFileSync(join(found.tokenizer, "tokenizer.json"));
  return [pawl, pawl.tokenizer(json, { endTokens: [Number(found.end)] })];
}

// The work file: see bench/wasm_masks.c.
async function writeWork(found, path) {
  const [, tokenizer] = await tokenizerOf(found);
  const names = readdirSync(found.data).filter((name) => name.endsWith(".json")).sort();
  const count = Math.min(Number(found.schemas), names.length);
  const words = [count];
  const parts = [];
  const used = [];
  for (let i = 0; i < count; ++i) {
    const name = names[(Math.floor((i * names.length) / count) + Number(found.first)) % names.length];
    used.push(name);
    const file = JSON.parse(readFileSync(join(found.data, name), "utf8"));
    const text = Buffer.from(JSON.stringify(file.schema));
    const padded = Buffer.alloc((text.length + 3) & ~3);
    text.copy(padded);
    const valid = file.tests.filter((test) => test.valid);
    words.push(text.length);
    parts.push(Buffer.from(Uint32Array.from(words).buffer), padded);
    words.length = 0;
    words.push(valid.length);
    for (const test of valid) {
      const tokens = tokenizer.encode(JSON.stringify(test.data));
      words.push(tokens.length);
      for (const token of tokens) words.push(token);
    }
  }
  parts.push(Buffer.from(Uint32Array.from(words).buffer));
  writeFileSync(path, Buffer.concat(parts));
  return used;
}

function hashOf(row) {
  let a = 2166136261 | 0, b = 40503;
  for (let i = 0; i < row.length; ++i) {
    a = Math.imul(a ^ row[i], 16777619);
    a ^= a >>> 15;
    b = Math.imul(b ^ row[i], 2246822519 | 0);
    b ^= b >>> 13;
  }
  return [a >>> 0, b >>> 0];
}

// The half in WebAssembly; prints what bench/wasm_masks.c prints.
async function run(found) {
  const [pawl, tokenizer] = await tokenizerOf(found);
  const compiler = pawl.compiler(tokenizer);
  const buffer = readFileSync(found.work);
  const data = new Uint32Array(buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length));
  const row = new Uint32Array(tokenizer.maskWords);
  const hashes = [];
  let at = 1, masks = 0, filling = 0, compiling = 0;
  for (let left = data[0]; left > 0; --left) {
    const length = data[at++];
    const text = new Uint8Array(data.buffer, 4 * at, length);
    at += (length + 3) >> 2;
    let grammar;
    let begin = performance.now();
    try {
      grammar = compiler.compile("json_schema", text, settings);
    } catch {
      hashes.push(0, 0);
    }
    compiling += performance.now() - begin;
    for (let outputs = data[at++]; outputs > 0; --outputs) {
      const tokens = data[at++];
      if (grammar !== undefined) {
        const matcher = grammar.matcher();
        for (let i = 0; i <= tokens; ++i) {
          begin = performance.now();
          matcher.fillMask(row);
          filling += performance.now() - begin;
          ++masks;
          hashes.push(...hashOf(row));
          if (i === tokens || !matcher.accept(data[at + i])) break;
        }
        matcher.free();
      }
      at += tokens;
    }
    grammar?.free();
  }
  writeFileSync(found.hashes, Buffer.from(Uint32Array.from(hashes).buffer));
  console.log(`${masks} ${(filling * 1e6).toFixed(0)} ${(compiling * 1e6).toFixed(0)} ${pawl.memoryBytes}`);
}

function asked(command, list) {
  const done = spawnSync(command, list, { encoding: "utf8" });
  if (done.status !== 0) throw new Error(`${command} ended with ${done.status}: ${done.stderr}`);
  return done.stdout.trim().split(" ").map(Number);
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function compare(found) {
  const folder = mkdtempSync(join(tmpdir(), "wasm_masks-"));
  try {
    const work = join(folder, "work"), ours = join(folder, "wasm"), theirs = join(folder, "native");
    const used = await writeWork(found, work);
    const script = fileURLToPath(import.meta.url);
    const pairs = [];
    let different = 0, compared = 0, memory = 0;
    for (let i = 0; i < Number(found.pairs); ++i) {
      const native = asked(join(found.build, "bin/wasm_masks"),
        [join(found.tokenizer, "tokenizer.json"), found.end, work, theirs]);
      const wasm = asked(process.execPath, [script, "--run", "1", "--tokenizer", found.tokenizer, "--end", found.end,
        "--work", work, "--hashes", ours]);
      const a = readFileSync(theirs), b = readFileSync(ours);
      compared = native[0];
      memory = wasm[3];
      if (a.length !== b.length) different = Math.max(different, 1);
      for (let k = 0; k + 8 <= Math.min(a.length, b.length); k += 8) {
        if (a.compare(b, k, k + 8, k, k + 8) !== 0) ++different;
      }
      pairs.push({ native_us: native[1] / native[0] / 1e3, wasm_us: wasm[1] / wasm[0] / 1e3,
        ratio: wasm[1] / wasm[0] / (native[1] / native[0]), native_compile_ms: native[2] / 1e6, wasm_compile_ms: wasm[2] / 1e6 });
      console.log(`pair ${i + 1}: native ${pairs[i].native_us.toFixed(2)} us, wasm ${pairs[i].wasm_us.toFixed(2)} us, ` +
        `ratio ${pairs[i].ratio.toFixed(2)}; compiling ${pairs[i].native_compile_ms.toFixed(0)} ms, ` +
        `${pairs[i].wasm_compile_ms.toFixed(0)} ms`);
    }
    const ratio = median(pairs.map((pair) => pair.ratio));
    console.log(`${used.length} schemas, ${compared} masks: ${different === 0 ? "no difference" : `${different} differ`}; ` +
      `median ratio ${ratio.toFixed(2)}`);
    const module = readFileSync(join(root, "js/pawl.wasm"));
    const gzip = gzipSync(module, { level: 9 }).length;
    if (found.json !== undefined) {
      writeFileSync(found.json, JSON.stringify({ schemas: used.length, masks: compared, different, median_ratio: ratio,
        module_bytes: module.length, module_gzip_bytes: gzip, memory_bytes: memory, node: process.version,
        processor: cpus()[0].model, pairs, first: used[0], last: used[used.length - 1] }, null, 1) + "\n");
    }
    return different === 0 && ratio <= kBar;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const found = options(process.argv.slice(2));
if (found.run !== undefined) await run(found);
else process.exitCode = (await compare(found)) ? 0 : 1;
