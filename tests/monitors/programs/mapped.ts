type Getters<T> = { [K in keyof T as `get${Capitalize<string & K>}`]: () => T[K] };
interface Person {
  name: string;
  age: number;
}
const g: Getters<Person> = { getName: () => "a", getAge: () => 3 };
console.log(g.getName().toUpperCase(), g.getAge().toFixed());
type Opt<T> = { -readonly [K in keyof T]?: T[K] | null };
const o: Opt<Readonly<Person>> = {};
o.name = "x";
o.age = null;
console.log(o.name?.length, o.age);
type Flat<T> = T extends (infer U)[] ? Flat<U> : T;
const f: Flat<number[][]> = 3;
console.log(f.toFixed());
type Pick2 = Pick<Person, "name"> & Partial<Omit<Person, "name">>;
const q: Pick2 = { name: "n" };
console.log(q.name.length, q.age?.toString());
const r: Record<"a" | "b", number[]> = { a: [1], b: [] };
r.a.push(2);
r.b.concat(r.a);
console.log(r["a"].length);
type Ev = { [E in "click" | "key" as `on${Capitalize<E>}`]?: (e: E) => void };
const h: Ev = { onClick: (e) => console.log(e.length) };
h.onClick?.("click");
h.onKey?.call(null, "key");
const ro: ReadonlyArray<Person> = [q as Person];
console.log(ro.map((pp) => pp.name).toString(), ro.indexOf(ro[0]));
const e: Exclude<"a" | "b", "a"> = "b";
console.log(e.length);
const rt: ReturnType<typeof mk> = mk();
console.log(rt.deep.er.toFixed());
function mk() {
  return { deep: { er: 1 }, list: [1, "a"] as const };
}
const pr: Parameters<typeof two> = [1, "b"];
console.log(pr[1].length, pr.length);
function two(a: number, b: string) {
  return a + b;
}
const aw: Awaited<Promise<Promise<string>>> = "s";
console.log(aw.length);
