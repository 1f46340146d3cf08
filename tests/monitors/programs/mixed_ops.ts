const isEven = (n: number | bigint): boolean => typeof n === "bigint" ? n % 2n === 0n : n % 2 === 0;
console.log(isEven(2n), 5n > 3, 2n ** 64n, BigInt("9").toLocaleString(), Number(5n).toFixed());
let a: number | undefined = undefined, b: number | null = 3;
a ??= b ?? 0;
a += 1;
a++;
console.log(
  a.toFixed(),
  (b as number).toFixed(),
  b!.toFixed(),
  +("3") + +true,
  "3" + 3,
  `${a}${b}`.length,
  a === b,
  a !== b && a > 1 || b < 2,
);
const digits = [...String(12345)].map(Number).reverse();
const total = digits.reduce((s, d, i) => i % 2 ? s + (d * 2 > 9 ? d * 2 - 9 : d * 2) : s + d, 0);
console.log(total.toFixed(), digits.join("") + total);
const hex = (n: number) => (n >>> 0).toString(16).padStart(8, "0").toUpperCase();
console.log(
  hex(-1).length,
  (0.1 + 0.2).toFixed(2),
  (1e21).toString().length,
  (25).toString(36),
  5..toString(),
  (5).toFixed(),
  (-5) ** 2,
  Math.max.apply(null, [1, 2]),
  Math.min(...new Set([3, 1])),
);
const cmp = <T>(key: (x: T) => string | number) => (x: T, y: T): -1 | 0 | 1 =>
  key(x) < key(y) ? -1 : key(x) > key(y) ? 1 : 0;
console.log(
  [{ n: 2 }, { n: 1 }].sort(cmp((o) => o.n))[0].n.toFixed(),
  ["b", "a"].sort(cmp((s) => s)).at(0)!.length,
);
const pipe = (...fs: ((x: number) => number)[]) => (x: number) => fs.reduce((acc, f) => f(acc), x);
console.log(pipe((x) => x + 1, (x) => x * 2)(3).toFixed());
let i = 0, j = 10;
for (; i < j; i++, j -= 2);
while (i-- > 0) if (i & 1) continue;
console.log(
  i,
  j,
  void 0,
  typeof null,
  delete ({} as { x?: 1 }).x,
  "a" in { a: 1 },
  [] instanceof Array,
  new Date() > new Date(0),
  !a === false,
  ~~3.7,
  7 % -3,
  "abc" < "abd",
  0,
);
switch (typeof a) {
  case "number":
    console.log(a.toFixed());
    break;
  case "string":
  case "object":
  default:
    console.log(a);
}
const t = [1, 2, 3] as const;
const [p0, ...pr] = t;
console.log(
  p0.toFixed(),
  pr.length.toFixed(),
  t.includes(2),
  t.map((x) => x.toString()).concat("z").length,
);
var g = globalThis as any;
g.foo = 1;
console.log(g.foo.bar);
const o = { ["k" + 1]: 1, k2: { deep: [{ x: 1 }] } };
console.log(o.k1, o.k2.deep[0].x.toFixed(), o["k2"].deep.length);
const { k2: { deep: [{ x: dx }] } } = o;
console.log(dx.toFixed());
