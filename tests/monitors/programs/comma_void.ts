function v0() {
  return 1;
}
let a = (v0(), "x");
const v = void 0;
console.log(a.length, v, typeof a === "string", !(a in { x: 1 }), a.length > 3 === false);
let n = 5;
n **= 2;
n >>>= 1;
n <<= 1;
n ^= 3;
n %= 4;
console.log(
  n++ + ++n,
  n-- - --n,
  -n,
  +n,
  ~n,
  n > 1 ? n < 3 ? "mid".length : n.toFixed() : [n].length,
);
const big = 1_000_000n;
const h = 0xFF_FF, o = 0o17, b = 0b1010;
console.log(big.toString(), h.toFixed(), o, b.toString(2));
const f = function named(this: void, ...xs: number[]): number {
  return xs.length > 0 ? named(...xs.slice(1)) + 1 : 0;
};
console.log(f(1, 2).toFixed());
const g = async <T>(x: T): Promise<T> => x;
g(1).then((x) => x.toFixed());
const h2 = (x?: number, y = x ?? 3, ...z: string[]) => [x, y, z] as const;
console.log(h2()[1].toFixed(), h2(1)[2].length);
const nested = { a: [{ b: () => ({ c: "x" }) }] };
console.log(nested.a[0].b().c.length, nested["a"][0]["b"]()["c"].toUpperCase());
const ternary = n > 0 ? { k: 1 } : { k: 2 };
console.log(ternary.k.toFixed());
const either = n > 0 ? "s" : 3;
console.log(
  either.toString().length,
  typeof either === "string" ? either.length : either.toFixed(),
);
const und = n > 0 ? [1] : undefined;
console.log(und?.length, und && und.length, (und || []).length, (und ?? [0])[0].toFixed());
const arrow = (x: number) => (y: number) => x + y;
console.log(arrow(1)(2).toFixed());
const objArrow = () => ({ x: 1 });
console.log(objArrow().x);
debugger;
export {};
