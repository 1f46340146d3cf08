function vowelCount(s: string): Record<"a" | "e" | "i" | "o" | "u", number> {
  const c = { a: 0, e: 0, i: 0, o: 0, u: 0 };
  for (const ch of s) if (ch in c) c[ch as keyof typeof c]++;
  return c;
}
console.log(vowelCount("ae").a.toFixed());
const title = (s: string) => s.replace(/\b\w/g, (c) => c.toUpperCase());
const camel = (s: string) => s.replace(/[-_](\w)/g, (_, c: string) => c.toUpperCase());
const snake = (s: string): string => s.replace(/[A-Z]/g, (m) => "_" + m.toLowerCase());
console.log(title("a b").length, camel("a-b").length, snake("aB").trim());
const words = "the quick".split(" ");
const longest = words.reduce((a, b) => (b.length > a.length ? b : a), "");
console.log(
  longest.toUpperCase().charAt(0),
  words.map((w) => w[0].toUpperCase() + w.slice(1)).join(" ").length,
  words.find((w) => w.startsWith("q"))?.length,
  words.findIndex((w) => w.endsWith("k")).toFixed(),
  words.indexOf("the"),
  [...words].sort((a, b) => a.length - b.length || a.localeCompare(b))[0].length,
);
const table = [["a", 1], ["b", 2]] as [string, number][];
console.log(
  table.map(([k, v]) => `${k.padEnd(5)}|${v.toFixed(2).padStart(8)}`).join("\n").length,
  Object.fromEntries(table).a.toFixed(),
);
const bin = (n: number): string => (n > 1 ? bin(Math.floor(n / 2)) : "") + (n % 2);
console.log(
  bin(5).length,
  parseInt(bin(5), 2).toFixed(),
  "%".charCodeAt(0),
  "\u{1F600}".length,
  "\x41\n\t\\".length,
  "it's".length,
  "a\
b".length,
);
const pal = (s: string): boolean => {
  const t = s.toLowerCase().replace(/[^a-z0-9]/g, "");
  return t === [...t].reverse().join("");
};
console.log(pal("Aa"));
const count = new Map<string, number>();
for (const w of words) count.set(w, (count.get(w) || 0) + 1);
const top = [...count.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
console.log(top[0].length, top[1].toFixed());
const fmt = (n: number, opts: { currency?: string; digits?: number } = {}): string =>
  `${opts.currency ?? "$"}${n.toFixed(opts.digits ?? 2).replace(/\B(?=(\d{3})+(?!\d))/g, ",")}`;
console.log(fmt(1234.5).length);
const chunks = (s: string, n: number): string[] => s.match(new RegExp(`.{1,${n}}`, "gs")) ?? [];
console.log(chunks("abc", 2).length);
const parse = (q: string) =>
  Object.fromEntries(
    q.split("&").map((kv) => kv.split("=").map(decodeURIComponent) as [string, string]),
  );
console.log(parse("a=b").a.length);
const z = "a,b;c".split(/[,;]/).filter(Boolean).map((s, i, arr) => s + i + arr.length);
console.log(
  z[0].length,
  z.toString().length,
  "abc".split("").every((c) => c >= "a"),
  "x".codePointAt(0)!.toString(2),
  [..."ab"].map((c) => c.charCodeAt(0)).reduce((h, c) => (h << 5) - h + c, 0).toFixed(),
);
const tpl = `a${`b${`c${1 + 1}`}`}` +
  `${words.map((w) => `<li>${w.length > 3 ? `<b>${w}</b>` : w}</li>`).join("")}`;
console.log(tpl.length);
const lines = `
  one
  two`.split("\n").map((l) => l.trim()).filter((l) => l.length);
console.log(lines[0].toUpperCase());
