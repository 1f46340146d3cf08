console.log(
  Number.MAX_SAFE_INTEGER.toLocaleString(),
  Number.isSafeInteger(1),
  Number.parseFloat("1").toFixed(),
  (255).toString(16).padStart(4, "0"),
  1..toFixed(),
  1.5.toFixed(),
  (1e3).toString(),
  (0xff).toString(),
  10n.toString(2),
  BigInt(3) ** 2n,
  BigInt.asUintN(8, 257n).toString(),
);
const d = new Date(2020, 1, 1);
console.log(
  d.getFullYear().toFixed(),
  d.toISOString().slice(0, 10),
  Date.UTC(2020, 1),
  d.toLocaleDateString("en", { weekday: "long" }).length,
  new Intl.NumberFormat("en").format(3).length,
  Date.parse("x").toFixed(),
);
const u8 = new Uint8Array([1, 2]);
u8.set([3], 1);
console.log(
  u8.buffer.byteLength,
  u8.subarray(1).length,
  Array.from(u8).map((x) => x.toFixed()),
  new DataView(u8.buffer).getUint8(0),
  Float64Array.from([1]).at(0)?.toFixed(),
  u8.map((x) => x * 2).reduce((a, b) => a + b),
);
const sym = Symbol("s");
console.log(
  sym.description?.length,
  sym.toString().length,
  Symbol.for("a") === Symbol.for("a"),
  Symbol.iterator.toString(),
);
const p = new Proxy({ a: 1 }, {
  get: (t, k) => Reflect.get(t, k) ?? 0,
  has(t, k) {
    return k in t;
  },
});
console.log(p.a.toFixed(), Reflect.ownKeys(p).length);
const js = JSON.parse("{}");
console.log(
  js.any.thing,
  JSON.stringify({ a: [1] }, null, 2).length,
  JSON.stringify([1], (k, v) => v)?.length,
);
console.log(
  [3, 1].sort().reverse().fill(0, 1).copyWithin(0, 1).flat().flatMap((x) => [x, x]).findLast((x) =>
    x > 0
  )?.toFixed(),
  [1, [2, [3]]].flat(Infinity).length,
  Array.of(1).includes(1),
  Array(3).fill("").map((_, i) => i.toFixed()),
  new Array<number>(2).length,
  [..."ab"].entries().next().value,
  [1, 2].lastIndexOf(2),
  Array.from({ length: 3 }, (_, i) => i * 2).some((x) => x > 1),
  [[1, "a"]].map(([x]) => x),
  [1].concat([2], 3).every(Number.isFinite),
  ["b", "a"].toSorted().with(0, "z").toSpliced(0, 1).length,
);
console.log(
  "abc".codePointAt(0)?.toString(16),
  String.fromCharCode(65).normalize("NFD").localeCompare("b"),
  "a".padEnd(3).trimStart().substring(0, 1).substr(0, 1).slice(-1).anchor,
  "x".at(-1)?.isWellFormed?.(),
  "é".normalize().length,
  encodeURIComponent("a").length,
  "abc".concat("d").lastIndexOf("d"),
  [..."héllo"].map((c) => c.charCodeAt(0)).join(","),
  "b".localeCompare("a", undefined, { numeric: true }),
);
console.log(
  Math.hypot(3, 4).toFixed(),
  Math.sign(-1),
  Math.trunc(1.5),
  Math.clz32(1),
  Math.cbrt(8),
  Math.log2(8).toFixed(),
  Math.fround(1),
  Math.imul(2, 3),
  Math.min(...[1, 2]),
  Math.E.toFixed(2),
  Math.SQRT2,
  Math.random().toFixed(1),
  Object.is(1, 1),
  Object.fromEntries([["a", 1]]).a.toFixed(),
  Object.getOwnPropertyNames({}).length,
  Object.hasOwn({}, "a"),
  Object.create(null),
  structuredClone([1]).length,
  isNaN(1),
  parseInt("a", 10).toFixed(),
  Number("1").toFixed(),
  String(1).length,
  Boolean(1).valueOf(),
  Number.EPSILON.toExponential(),
);
class MyErr extends Error {
  code = 1;
  constructor(m: string, options?: ErrorOptions) {
    super(m, options);
    this.name = "MyErr";
    Object.setPrototypeOf(this, MyErr.prototype);
    Error.captureStackTrace?.(this, MyErr);
  }
}
try {
  throw new MyErr("a", { cause: 1 });
} catch (e) {
  if (e instanceof MyErr) console.log(e.code.toFixed(), e.message.length, e.name.length, e.cause);
  else if (e instanceof RangeError || e instanceof SyntaxError) console.log(e.message);
}
setTimeout(() => {}, 1);
const t = setInterval(() => clearInterval(t), 1);
queueMicrotask(() => {});
console.table([1]);
console.time("a");
console.error?.("x");
process.stdout.write("a");
const ab = new AbortController();
ab.signal.aborted;
const te = new TextEncoder().encode("a").length;
console.log(te, new URL("http://a").hostname.length, new URLSearchParams("a=1").get("a")?.length);
