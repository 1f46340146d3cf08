interface Config {
  host: string;
}
interface Config {
  port: number;
  retry?: { times: number; delay: number };
}
function build(c: Config): string {
  return c.host.concat(":", c.port.toString(), String(c.retry?.times ?? 0));
}
function counter(): number {
  counter.calls += 1;
  return counter.calls;
}
namespace counter {
  export let calls = 0;
  export const label = "c";
}
counter();
console.log(counter.calls.toFixed(), counter.label.length);
class Vec {
  constructor(public x: number, public y: number) {}
}
namespace Vec {
  export function zero(): Vec {
    return new Vec(0, 0);
  }
  export interface Like {
    x: number;
  }
}
const z: Vec = Vec.zero();
const l: Vec.Like = { x: z.x };
console.log(l.x.toString(2));
enum Level {
  Low = 1,
  High,
}
namespace Level {
  export function parse(s: string): Level {
    return s === "low" ? Level.Low : Level.High;
  }
}
console.log(Level.parse("low").toFixed(), Level[Level.High].toLowerCase());
interface Array<T> {
  lastOne(): T | undefined;
}
Array.prototype.lastOne = function () {
  return this[this.length - 1];
};
console.log([1, 2].lastOne()?.toFixed(1), build({ host: "h", port: 2 }));
