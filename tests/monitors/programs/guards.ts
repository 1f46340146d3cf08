class Animal {
  constructor(public name: string) {}
}
class Dog extends Animal {
  bark() {
    return "woof";
  }
}
class Cat extends Animal {
  lives = 9;
}
const pets: Animal[] = [new Dog("a"), new Cat("b")];
const isDog = (a: Animal): a is Dog => a instanceof Dog;
console.log(
  pets.filter(isDog).map((d) => d.bark().length),
  pets.find(isDog)?.bark(),
  pets.filter((a): a is Cat => a instanceof Cat)[0].lives.toFixed(),
);
console.log(
  pets.filter((a) => a instanceof Dog).map((d) => d.bark().trim()),
  pets.every(isDog) ? pets[0].bark() : "",
  pets.some((a) => a.name.length > 1),
);
function dogLike(a: Animal) {
  return a instanceof Dog;
}
for (const x of pets) {
  if (dogLike(x)) console.log(x.bark().length);
  else console.log(x.name.length);
}
const nums = [1, null, 2, undefined].filter((x) => x != null).map((x) => x.toFixed());
const strs = ["a", 1, null].filter((x): x is string => typeof x === "string").map((s) => s.length);
const [dogs, rest] = [pets.filter(isDog), pets.filter((a) => !isDog(a))];
console.log(dogs[0].bark(), rest[0].name, nums[0].length, strs[0].toFixed());
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
function depth(j: Json): number {
  if (Array.isArray(j)) return 1 + Math.max(0, ...j.map(depth));
  if (j && typeof j === "object") return 1 + Math.max(0, ...Object.values(j).map(depth));
  return 0;
}
console.log(depth({ a: [1] }).toFixed(), Array.isArray(pets) && pets.length);
const byName = new Map(pets.map((x) => [x.name, x] as const));
console.log(byName.get("a")?.name.length, [...byName.values()].filter(isDog).length);
