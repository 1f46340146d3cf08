class ListNode<T> {
  next: ListNode<T> | null = null;
  constructor(public val: T) {}
}
class LinkedList<T> implements Iterable<T> {
  private head: ListNode<T> | null = null;
  private _size = 0;
  get size(): number {
    return this._size;
  }
  push(v: T): LinkedList<T> {
    const n = new ListNode(v);
    if (!this.head) this.head = n;
    else {
      let c = this.head;
      while (c.next) c = c.next;
      c.next = n;
    }
    this._size++;
    return this;
  }
  *[Symbol.iterator](): Generator<T> {
    let c = this.head;
    while (c) {
      yield c.val;
      c = c.next;
    }
  }
  reverse(): void {
    let prev: ListNode<T> | null = null, cur = this.head;
    while (cur) {
      const nx: ListNode<T> | null = cur.next;
      cur.next = prev;
      prev = cur;
      cur = nx;
    }
    this.head = prev;
  }
  toArray(): T[] {
    return [...this];
  }
  find(p: (v: T) => boolean): T | undefined {
    for (const v of this) if (p(v)) return v;
  }
}
const l = new LinkedList<string>().push("a").push("b");
l.reverse();
console.log(
  l.toArray().map((s) => s.toUpperCase()),
  l.size.toFixed(),
  l.find((s) => s > "a")?.length,
);
class PQ<T> {
  private h: T[] = [];
  constructor(private cmp: (a: T, b: T) => number = (a, b) => (a < b ? -1 : 1)) {}
  push(x: T) {
    this.h.push(x);
    let i = this.h.length - 1;
    while (i > 0) {
      const p = (i - 1) >> 1;
      if (this.cmp(this.h[p], this.h[i]) <= 0) break;
      [this.h[p], this.h[i]] = [this.h[i], this.h[p]];
      i = p;
    }
  }
  pop(): T | undefined {
    if (this.h.length === 0) return undefined;
    const top = this.h[0], last = this.h.pop()!;
    if (this.h.length) this.h[0] = last;
    return top;
  }
  peek = () => this.h[0];
  get empty() {
    return this.h.length === 0;
  }
}
const pq = new PQ<[number, string]>((a, b) => a[0] - b[0]);
pq.push([1, "x"]);
console.log(pq.pop()?.[1].length, pq.peek()?.[0].toFixed(), pq.empty);
interface TrieNode {
  children: Map<string, TrieNode>;
  end: boolean;
}
const mk = (): TrieNode => ({ children: new Map(), end: false });
const root = mk();
for (const ch of "abc") {
  if (!root.children.has(ch)) root.children.set(ch, mk());
  root.children.get(ch)!.end = true;
}
type G = Record<string, { to: string; w: number }[]>;
const graph: G = { a: [{ to: "b", w: 1 }] };
const dist: { [k: string]: number } = Object.keys(graph).reduce(
  (d, k) => ({ ...d, [k]: Infinity }),
  {},
);
for (const { to, w } of graph["a"] ?? []) dist[to] = Math.min(dist[to] ?? Infinity, w);
console.log(dist.b.toFixed());
