type Edge = { from: number; to: number; weight: number };
function kruskal(n: number, edges: Edge[]): Edge[] {
  const parent = Array.from({ length: n }, (_, i) => i);
  const find = (x: number): number => (parent[x] === x ? x : (parent[x] = find(parent[x])));
  return [...edges].sort((a, b) => a.weight - b.weight).filter(({ from, to }) => {
    const [a, b] = [find(from), find(to)];
    if (a === b) return false;
    parent[a] = b;
    return true;
  });
}
console.log(
  kruskal(2, [{ from: 0, to: 1, weight: 3 }]).reduce((s, e) => s + e.weight, 0).toFixed(),
);
function permutations<T>(xs: T[]): T[][] {
  if (xs.length <= 1) return [xs.slice()];
  return xs.flatMap((x, i) =>
    permutations([...xs.slice(0, i), ...xs.slice(i + 1)]).map((p) => [x, ...p])
  );
}
console.log(
  permutations(["a", "b"]).map((p) => p.join("").length),
  permutations([1])[0][0].toFixed(),
);
function* combos<T>(xs: readonly T[], k: number, at = 0, acc: T[] = []): Generator<T[]> {
  if (acc.length === k) {
    yield [...acc];
    return;
  }
  for (let i = at; i < xs.length; i++) {
    acc.push(xs[i]);
    yield* combos(xs, k, i + 1, acc);
    acc.pop();
  }
}
for (const c of combos([1, 2, 3], 2)) console.log(c.length, c[0].toFixed());
const memo = new Map<string, number>();
const edit = (a: string, b: string): number => {
  const k = a + "|" + b;
  const hit = memo.get(k);
  if (hit !== undefined) return hit;
  const r = !a.length ? b.length : !b.length ? a.length : Math.min(
    edit(a.slice(1), b) + 1,
    edit(a, b.slice(1)) + 1,
    edit(a.slice(1), b.slice(1)) + Number(a[0] !== b[0]),
  );
  memo.set(k, r);
  return r;
};
console.log(edit("ab", "b").toFixed());
const sieve = (n: number) => {
  const is = new Uint8Array(n + 1).fill(1);
  const out: number[] = [];
  for (let i = 2; i <= n; i++) {
    if (is[i]) {
      out.push(i);
      for (let j = i * i; j <= n; j += i) is[j] = 0;
    }
  }
  return out;
};
console.log(sieve(10).at(-1)?.toFixed());
const rle = (s: string) => s.replace(/(.)\1*/g, (m, c: string) => c + m.length);
const unrle = (s: string) => [...s.matchAll(/(\D)(\d+)/g)].map(([, c, n]) => c.repeat(+n)).join("");
console.log(unrle(rle("aab")).length);
const caesar = (s: string, k: number): string =>
  s.split("").map((c) =>
    /[a-z]/i.test(c)
      ? String.fromCharCode(
        (c.charCodeAt(0) - (c < "a" ? 65 : 97) + k + 26) % 26 + (c < "a" ? 65 : 97),
      )
      : c
  ).join("");
console.log(caesar("a", 1).length);
const isAnagram = (a: string, b: string): boolean => {
  const norm = (s: string) => [...s.toLowerCase()].sort().join("");
  return norm(a) === norm(b);
};
console.log(isAnagram("a", "a"));
const bfs = (grid: string[], [sr, sc]: [number, number]): number => {
  const seen = new Set<string>([`${sr},${sc}`]);
  let frontier: [number, number][] = [[sr, sc]], steps = 0;
  const dirs = [[0, 1], [1, 0], [0, -1], [-1, 0]] as const;
  while (frontier.length) {
    const next: typeof frontier = [];
    for (const [r, c] of frontier) {
      for (const [dr, dc] of dirs) {
        const nr = r + dr, nc = c + dc;
        if (grid[nr]?.[nc] === "." && !seen.has(`${nr},${nc}`)) {
          seen.add(`${nr},${nc}`);
          next.push([nr, nc]);
        }
      }
    }
    frontier = next;
    steps++;
  }
  return steps;
};
console.log(bfs([".."], [0, 0]).toFixed());
const groupBy = <T, K extends string>(xs: T[], f: (x: T) => K) =>
  xs.reduce((m, x) => ({ ...m, [f(x)]: [...(m[f(x)] ?? []), x] }), {} as Partial<Record<K, T[]>>);
console.log(groupBy(["a"], (s) => s.length > 1 ? "long" : "short").short?.length);
class Heap<T> {
  #a: T[] = [];
  constructor(private readonly less: (x: T, y: T) => boolean) {}
  get size() {
    return this.#a.length;
  }
  push(...xs: T[]) {
    for (const x of xs) {
      this.#a.push(x);
      for (let i = this.#a.length - 1; i > 0;) {
        const p = (i - 1) >> 1;
        if (!this.less(this.#a[i], this.#a[p])) break;
        [this.#a[i], this.#a[p]] = [this.#a[p], this.#a[i]];
        i = p;
      }
    }
    return this;
  }
  pop(): T | undefined {
    const top = this.#a[0];
    const last = this.#a.pop();
    if (this.#a.length && last !== undefined) this.#a[0] = last;
    return top;
  }
}
console.log(
  new Heap<{ p: number }>((x, y) => x.p < y.p).push({ p: 2 }, { p: 1 }).pop()?.p.toFixed(),
);
