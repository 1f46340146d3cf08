interface Array<T> {
  second(): T | undefined;
  sum(this: number[]): number;
}
interface String {
  shout(): string;
}
interface Number {
  double(): number;
}
interface Window {
  custom: { v: number };
}
Array.prototype.second = function () {
  return this[1];
};
Array.prototype.sum = function () {
  return this.reduce((a, b) => a + b, 0);
};
String.prototype.shout = function () {
  return this.toUpperCase() + "!";
};
Number.prototype.double = function () {
  return this.valueOf() * 2;
};
console.log(
  ["a"].second()?.length,
  [1].sum().toFixed(),
  "x".shout().length,
  (3).double().toFixed(),
  "a,b".split(",").second()?.shout(),
  window.custom.v,
);
class Foo {
  a = 1;
}
interface Foo {
  b?: string;
}
const foo = new Foo();
console.log(foo.a.toFixed(), foo.b?.length);
function Lib() {
  return Lib.version;
}
Lib.version = "1";
Lib.util = { x: 1 };
console.log(Lib.version.length, Lib.util.x.toFixed(), Lib().trim());
const fnp = (x: number) => x;
fnp.meta = { tag: "t" };
console.log(fnp.meta.tag.length, fnp(1).toFixed());
declare var EXT: { [k: string]: { n: number } };
if (typeof EXT !== "undefined") console.log(EXT.a.n.toFixed());
namespace A.B.C {
  export const deep = { v: 1 };
  export type T = typeof deep;
}
console.log(A.B.C.deep.v.toFixed());
const tv: A.B.C.T = A.B.C.deep;
console.log(tv.v);
namespace A {
  export enum E {
    X,
  }
}
console.log(A.E.X.toFixed(), A.E[0].length);
