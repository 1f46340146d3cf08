async function* ticks(n: number): AsyncGenerator<number, string, undefined> {
  for (let i = 0; i < n; i++) {
    await new Promise<void>((r) => setTimeout(r, 1));
    yield i;
  }
  return "end";
}
async function main(): Promise<void> {
  for await (const t of ticks(3)) console.log(t.toFixed());
  const it = ticks(1);
  const r = await it.next();
  if (!r.done) console.log(r.value.toFixed());
  else console.log(r.value.length);
  const [a, b] = await Promise.all([Promise.resolve(1), Promise.resolve("s")]);
  console.log(a.toFixed(), b.length);
  const s = await Promise.allSettled([Promise.reject(new Error("x")), 3]);
  for (const q of s) {
    if (q.status === "rejected") console.log(String(q.reason));
    else console.log(q.value);
  }
  const v = await Promise.race([ticks(1).next(), Promise.any([Promise.resolve(null)])]);
  console.log(v?.done);
  await main2().then((x) => x.toUpperCase()).catch((e: unknown) => {
    if (e instanceof Error) console.log(e.message.length, e.stack?.length, e.cause);
    return "";
  }).finally(() => {});
}
const main2 = async () => {
  try {
    return "a";
  } catch {
    return "b";
  } finally {
    console.log(1);
  }
};
void main();
(async () => {
  const d = await main2();
  console.log(d.length);
})();
class Q implements AsyncIterable<string> {
  async *[Symbol.asyncIterator]() {
    yield "q";
    yield* ["a", "b"];
  }
}
(async function () {
  for await (const x of new Q()) console.log(x.length);
})().catch(console.error);
