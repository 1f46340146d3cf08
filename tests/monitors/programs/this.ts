interface Deck {
  cards: number[];
  pick(this: Deck): () => number;
}
const deck: Deck = {
  cards: [1],
  pick() {
    return () => this.cards[0];
  },
};
console.log(deck.pick()().toFixed());
class Builder {
  parts: string[] = [];
  add(s: string) {
    this.parts.push(s);
    return this;
  }
  addIf = (c: boolean, s: string) => c ? this.add(s) : this;
  build() {
    return this.parts.join(" ");
  }
}
console.log(new Builder().add("a").addIf(true, "b").add("c").build().length);
const calc = {
  total: 0,
  add(n: number) {
    this.total += n;
    return this;
  },
  get double() {
    return this.total * 2;
  },
};
console.log(calc.add(1).add(2).double.toFixed(), calc.total);
function Old(this: { n: number }, k: number) {
  return this.n + k;
}
console.log(Old.call({ n: 1 }, 2).toFixed(), Old.apply({ n: 1 }, [3]), Old.bind({ n: 2 })(3));
const self = globalThis;
console.log(typeof self.parseInt);
class Ev<T extends Record<string, unknown[]>> {
  private h: { [K in keyof T]?: ((...a: T[K]) => void)[] } = {};
  on<K extends keyof T>(k: K, f: (...a: T[K]) => void): this {
    (this.h[k] ??= []).push(f);
    return this;
  }
  emit<K extends keyof T>(k: K, ...a: T[K]) {
    this.h[k]?.forEach((f) => f(...a));
  }
}
const ev = new Ev<{ hit: [number, string]; miss: [] }>();
ev.on("hit", (n, s) => console.log(n.toFixed(), s.length)).on("miss", () => {}).emit("hit", 1, "a");
