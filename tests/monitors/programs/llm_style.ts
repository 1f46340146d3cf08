/**
 * Given a string, count frequency & return the top-k words.
 * >>> topK("a b a", 1)
 * ["a"]
 */
function topK(text: string, k: number): string[] {
  const freq: { [word: string]: number } = {};
  for (const raw of text.split(" ")) {
    const w = raw.toLowerCase().replace(/[^\w]/g, "");
    if (!w) continue;
    if (w in freq) freq[w]++;
    else freq[w] = 1;
  }
  return Object.keys(freq).sort((a, b) => freq[b] - freq[a] || a.localeCompare(b)).slice(0, k);
}
function isPrime(n: number): boolean {
  if (n < 2) return false;
  for (let i = 2, s = Math.sqrt(n); i <= s; i++) if (n % i === 0) return false;
  return n > 1;
}
const range = (start: number, end?: number, step = 1): number[] => {
  if (end === undefined) [start, end] = [0, start];
  const out: number[] = [];
  for (let i = start; i < end; i += step) out.push(i);
  return out;
};
function lcs(a: string, b: string): string {
  const dp: string[][] = Array(a.length + 1).fill(null).map(() => Array(b.length + 1).fill(""));
  for (let i = 1; i <= a.length; ++i) {
    for (let j = 1; j <= b.length; ++j) {
      dp[i][j] = a[i - 1] === b[j - 1]
        ? dp[i - 1][j - 1] + a[i - 1]
        : dp[i - 1][j].length > dp[i][j - 1].length
        ? dp[i - 1][j]
        : dp[i][j - 1];
    }
  }
  return dp[a.length][b.length];
}
function parse(s: string): { ok: boolean; tokens: Array<string | number> } {
  const tokens: Array<string | number> = [];
  let i = 0;
  while (i < s.length) {
    const c = s.charAt(i);
    if (c >= "0" && c <= "9") {
      let n = 0;
      while (i < s.length && !isNaN(+s[i])) n = n * 10 + (s.charCodeAt(i++) - "0".charCodeAt(0));
      tokens.push(n);
    } else {
      tokens.push(c);
      i++;
    }
  }
  return { ok: tokens.length > 0, tokens };
}
const { ok, tokens } = parse("1+2");
console.log(
  ok,
  tokens.filter((t): t is number => typeof t === "number").reduce((a, b) => a + b, 0).toFixed(),
  topK("a", 1)[0]?.length,
  isPrime(3),
  range(3).length,
  lcs("a", "b").length,
);
const result = [1, 2, 3].map((n) => isPrime(n) ? n.toString() : `${n}!`).join(", ");
console.log(result.length);
const matrix = [[1, 2], [3, 4]];
const tr = matrix[0].map((_, c) => matrix.map((r) => r[c]));
console.log(tr[0].length, tr.flat().length);
const roman: [string, number][] = [["M", 1000], ["CM", 900]];
let res = "";
let num = 1900;
for (const [sym, val] of roman) {
  while (num >= val) {
    res += sym;
    num -= val;
  }
}
console.log(res.split("").reverse().join("").length);
const brackets: Record<string, string> = { ")": "(", "]": "[" };
const stack: string[] = [];
for (let ch of "(])") {
  if (Object.values(brackets).includes(ch)) stack.push(ch);
  else if (stack.pop() !== brackets[ch]) console.log(stack.length);
}
