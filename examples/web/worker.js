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
  return JSON.parse(json).added_tokens.filter((token) => token.special && names.includes(token.content)).map((token) => token.id);
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

onmessage = async ({ data }) => {
  try {
    if (data.url !== undefined) {
      const reply = await fetch(data.url);
      if (!reply.ok) throw new PawlError("io", `${reply.status} ${reply.statusText}`, data.url);
      await load(await reply.text(), "tiny-extract");
    } else if (data.tokenizer !== undefined) {
      await load(data.tokenizer, data.name);
    } else if (compiler !== undefined) {
      postMessage({ id: data.id, ...answer(data) });
    }
  } catch (error) {
    postMessage({ id: data.id, state: "error", message: error.message });
  }
};
