const table = { add: (a: number, b: number) => a + b, neg: (a: number) => -a, hi: () => "hi" };
console.log(table.add(1, 2).toFixed(), table["neg"](1).toFixed(), table.hi().length);
const ops: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a.valueOf() - b,
};
console.log(ops["+"](1, 2).toFixed(), ops.whatever?.(1, 2));
const acc = [1, 2].reduce((m, x) => m.set(x, x.toString()), new Map<number, string>());
console.log(acc.get(1)?.length);
const acc2 = ["a"].reduce((o, s) => ({ ...o, [s]: s.length }), {} as { [k: string]: number });
console.log(acc2.a.toFixed());
const acc3 = [[1, 2]].reduce<number[]>((a, x) => [...a, ...x], []);
console.log(acc3.length);
const acc4 = ["x"].reduce((a: string[], s) => {
  a.push(s);
  return a;
}, []);
console.log(acc4[0].length);
const idx = Object.entries({ a: 1 }).reduce((best, cur) => (cur[1] > best[1] ? cur : best));
console.log(idx[0].length);
const st = [] as Array<{ n: number; p: number[] }>;
st.push({ n: 1, p: [] });
const top = st.pop()!;
console.log(top.p.length, top.n.toFixed());
const qq: [number, number][] = [[0, 1]];
while (qq.length) {
  const [r, c] = qq.shift()!;
  console.log(r.toFixed(), c);
}
let ev = [];
ev.push(1);
ev.push("a");
console.log(ev[0].toString().length, ev.length);
let late;
late = 5;
console.log(late.toFixed());
late = "x";
console.log(late.length);
const em: never[] = [];
console.log(em.length);
const fnArr = [(x: number) => x + 1, (x: number) => x * 2];
console.log(fnArr.reduce((v, f) => f(v), 1).toFixed());
const spread = { ...{ a: 1, b: "x" }, b: 2, ...(Math.random() > 0.5 ? { c: 1 } : {}) };
console.log(spread.a.toFixed(), spread.b.toFixed(), spread.c?.toFixed());
const cp = [...[1], ...["a"]];
console.log(cp.map((x) => typeof x === "string" ? x.length : x.toFixed()).length);
const part = Object.assign({}, { a: 1 }, { b: "x" });
console.log(part.a.toFixed(), part.b.length);
const un: [string, number?] = ["a"];
console.log(un[1]?.toFixed(), un.length);
const rt = (() => {
  if (Math.random() > .5) return { a: 1, b: 2 };
  return { a: 2 };
})();
console.log(rt.a.toFixed(), rt.b?.toFixed());
const sorted = [{ n: "b", v: 1 }].sort((p, q) => p.n.localeCompare(q.n) || p.v - q.v).map((
  { n, ...o },
) => o.v);
console.log(sorted[0].toFixed());
const gm = Array.from(new Map<string, number[]>()).sort((a, b) => b[1].length - a[1].length)[0]?.[0]
  .length;
console.log(gm);
const letters = Array.from("abc").map((ch, i) => [ch, i] as [string, number]);
console.log(new Map(letters).get("a")?.toFixed(), Object.fromEntries(letters)["a"].toFixed());
const nested = Array.from({ length: 2 }, () => Array<number>(3).fill(0));
nested[0][1]++;
console.log(nested.map((r) => r.join("")).join("\n").length, nested[0].length);
const t2 = new Array(3).fill(null).map(() => new Array(2).fill(false));
t2[0][1] = true;
console.log(t2[0].some(Boolean));
const compareFn = (a: string, b: string): number => a < b ? -1 : +(a > b);
["a"].sort(compareFn)[0].length;
function defaults(a = 1, b = "x", c = [1], d = { e: 2 }) {
  return a.toFixed() + b.length + c.length + d.e.toFixed();
}
defaults().length;
const cb: (err: Error | null, data?: string) => void = (err, data) => {
  console.log(err?.message.length, data?.length);
};
cb(null);
type Fn = (a: { n: number }) => void;
const fn: Fn = ({ n }) => n.toFixed();
fn({ n: 1 });
const handlers: { [k: string]: (s: string) => string[] } = {
  split: (s) => s.split(""),
  async: (s) => [s.trim()],
};
for (const name in handlers) console.log(handlers[name]("a").length, name.length);
const p = new Promise<{ id: number }>((resolve, reject) => {
  resolve({ id: 1 });
  reject(new Error());
});
p.then(({ id }) => id.toFixed()).then((s) => s.length, () => 0).then((n) => n.toFixed());
