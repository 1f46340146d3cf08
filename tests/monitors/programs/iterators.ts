class Range implements Iterable<number> {
  constructor(
    private readonly from: number,
    private readonly to: number,
    public step: number = 1,
  ) {}
  [Symbol.iterator](): Iterator<number> {
    let c = this.from;
    const { to, step } = this;
    return {
      next: () =>
        c <= to ? { value: (c += step) - step, done: false } : { value: undefined, done: true },
    };
  }
  get [Symbol.toStringTag]() {
    return "Range";
  }
  [Symbol.toPrimitive](hint: string): string | number {
    return hint === "number" ? this.to : `${this.from}..${this.to}`;
  }
}
function* fib(): Generator<bigint, void, boolean | undefined> {
  let [a, b] = [0n, 1n];
  while (true) {
    const stop = yield a;
    if (stop) return;
    [a, b] = [b, a + b];
  }
}
const gen = fib();
console.log(gen.next().value?.toString(), gen.next(true).done);
const r = new Range(1, 3);
console.log(
  [...r].length,
  Math.max(...r),
  Array.from(r, (x) => x * 2).map((n) => n.toFixed()),
  r.step,
  `${r}`,
  +r,
);
const ent = new Map(Object.entries({ a: 1 }));
for (const [k, v] of ent.entries()) console.log(k.length, v.toFixed());
const w = new WeakMap<object, string>();
w.set(r, "x");
console.log(w.get(r)?.length, w.has(r));
function* walk<T>(t: { v: T; kids?: { v: T }[] }): Iterable<T> {
  yield t.v;
  for (const k of t.kids ?? []) yield* walk(k);
}
for (const x of walk({ v: "s", kids: [{ v: "t" }] })) console.log(x.length);
const [h, , third = 3, ...rest] = [1, 2, undefined, 4, 5];
console.log(h.toFixed(), third.toFixed(), rest.length);
const set = new Set([..."hello"].filter((c, i, all) => all.indexOf(c) === i));
console.log(set.size, [...set.values()].join("").length, set.has("h"));
