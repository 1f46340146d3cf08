type A = "x" | "y";
type F = new () => object;
type G = typeof import("fs");
let x: A = "x", y = "y" as const;
let z = x!;
let w = (x as unknown) as string;
console.log(z.length, w.length, y.length);
abstract class Q {
  abstract m(): void;
  protected abstract readonly k: number;
  static s?: string;
}
class R extends Q {
  m = () => {};
  protected readonly k = 1;
}
new R().m();
new R();
console.log(Q.s?.length, R.name.length);
function over(this: Window | void, cb: (this: string) => number): asserts cb {}
let tuple: [a: string, b?: number, ...rest: boolean[]] = ["x"];
console.log(tuple[0].length, tuple[1]?.toFixed(), tuple.slice(2).length);
type Rec = { [k: string]: Rec } | string;
const rec: Rec = { a: { b: "c" } };
type Fnn = { <T>(x: T): T; (x: string, y: number): string };
const idf: Fnn = (x: any) => x;
console.log(idf(3).toFixed(), typeof rec);
type L<T extends readonly unknown[]> = T["length"];
const len: L<[1, 2]> = 2;
console.log(len.toFixed());
declare const env: { readonly [k: string]: string | undefined };
declare let cnt: number;
declare function ext(a: number): string;
declare class Ext {
  m(): Date;
}
declare enum DE {
  A,
}
declare namespace NS {
  const v: number;
  function f(): string[];
}
type X1 = NonNullable<typeof env[string]>;
const lz = () => {
  env.FOO?.length;
  cnt.toFixed();
  ext(1).length;
  new Ext().m().getTime();
  NS.v.toFixed();
  NS.f().length;
  return DE.A;
};
console.log(typeof lz);
let v1 = 1 as number | string;
if (typeof v1 == "string") v1.length;
const { a, b } = {
  a: 1,
  get b() {
    return 2;
  },
};
console.log(a.toFixed(), b.toFixed());
label: {
  break label;
}
var fnExp = function* () {
  const r: number = yield "x";
  r.toFixed();
};
fnExp().next(1);
let ob = {
  f<T>(x: T) {
    return [x];
  },
  async *g() {},
  get [Symbol.iterator]() {
    return fnExp;
  },
};
ob.f("a")[0].length;
if (x === "x") {}
else if (y) {}
else {} // trailing
/* block */
