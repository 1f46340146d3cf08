import { loadPawl, PawlError } from "../../js/src/index.js";

const kMostShown = 200;
let pawl, tokenizer, compiler;

async function load(json, name) {
  pawl ??= await loadPawl();
  const made = pawl.tokenizer(json, { endTokens: endTokens(json) });
  tokenizer?.free();
  compiler?.free();
  tokenizer = made;
  compiler = pawl.compiler(tokenizer);
  postMessage({ loaded: `Tokenizer: ${name}, ${tokenizer.size} tokens.` });
}

// A tokenizer.json does not say which of its special tokens end an output. These are the usual names.
function endTokens(json) {
  const names = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<end_of_turn>"];
  let added;
  try {
    added = JSON.parse(json).added_tokens;
  } catch {
    // what is wrong with the file, its reader says
  }
  if (!Array.isArray(added)) return [];
  return added.filter((token) => token?.special && names.includes(token.content)).map((token) => token.id);
}

function answer({ kind, constraint, text }) {
  let begin = performance.now();
  const grammar = compiler.compile(kind, constraint);
  const compileTime = performance.now() - begin;
  const matcher = grammar.matcher();
  try {
    const steps = [];
    let refused = false;
    for (const token of tokenizer.encode(text)) {
      refused ||= !matcher.accept(token);
      steps.push({ text: tokenizer.decode([token]), refused });
    }
    if (refused) return { state: "refused", steps };
    const row = new Uint32Array(tokenizer.maskWords);
    begin = performance.now();
    matcher.fillMask(row);
    const maskTime = performance.now() - begin;
    const end = new Set(tokenizer.endTokens);
    const next = [];
    let count = 0;
    for (let token = 0; token < tokenizer.size; ++token) {
      if (((row[token >> 5] >>> (token & 31)) & 1) === 0) continue;
      if (count++ < kMostShown || end.has(token)) next.push({ text: tokenizer.decode([token]), end: end.has(token) });
    }
    return { state: matcher.isAccepting ? "complete" : "fits, not complete", steps, next, count, size: tokenizer.size,
      forced: matcher.forcedText(), compileTime, maskTime };
  } finally {
    matcher.free();
    grammar.free();
  }
}

// Loading; an error is of no question, and the tokenizer that was there stays.
async function loadFrom({ url, tokenizer: text, name }) {
  try {
    if (url === undefined) {
      await load(text, name);
      return;
    }
    let reply;
    try {
      reply = await fetch(url);
    } catch (cause) {
      throw new PawlError("io", cause.message, url);
    }
    if (!reply.ok) throw new PawlError("io", `${reply.status} ${reply.statusText}`.trimEnd(), url);
    await load(await reply.text(), "tiny-extract");
  } catch (error) {
    const trouble = url === undefined && pawl !== undefined ? `${name}: ${error.message}` : error.message;
    postMessage({ trouble, module: pawl !== undefined, tokenizer: tokenizer !== undefined });
  }
}

onmessage = async ({ data }) => {
  if (data.url !== undefined || data.tokenizer !== undefined) {
    await loadFrom(data);
  } else if (compiler !== undefined) {
    try {
      postMessage({ id: data.id, ...answer(data) });
    } catch (error) {
      postMessage({ id: data.id, state: "error", message: error.message });
    }
  }
};
