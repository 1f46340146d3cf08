type ElementOf<T> = T extends readonly (infer E)[] ? E : T extends Set<infer S> ? S : never;
type Fn = (...a: never[]) => unknown;
type R<F extends Fn> = F extends (...a: any[]) => infer X ? X : never;
const e1: ElementOf<string[]> = "a";
console.log(e1.length);
const e2: ElementOf<Set<number>> = 3;
console.log(e2.toFixed());
const r1: R<() => { q: string }> = { q: "x" };
console.log(r1.q.length);
type DeepPartial<T> = { [K in keyof T]?: T[K] extends object ? DeepPartial<T[K]> : T[K] };
const dp: DeepPartial<{ a: { b: number } }> = { a: {} };
console.log(dp.a?.b?.toFixed());
type Mutable<T> = { -readonly [K in keyof T]: T[K] };
const mu: Mutable<{ readonly z: number }> = { z: 1 };
mu.z = 2;
console.log(mu.z.toFixed());
type KeysOfType<T, V> = { [K in keyof T]: T[K] extends V ? K : never }[keyof T];
const ks: KeysOfType<{ a: string; b: number }, string> = "a";
console.log(ks.length);
type UnionToInter<U> = (U extends any ? (k: U) => void : never) extends (k: infer I) => void ? I
  : never;
const ui: UnionToInter<{ a: 1 } | { b: 2 }> = { a: 1, b: 2 };
console.log(ui.a.toFixed(), ui.b);
type Join<T extends string[], D extends string> = T extends [] ? ""
  : T extends [infer F extends string] ? F
  : T extends [infer F extends string, ...infer Rst extends string[]] ? `${F}${D}${Join<Rst, D>}`
  : string;
const jn: Join<["a", "b"], "-"> = "a-b";
console.log(jn.length, jn.split("-")[0].trim());
type Brand<T, B extends string> = T & { readonly __brand: B };
type Id = Brand<string, "id">;
const id = "x" as Id;
console.log(id.length, id.__brand);
interface State {
  user: { name: string; langs: string[] };
  n: number;
}
type Path<T, P extends string = ""> = T extends object
  ? { [K in keyof T & string]: Path<T[K], `${P}.${K}`> }[keyof T & string]
  : P;
function get<T, K extends keyof T>(o: T, k: K): T[K];
function get<T, K extends keyof T, L extends keyof T[K]>(o: T, k: K, l: L): T[K][L];
function get(o: any, ...ks: string[]) {
  return ks.reduce((x, k) => x[k], o);
}
const stt: State = { user: { name: "n", langs: [] }, n: 1 };
console.log(
  get(stt, "user", "name").length,
  get(stt, "n").toFixed(),
  get(stt, "user").langs.length,
);
const set = <K extends keyof State>(k: K, v: State[K]) => {
  stt[k] = v;
  return { ...stt, [k]: v };
};
console.log(set("n", 3).user.name.length);
type Act = { type: "inc"; by: number } | { type: "set"; payload: { v: number } } | {
  type: "reset";
};
const reduce = (s: { v: number } = { v: 0 }, a: Act): { v: number } => {
  switch (a.type) {
    case "inc":
      return { ...s, v: s.v + a.by };
    case "set":
      return { v: a.payload.v };
    case "reset":
      return { v: 0 };
  }
};
console.log(
  [{ type: "inc", by: 1 } as Act, { type: "reset" } as const].reduce(reduce, { v: 1 }).v.toFixed(),
);
const handlers: { [A in Act as A["type"]]: (a: A) => number } = {
  inc: (a) => a.by,
  set: (a) => a.payload.v,
  reset: () => 0,
};
console.log(handlers.inc({ type: "inc", by: 2 }).toFixed());
