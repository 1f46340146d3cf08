function pick(x: string): string[];
function pick(x: number, y?: number): number[];
function pick(x: boolean, ...rest: boolean[]): Map<string, boolean>;
function pick(x: any, ...more: any[]): any {
  return [x, ...more];
}
const a = pick("q").map((s) => s.trimEnd().padStart(3, "*")).join("");
const b = pick(1, 2).reduce((s, n) => s + n.valueOf(), 0).toFixed(1);
const c = pick(true, false, true).get("k")?.valueOf();
console.log(a.length, b.charAt(0), c);
class Box {
  at(key: string): string;
  at(key: number): number;
  at(key: string | number): string | number {
    return key;
  }
}
const box = new Box();
box.at("x").toUpperCase();
box.at(3).toExponential();
