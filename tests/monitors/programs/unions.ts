interface Cat {
  meow(): string;
  lives: number;
}
interface Dog {
  bark(): string;
  age: number;
}
class Fish {
  swim() {
    return 1;
  }
}
class Bird {
  constructor(public wing: number) {}
  fly() {
    return this.wing;
  }
}
function speak(p: Cat | Dog): string {
  if ("meow" in p) return p.meow().trim() + p.lives.toFixed();
  return p.bark() + p.age;
}
function move(x: Fish | Bird | string | number[] | null) {
  if (x === null) return 0;
  if (typeof x === "string") return x.length;
  if (Array.isArray(x)) return x.length + x.reduce((a, b) => a + b, 0);
  return x instanceof Fish ? x.swim() : x.fly() + x.wing;
}
type Shape = { kind: "circle"; r: number } | { kind: "rect"; w: number; h: number } | {
  kind: "tri";
  base: number;
  height: number;
};
const area = (s: Shape): number => {
  switch (s.kind) {
    case "circle":
      return Math.PI * s.r ** 2;
    case "rect":
      return s.w * s.h;
    case "tri":
      return s.base * s.height / 2;
    default: {
      const never: never = s;
      return never;
    }
  }
};
function isCat(p: Cat | Dog): p is Cat {
  return (p as Cat).meow !== undefined;
}
function assertDog(p: unknown): asserts p is Dog {
  if (!(p && typeof p === "object" && "bark" in p)) throw new TypeError("no");
}
function use(p: Cat | Dog, u: unknown) {
  if (isCat(p)) p.meow();
  else p.bark();
  assertDog(u);
  return u.bark().length;
}
const cats = [] as (Cat | Dog)[];
const only = cats.filter(isCat).map((c) => c.lives);
console.log(only.length, area({ kind: "rect", w: 1, h: 2 }), move("a"), speak(cats[0]), use);
type Res<T> = { ok: true; value: T } | { ok: false; error: Error };
function un<T>(r: Res<T>): T {
  if (!r.ok) throw r.error.message;
  return r.value;
}
const got = un({ ok: true, value: [1] } as Res<number[]>);
console.log(got.length);
const mixed: (string | number)[] = [1, "a"];
mixed.forEach((m) => {
  if (typeof m !== "number") {
    console.log(m.length);
    return;
  }
  console.log(m.toFixed());
});
