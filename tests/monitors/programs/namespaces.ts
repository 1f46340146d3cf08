namespace Geometry {
  export namespace Shapes {
    export interface Point {
      readonly x: number;
      readonly y: number;
    }
    export class Polygon {
      private static made = 0;
      #points: Point[] = [];
      add(p: Point): this {
        this.#points.push(p);
        Polygon.made++;
        return this;
      }
      get size(): number {
        return this.#points.length;
      }
      static get count() {
        return Polygon.made;
      }
      *[Symbol.iterator](): IterableIterator<Point> {
        yield* this.#points;
      }
    }
  }
  export import P = Shapes.Polygon;
  const hidden = 3;
  export const twice = () => hidden * 2;
}
import Poly = Geometry.Shapes.Polygon;
const poly = new Poly().add({ x: 1, y: 2 }).add({ x: 3, y: 4 });
for (const { x, y } of poly) console.log(x.toFixed(), y.toFixed());
console.log(poly.size.toString(), Poly.count, Geometry.P.count, Geometry.twice().toFixed());
const xs = [...poly].map((q) => q.x).filter(Number.isInteger).sort((m, n) => m - n);
console.log(xs.at(-1)?.toPrecision(2));
