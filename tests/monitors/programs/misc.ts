"use strict";
/// <reference lib="es2022" />
// @ts-check
const enumLike = { A: "a", B: "b" } as const;
type EnumLike = typeof enumLike[keyof typeof enumLike];
const ev: EnumLike = enumLike.A;
console.log(ev.length, Object.values(enumLike).map((v) => v.length));
const u: unique symbol = Symbol();
const os = { [u]: 1 };
console.log(os[u].toFixed());
const nested: number[][][] = [[[1]]];
console.log(
  nested[0][0][0].toFixed(),
  nested.flat(2).length,
  nested[0]!.map((r) => r.map((c) => c.toFixed())),
);
const opt: { a?: { b?: (() => { c: string[] }) | null } } = {};
console.log(opt.a?.b?.().c[0].length, opt?.["a"]?.b?.()?.c.at(0)?.trim());
const fns: Record<string, Function> = { x() {} };
fns.x.call(null);
fns["y"]?.apply(null, []).foo;
let x: any = 1;
x.a.b.c();
(x as string).length;
(<string> x).trim();
const un: unknown = x;
(un as { q: { r: number } }).q.r.toFixed();
const big = {
  a: 1,
  get b() {
    return this.a;
  },
  c() {
    return this.b + this.a;
  },
  d: () => 1,
  "e-f": 2,
  3: 4,
};
console.log(big.b.toFixed(), big.c().toFixed(), big.d(), big["e-f"].toFixed(), big[3].toFixed());
const { a, ...others } = big;
console.log(a.toFixed(), others.d().toFixed(), others["e-f"]);
const date = new Date(Date.now() - 864e5);
date.setDate(date.getDate() + 1);
console.log(
  date.toJSON().length,
  +date,
  date.getTimezoneOffset().toFixed(),
  new Date(2020, 0).toLocaleString("en-US", { month: "short" }).length,
);
const ws = new WeakSet<object>();
ws.add({});
const wr = new WeakRef({ v: 1 });
console.log(wr.deref()?.v.toFixed(), ws.has({}));
const iter = [1, 2][Symbol.iterator]();
console.log(iter.next().value?.toFixed(), [...iter].length);
const ent = Object.entries({ a: [1], b: ["x"] }).flatMap(([k, vs]) => vs.map((v) => k + v));
console.log(ent[0].length);
const gen = (function* () {
  const got: string = yield 1;
  return got.length;
})();
gen.next();
gen.next("a");
const it2 = {
  from: 1,
  to: 3,
  [Symbol.iterator]() {
    let c = this.from;
    const t = this.to;
    return { next: () => ({ done: c > t, value: c++ }) };
  },
};
console.log([...it2].map((n) => n.toFixed()), Math.max(...it2));
const tagged = ((s: TemplateStringsArray, ...v: number[]) => s[0].length + v[0])`a${1}b`;
console.log(tagged.toFixed());
const intl = new Intl.DateTimeFormat("en").formatToParts(new Date()).map((p) => p.type.length);
console.log(
  intl.length,
  new Intl.PluralRules("en").select(1).length,
  new Intl.Collator().compare("a", "b").toFixed(),
);
export {};
