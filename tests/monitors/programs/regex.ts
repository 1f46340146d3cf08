const re = /(?<year>\d{4})-(?<month>\d\d)/giu;
const m = re.exec("2020-01");
if (m && m.groups) {
  const { year, month } = m.groups;
  console.log(year.length, month.length, m.index.toFixed(), m[0].length, m.input.length);
}
for (const hit of "a1b2".matchAll(/([a-z])(\d)/g)) {
  console.log(hit[1].toUpperCase(), hit.index?.toFixed(), hit.groups?.x);
}
console.log(
  "x".replace(/x/, (s, off: number) => s.repeat(2) + off.toFixed()),
  "a-b".replaceAll("-", "_").length,
  "a,b".split(/,/).map((s) => s.trim()).filter(Boolean).length,
  "q".match(/q/)?.[0].length,
  "q".match(/q/g)?.length ?? 0,
  "abc".search(/b/).toFixed(),
);
console.log(
  /[/\]]+/.test("]"),
  new RegExp("a", "g").source.length,
  re.lastIndex,
  re.flags.length,
  /a/.toString().length,
  RegExp.prototype.test.call(/a/, "a"),
);
const n = 6 / 2 / 1;
const s = "a" + n / 3;
console.log(s.length, n.toFixed());
const esc = (t: string) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
console.log(esc("a").length);
const words = (t: string): Record<string, number> =>
  (t.toLowerCase().match(/\b[a-z']+\b/g) || []).reduce<Record<string, number>>((acc, w) => {
    acc[w] = (acc[w] || 0) + 1;
    return acc;
  }, {});
console.log(Object.entries(words("a a")).sort(([, x], [, y]) => y - x)[0][0].length);
