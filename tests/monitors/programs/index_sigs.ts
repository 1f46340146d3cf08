interface Dict<T = unknown> {
  [key: string]: T;
}
const d: Dict<number[]> = {};
d.x = [1];
d["y"] = [];
console.log(d.x.length, d.anything?.length, d.y.push(3));
class Reg {
  [name: string]: unknown;
  known = 1;
  static [Symbol.hasInstance](x: unknown) {
    return typeof x === "number";
  }
}
const r = new Reg();
r.other = 3;
console.log(r.known.toFixed?.(), r.whatever);
type NumDict = { [k: number]: string; length: number };
const nd: NumDict = { 0: "a", length: 1 };
console.log(nd[0].length, nd.length.toFixed());
const memo: { [key: string]: { [key: string]: number } } = {};
(memo["a"] = memo["a"] || {})["b"] = 1;
console.log(memo.a.b.toFixed(), memo.zzz);
type Data = { [k in `data-${string}`]: string } & { id: number };
const dd: Data = { "data-x": "1", id: 2 };
console.log(dd["data-x"].length, dd.id.toFixed());
interface Callable {
  (x: number): string;
  prop: number;
  new (s: string): Date;
  method?(): void;
}
declare const cl: Callable;
function useCl(c: Callable) {
  return c(1).length + c.prop.toFixed() + new c("a").getTime() + c.name.length + c.call(null, 1);
}
console.log(typeof cl, useCl);
const counts = new Map<string, Map<number, Set<string>>>();
counts.get("a")?.get(1)?.add("x").delete("y");
console.log(counts.size);
const o = {
  "quoted key": 1,
  42: "a",
  [`t${1}`]: 2,
  if: 1,
  class: "c",
  async: 1,
  get: 2,
  set: 3,
  of: 4,
  static: 5,
  async m() {
    return 1;
  },
  *g() {
    yield 1;
  },
  async *ag() {
    yield 1;
  },
  "str"() {
    return 1;
  },
  1.5() {
    return 2;
  },
};
console.log(
  o["quoted key"].toFixed(),
  o[42].length,
  o.if,
  o.class.length,
  o.async,
  o.get + o.set,
  o.of,
  o.static,
  o.m().then((x) => x.toFixed()),
  o.g().next().value,
  o.ag().next(),
  o.str(),
);
