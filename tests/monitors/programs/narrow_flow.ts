function f(x: string | number | undefined, y?: { z?: string[] }): number {
  if (x === undefined || x === 0) return 0;
  if (typeof x === "number") x = x.toFixed();
  x.length;
  x = x.trim();
  let r: string | null = null;
  if (Math.random() > .5) r = "a";
  if (r !== null) r.length;
  if (!y) return 1;
  if (!y.z?.length) return 2;
  return y.z.length + y.z[0].length;
}
function g(v: unknown): string {
  if (typeof v === "string") return v.toUpperCase();
  if (typeof v === "object" && v !== null && "id" in v && typeof v.id === "number") {
    return v.id.toFixed();
  }
  if (v instanceof Date) return v.toISOString();
  if (Array.isArray(v)) return v.length.toString() + v[0].foo;
  if (typeof v === "function") return v.name;
  if (typeof v === "bigint" || typeof v === "symbol") return v.toString();
  return String(v);
}
let loop: string | number = 1;
while (typeof loop === "number") loop = loop > 3 ? "done" : loop + 1;
console.log(loop.length);
const arr: (string | null)[] = ["a", null];
const ok = arr.filter((x): x is string => x !== null).map((x) => x.length);
console.log(ok.length, f("a"), g(1));
for (const x of arr) {
  if (x == null) continue;
  console.log(x.length);
}
const maybe = arr.find((x) => x);
if (maybe) maybe.length;
const em = arr.length ? arr[0]! : "";
em.length;
function h(s: { t: "a"; a: number } | { t: "b"; b: string } | null) {
  if (s?.t === "a") return s.a.toFixed();
  if (s?.t === "b") return s.b.length;
  return s;
}
function k(a: string | string[]) {
  const l = typeof a === "string" ? [a] : a;
  l.forEach((q) => q.length);
  if (a instanceof Array) a.push("");
  else a.trim();
  return (Array.isArray(a) ? a : [a]).map((z) => z.length);
}
console.log(h(null), k("a"));
class A {
  a = 1;
  kind = "A" as const;
}
class B {
  b = "x";
  kind = "B" as const;
}
function ab(o: A | B | undefined) {
  if (!o) return;
  if (o.kind === "A") o.a.toFixed();
  else o.b.length;
  const { kind } = o;
  if (kind === "B") console.log(o.b.length);
  switch (o.constructor) {
    case A:
      break;
  }
  o instanceof A ? o.a.toFixed() : o.b.trim();
  o instanceof A && o.a.toFixed();
  o instanceof B || o.a.toFixed();
  if (!(o instanceof A)) {
    o.b.length;
    return;
  }
  return o.a;
}
console.log(ab(new A())?.toFixed());
function nn<T>(x: T | null | undefined): asserts x is T {
  if (x == null) throw 1;
}
function un(q: string | null) {
  nn(q);
  return q.length;
}
const isStr = (x: unknown): x is string => typeof x === "string";
const uu: unknown = "a";
if (isStr(uu) && uu.length) uu.trim();
try {
  un(null);
} catch (err: any) {
  err.foo.bar();
}
function never(): never {
  throw new Error();
}
const cc = Math.random() > .5 ? "x" : never();
cc.length;
do {
  var q2 = Math.random() < 1 ? "x" : null;
} while (!q2);
q2.length;
