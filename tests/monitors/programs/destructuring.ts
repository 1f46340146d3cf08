type U = { id: number; profile: { name: string; tags: string[]; addr?: { zip: string } } };
function show(
  { id, profile: { name, tags: [first = "none", ...others], addr: { zip = "0" } = { zip: "1" } } }:
    U,
  { sep = ",", n }: { sep?: string; n?: number } = {},
): string {
  return id.toFixed() + name.length + first.toUpperCase() + others.length + zip.trim() +
    sep.length + n?.toFixed();
}
const u: U = { id: 1, profile: { name: "a", tags: [] } };
console.log(show(u).length);
const { profile: { tags }, ...restU } = u;
console.log(tags.length, restU.id.toFixed());
let a = 1, b = 2;
[a, b] = [b, a];
({ id: a, profile: { name: u.profile.name } } = u);
console.log(a.toFixed(), b);
for (const { id, profile: { name: nm } } of [u]) console.log(id.toFixed(), nm.length);
const f = ([x, y]: [number, string], ...[z, w]: [boolean, Date]) =>
  x.toFixed() + y.length + z.valueOf() + w.getTime().toFixed();
console.log(f([1, "a"], true, new Date()).length);
const key = "id" as const;
const { [key]: dyn } = u;
console.log(dyn.toFixed());
const swap = <A, B>([p, q]: readonly [A, B]): [B, A] => [q, p];
console.log(swap([1, "a"])[0].length);
const m = new Map([["a", { c: 1 }]]);
m.forEach(({ c }, k) => console.log(c.toFixed(), k.length));
const mm = [...m].map(([k, { c }]) => ({ k, c }));
console.log(mm[0].k.length, mm[0].c);
try {
  throw new Error("x");
} catch (e) {
  const { message } = e as Error;
  console.log(message.length);
}
const { length } = "abc";
const { PI, floor } = Math;
console.log(length.toFixed(), floor(PI).toFixed());
const [y1, m1] = "2020-01".split("-").map(Number);
console.log(y1.toFixed(), m1);
const sum = ({ a: aa = 1, b: bb = 2 }: { a?: number; b?: number } = {}) => aa.toFixed() + bb;
console.log(sum({ a: 3 }).length);
const [{ x: [[deep]] }] = [{ x: [["q"]] }];
console.log(deep.length);
const [c0, c1] = "hi";
console.log(c0.length, c1.toUpperCase());
