const sleep = (ms: number) => new Promise<void>((res) => setTimeout(res, ms));
const retry = async <T>(f: () => Promise<T>, n = 3): Promise<T> => {
  for (let i = 0;; i++) {
    try {
      return await f();
    } catch (e) {
      if (i >= n) throw e;
      await sleep(2 ** i);
    }
  }
};
retry(async () => "x").then((s) => console.log(s.length));
async function pool<T, R>(xs: T[], k: number, f: (x: T) => Promise<R>): Promise<R[]> {
  const out: R[] = new Array(xs.length);
  let i = 0;
  await Promise.all(Array.from({ length: Math.min(k, xs.length) }, async () => {
    while (i < xs.length) {
      const at = i++;
      out[at] = await f(xs[at]);
    }
  }));
  return out;
}
pool([1, 2], 2, async (n) => n.toString()).then((r) => r.map((s) => s.length));
const timeout = <T>(p: Promise<T>, ms: number): Promise<T> =>
  Promise.race([p, new Promise<never>((_, rej) => setTimeout(() => rej(new Error("t")), ms))]);
timeout(Promise.resolve(3), 1).then((n) => n.toFixed());
class Mutex {
  private last: Promise<unknown> = Promise.resolve();
  run<T>(f: () => T | Promise<T>): Promise<T> {
    const next = this.last.then(f);
    this.last = next.catch(() => {});
    return next;
  }
}
new Mutex().run(() => 3).then((n) => n.toFixed());
class Deferred<T> {
  resolve!: (v: T | PromiseLike<T>) => void;
  reject!: (e?: unknown) => void;
  readonly promise = new Promise<T>((a, b) => {
    this.resolve = a;
    this.reject = b;
  });
}
const df = new Deferred<string>();
df.resolve("x");
df.promise.then((s) => s.length);
(async () => {
  const r = await Promise.allSettled([1, Promise.reject("x")]);
  const ok = r.filter((x): x is PromiseFulfilledResult<number> => x.status === "fulfilled").map(
    (x) => x.value.toFixed(),
  );
  const [a, { b }] = await Promise.all([Promise.resolve("a"), Promise.resolve({ b: 1 })]);
  console.log(ok.length, a.length, b.toFixed());
  const m = await Promise.all(["x"].map(async (s) => ({ s, n: s.length })));
  console.log(m[0].s.length, m[0].n.toFixed());
  const obj = await (async () => ({ deep: { v: [1] } }))();
  console.log(obj.deep.v[0].toFixed());
  for await (
    const x of (async function* () {
      yield 1;
      yield "a";
    })()
  ) console.log(typeof x === "string" ? x.length : x.toFixed());
  const v = (await df.promise).toUpperCase();
  console.log(v.length, (await retry(() => Promise.resolve([1])))[0].toFixed());
  try {
    await Promise.any([]);
  } catch (e) {
    if (e instanceof AggregateError) console.log(e.errors.length);
  }
})();
const cbs: Array<(err: Error | null, r?: { id: number }) => void> = [];
cbs.push((err, r) => {
  if (err) return console.error(err.message);
  console.log(r?.id.toFixed());
});
function promisify<A, R>(
  f: (a: A, cb: (e: Error | null, r?: R) => void) => void,
): (a: A) => Promise<R> {
  return (a) => new Promise((res, rej) => f(a, (e, r) => e ? rej(e) : res(r!)));
}
promisify<number, string>((n, cb) => cb(null, n.toFixed()))(1).then((s) => s.trim());
