class Singleton {
  private static instance?: Singleton;
  private constructor(private readonly cfg: Readonly<Record<string, string>>) {}
  static get(): Singleton {
    return (this.instance ??= new Singleton({ a: "b" }));
  }
  value(k: string) {
    return this.cfg[k]?.toUpperCase() ?? "";
  }
}
console.log(Singleton.get().value("a").length);
class Matrix {
  private readonly data: number[][];
  constructor(rows: number, cols: number, fill?: (r: number, c: number) => number);
  constructor(data: number[][]);
  constructor(
    a: number | number[][],
    cols?: number,
    fill: (r: number, c: number) => number = () => 0,
  ) {
    this.data = typeof a === "number"
      ? Array.from({ length: a }, (_, r) => Array.from({ length: cols! }, (_, c) => fill(r, c)))
      : a.map((row) => row.slice());
  }
  get shape(): [number, number] {
    return [this.data.length, this.data[0]?.length ?? 0];
  }
  mul(o: Matrix): Matrix {
    const [n] = this.shape, [, m] = o.shape;
    return new Matrix(n, m, (r, c) => this.data[r].reduce((s, v, k) => s + v * o.data[k][c], 0));
  }
  static identity(n: number) {
    return new Matrix(n, n, (r, c) => +(r === c));
  }
  toString() {
    return this.data.map((r) => r.join(" ")).join("\n");
  }
  *rows() {
    for (const r of this.data) yield r;
  }
}
const mm = Matrix.identity(2).mul(new Matrix([[1, 2], [3, 4]]));
console.log(mm.shape[0].toFixed(), `${mm}`.length, [...mm.rows()][0].length);
abstract class Shape<TOpts extends object = {}> {
  constructor(protected opts: TOpts) {}
  abstract get area(): number;
  compareTo<S extends Shape<any>>(o: S): number {
    return this.area - o.area;
  }
}
class Sq extends Shape<{ side: number }> {
  get area() {
    return this.opts.side ** 2;
  }
  static unit = new Sq({ side: 1 });
}
class Circle extends Shape<{ r: number; tag?: string }> {
  constructor(r: number) {
    super({ r });
  }
  get area() {
    return Math.PI * this.opts.r ** 2;
  }
  get tag() {
    return this.opts.tag?.trim();
  }
}
const shapes: Shape<any>[] = [Sq.unit, new Circle(1)];
shapes.sort((a, b) => a.compareTo(b));
console.log(
  shapes[0].area.toFixed(1),
  new Circle(2).tag?.length,
  Sq.unit.compareTo(new Circle(1)).toFixed(),
);
interface Visitor<R> {
  num(n: Num): R;
  add(a: Add): R;
}
interface Expr {
  accept<R>(v: Visitor<R>): R;
}
class Num implements Expr {
  constructor(public readonly v: number) {}
  accept<R>(v: Visitor<R>): R {
    return v.num(this);
  }
}
class Add implements Expr {
  constructor(readonly l: Expr, readonly r: Expr) {}
  accept<R>(v: Visitor<R>) {
    return v.add(this);
  }
}
const evalV: Visitor<number> = {
  num: (n) => n.v,
  add: (a) => a.l.accept(evalV) + a.r.accept(evalV),
};
const show: Visitor<string> = {
  num: ({ v }) => v.toString(),
  add(a) {
    return `(${a.l.accept(this)} + ${a.r.accept(this)})`;
  },
};
const ex = new Add(new Num(1), new Num(2));
console.log(ex.accept(evalV).toFixed(), ex.accept(show).length, ex.l.accept(show).trim());
class Observable<T> {
  private subs = new Set<(v: T) => void>();
  subscribe(f: (v: T) => void): () => boolean {
    this.subs.add(f);
    return () => this.subs.delete(f);
  }
  next(v: T): this {
    this.subs.forEach((f) => f(v));
    return this;
  }
  pipe<U>(op: (src: Observable<T>) => Observable<U>): Observable<U> {
    return op(this);
  }
  static of<T>(...vs: T[]): Observable<T> {
    const o = new Observable<T>();
    queueMicrotask(() => vs.forEach((v) => o.next(v)));
    return o;
  }
}
const map = <A, B>(f: (a: A) => B) => (src: Observable<A>) => {
  const out = new Observable<B>();
  src.subscribe((v) => out.next(f(v)));
  return out;
};
Observable.of(1, 2).pipe(map((n) => n.toString())).subscribe((s) => console.log(s.length));
class Temp {
  static #n = 0;
  readonly id = ++Temp.#n;
  #secret = "s";
  get len() {
    return this.#secret.length;
  }
  #priv(x: number): string {
    return x.toFixed();
  }
  pub = (x: number) => this.#priv(x).length;
  static isTemp(x: unknown): x is Temp {
    return typeof x === "object" && x !== null && #secret in x;
  }
}
const tt: unknown = new Temp();
if (Temp.isTemp(tt)) console.log(tt.len.toFixed(), tt.pub(3).toFixed(), tt.id);
class Err2 extends RangeError {
  override name = "Err2";
  constructor(readonly code: number, ...args: ConstructorParameters<typeof RangeError>) {
    super(...args);
  }
  static is(e: unknown): e is Err2 {
    return e instanceof this;
  }
}
try {
  throw new Err2(3, "m");
} catch (e) {
  if (Err2.is(e)) console.log(e.code.toFixed(), e.message.length, e.stack?.length);
}
