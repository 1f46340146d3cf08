console.log(later(2).toFixed(), typeof undefined);
function later(n: number) {
  return n * factor();
}
function factor() {
  return base;
}
var base = 2;
enum K {
  A,
}
const use = () => new Later().v.toFixed();
class Later {
  v = 1;
  static make = () => new Later();
}
console.log(use(), Later.make().v);
var x = 1;
var x = 2;
{
  let x = "s";
  console.log(x.length);
  {
    const x = [1];
    console.log(x.push(2));
  }
}
console.log(x.toFixed());
function shadow(x: string): number {
  const f = (x: number[]) => x.length;
  return f([x.length]);
}
function rec(n: number): number {
  return n <= 1 ? 1 : n * rec(n - 1);
}
console.log(shadow("a"), rec(3).toFixed());
type T = typeof value;
const value = { a: { b: [1] } };
const t: T["a"]["b"][number] = 1;
console.log(t.toFixed());
let fwd: Fwd;
interface Fwd {
  q: string;
}
fwd = { q: "a" };
console.log(fwd.q.length);
if (true) {
  function inner() {
    return "i";
  }
  console.log(inner().length);
}
for (var i = 0; i < 1; i++);
console.log(i.toFixed());
for (let j = 0, n = 2; j < n; j++) setTimeout(() => console.log(j.toFixed()));
function args() {
  return arguments.length + (arguments[0] as number);
}
console.log(args.length, args.name.trim());
(function iife(n) {
  if (n > 0) iife(n - 1);
})(2);
void function () {}();
