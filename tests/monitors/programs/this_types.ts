// Methods that return this, called through what derives from their class.
interface A { add(i: number): this; }
interface B extends A { extra: string }
declare const b: B;
b.add(1).extra.trim();
class P { self(): this { return this; } }
class Q extends P { q = 1; r() { return this.self().q.toFixed(); } }
new Q().self().q.toFixed();
class R { self() { return this; } }
class S extends R { q = 1; }
new S().self().q.toFixed();
class Numbers extends Map<string, number> { extra = 1; }
new Numbers().set("a", 1).extra.toFixed();
