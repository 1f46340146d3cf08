type Css = `${number}px` | `${number}%` | "auto";
type Ev<T extends string> = `${T}Changed`;
function size(c: Css): number {
  return c.endsWith("px") ? parseFloat(c) : c.length;
}
declare function on<T extends object, K extends string & keyof T>(
  o: T,
  e: Ev<K>,
  cb: (v: T[K]) => void,
): void;
const watch = {
  on<K extends string>(k: `on-${K}`, f: (k: K) => void) {
    f(k.slice(3) as K);
  },
};
watch.on("on-x", (k) => console.log(k.length));
console.log(size("3px").toFixed(), size(`${4}%`), typeof on);
const tag = (s: TemplateStringsArray, ...v: unknown[]) => s.raw.join("|") + v.length;
console.log(
  tag`a${1}b${"x"}`.length,
  String.raw`\n${1}`.length,
  `${[1, 2].map((n) => `<${n.toFixed()}>`).join("")}`.trim(),
);
type Upper = Uppercase<"abc">;
const u: Upper = "ABC";
console.log(u.charAt(0), u.length);
type Route<S> = S extends `/${infer A}/${infer B}` ? [A, B] : never;
const rr: Route<"/x/y"> = ["x", "y"];
console.log(rr[0].length);
