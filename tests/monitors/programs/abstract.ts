abstract class Animal {
  protected abstract sound(): string;
  constructor(readonly name: string) {}
  speak(): string {
    return `${this.name}: ${this.sound().toUpperCase()}`;
  }
  static create<T extends Animal>(this: new (n: string) => T, n: string): T {
    return new this(n);
  }
}
class Dog extends Animal {
  protected sound() {
    return "woof";
  }
  fetch(): this {
    return this;
  }
}
const d = Dog.create("r");
console.log(d.fetch().speak().length, d.name.trim());
type Ctor<T = {}> = abstract new (...args: any[]) => T;
type C2<T> = new (...args: any[]) => T;
function Stamped<B extends C2<{}>>(Base: B) {
  return class extends Base {
    stamp = Date.now();
    age() {
      return Date.now() - this.stamp;
    }
  };
}
class Plain {
  hi = 1;
}
const S = Stamped(Plain);
const s = new S();
console.log(s.hi.toFixed(), s.stamp.toFixed(), s.age());
interface Fly {
  fly(): void;
}
interface Swim {
  swim?(): void;
}
class Duck implements Fly, Swim {
  fly() {}
  swim() {}
}
const k: Ctor<Animal> = Dog;
console.log(k.name.length, new Duck().fly(), (new Duck() as Swim).swim?.());
const anon = new (class {
  x = 1;
  inc() {
    this.x++;
    return this;
  }
})();
console.log(anon.inc().inc().x);
const Named = class Inner {
  static n = 0;
  clone() {
    return new Inner();
  }
};
console.log(Named.n, new Named().clone().clone());
class St {
  static #c = 0;
  static {
    St.#c = 5;
  }
  static get c() {
    return St.#c;
  }
  #p = 1;
  has(o: object): boolean {
    return #p in o;
  }
}
console.log(St.c.toFixed(), new St().has({}));
class Par {
  accessor val = 1;
  declare foo?: string;
  bar!: number;
  static readonly baz = "z" as const;
}
const par = new Par();
par.val = 3;
par.bar = 2;
console.log(par.val.toFixed(), par.foo?.length, Par.baz.length);
