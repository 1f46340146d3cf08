class Cache<K extends string | number, V extends { id: K }> {
  private m = new Map<K, V>();
  add(...vs: V[]): this {
    vs.forEach((v) => this.m.set(v.id, v));
    return this;
  }
  get(k: K): V | undefined {
    return this.m.get(k);
  }
  map<R>(f: (v: V, k: K) => R): R[] {
    return [...this.m].map(([k, v]) => f(v, k));
  }
}
const c = new Cache<string, { id: string; n: number[] }>().add({ id: "a", n: [1] });
console.log(
  c.get("a")?.n.length,
  c.map((v) => v.n.length).join(),
  c.map((v, k) => ({ v, k }))[0].k.length,
);
function group<T, K extends PropertyKey>(xs: readonly T[], f: (x: T) => K): Record<K, T[]> {
  return xs.reduce((acc, x) => {
    (acc[f(x)] ||= []).push(x);
    return acc;
  }, {} as Record<K, T[]>);
}
const g = group(["a", "bb"], (s) => s.length);
console.log(g[1].length, g[2][0].toUpperCase(), Object.keys(g).length);
const pluck = <T, K extends keyof T>(o: T, ...ks: K[]): T[K][] => ks.map((k) => o[k]);
console.log(pluck({ a: 1, b: "x" }, "a").map((n) => n.toFixed()));
function compose<A, B, C>(f: (a: A) => B, g2: (b: B) => C): (a: A) => C {
  return (a) => g2(f(a));
}
console.log(compose((n: number) => n.toString(), (s) => s.length)(3).toFixed());
function zip<A, B>(a: A[], b: B[]): [A, B][] {
  return a.map((x, i) => [x, b[i]]);
}
for (const [x, y] of zip([1], ["a"])) console.log(x.toFixed(), y.length);
type Tree<T> = { v: T; l?: Tree<T>; r?: Tree<T> };
const depth = <T>(t?: Tree<T>): number => t ? 1 + Math.max(depth(t.l), depth(t.r)) : 0;
console.log(depth({ v: 1, l: { v: 2 } }));
interface Monad<T> {
  map<U>(f: (t: T) => U): Monad<U>;
  get(): T;
}
function unit<T>(t: T): Monad<T> {
  return { map: (f) => unit(f(t)), get: () => t };
}
console.log(unit(3).map((n) => n.toString()).map((s) => s.length).get().toFixed());
const curry = <A, B, R>(f: (a: A, b: B) => R) => (a: A) => (b: B) => f(a, b);
console.log(curry((a: number, b: string) => b.repeat(a))(2)("x").length);
const last = <T extends { length: number; [i: number]: unknown }>(t: T) => t[t.length - 1];
console.log(last([1]), last("ab"));
function def<T = string>(x?: T): T[] {
  return x === undefined ? [] : [x];
}
console.log(def<number>(3)[0].toFixed(), def("a")[0].length);
const memo = <F extends (...a: any[]) => any>(f: F) => {
  const m = new Map<string, ReturnType<F>>();
  return (...a: Parameters<F>): ReturnType<F> => {
    const k = JSON.stringify(a);
    if (!m.has(k)) m.set(k, f(...a));
    return m.get(k)!;
  };
};
console.log(memo((n: number) => n.toString())(3).length);
