#!/usr/bin/env node
// Compares patterns with those of a JavaScript engine: writes files in MaskBench's form, each a
// schema {"type": "string", "pattern": P} with a random P and strings judged by RegExp(P, "u"), for
//
//   node scripts/check_patterns.js OUT [COUNT] [SEED]
//   build/pawl maskbench --tokenizer tokenizer.json --data OUT --list-failures
//
// to judge. Back references are not among them. No string holds a character above U+FFFF: V8 also
// tries an empty match in the middle of a surrogate pair, which ECMA-262 (AdvanceStringIndex) does not.
"use strict";
const fs = require("fs");

const [out, count = "2000", seed = "1"] = process.argv.slice(2);
if (!out || !(Number(count) > 0)) {
  console.error("usage: node scripts/check_patterns.js OUT [COUNT] [SEED]");
  process.exit(2);
}

// xorshift, so that a seed names the same patterns everywhere.
let state = (Number(seed) * 2654435761 + 1) >>> 0 || 1;
function below(n) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  state >>>= 0;
  return state % n;
}
const choose = (list) => list[below(list.length)];

const characters = ["a", "b", "c", "A", "1", "_", " ", "é", "-", "\\.", "\\n", "\\u0061", "\\x62", '"', "/"];
const classes = ["\\d", "\\w", "\\s", "\\D", "\\W", ".", "\\p{L}", "\\P{Lu}", "[abc]", "[^a]", "[a-c1]",
  "[\\w-]", "[^\\s]", "[]", "[^]", "[é-ü]", "[\\]a]", "[\\b]"];
const anchors = ["^", "$", "\\b", "\\B"];
const counts = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "*?", "+?"];
const pieces = ["a", "b", "c", "A", "1", "_", " ", "é", "-", ".", "\n", "\t", '"', "/", "ab", "bc", "a1"];

function atom(depth) {
  const kind = below(20);
  if (kind < 7) return choose(characters);
  if (kind < 12) return choose(classes);
  if (kind < 14) return choose(anchors);
  if (depth >= 3) return "a";
  if (kind < 17) return "(" + choose(["", "?:", "?<n" + below(1000) + ">"]) + alternatives(depth + 1) + ")";
  return "(?" + choose(["=", "!", "<=", "<!"]) + alternatives(depth + 1) + ")";
}

function piece(depth) {
  const one = atom(depth);
  const assertion = anchors.includes(one) || /^\(\?(=|!|<=|<!)/.test(one);
  return !assertion && below(3) === 0 ? one + choose(counts) : one;
}

function sequence(depth) {
  let text = "";
  for (let left = below(4) + (depth === 0 ? 1 : 0); left > 0; --left) text += piece(depth);
  return text;
}

function alternatives(depth) {
  let text = sequence(depth);
  while (below(4) === 0) text += "|" + sequence(depth);
  return text;
}

fs.mkdirSync(out, { recursive: true });
let pairs = 0;
for (let i = 0; i < Number(count); ++i) {
  const pattern = alternatives(0);
  let engine;
  try {
    engine = new RegExp(pattern, "u");
  } catch {
    continue; // two groups of the same name
  }
  const strings = new Set();
  for (let k = 0; k < 30; ++k) {
    let text = "";
    for (let left = below(6); left > 0; --left) text += choose(pieces);
    strings.add(text);
  }
  const tests = [...strings].map((data) => ({ description: "", valid: engine.test(data), data }));
  pairs += tests.length;
  const file = { description: pattern, meta: {}, schema: { type: "string", pattern }, tests };
  fs.writeFileSync(`${out}/pattern_${i}.json`, JSON.stringify(file));
}
console.log(`${pairs} pairs of a pattern and a string in ${out}`);
