const readline = require("readline");
const crypto = require("crypto");
const rl = readline.createInterface({ input: process.stdin });
rl.on("line", (l: string) => console.log(l.length));
console.log(crypto.createHash("md5").update("x").digest("hex").length);
function md5(s: string): string | null {
  if (!s) return null;
  const h = require("crypto").createHash("md5");
  h.update(s);
  return h.digest("hex");
}
if (require.main === module) {
  console.log(
    md5("a")?.length,
    process.argv.slice(2).map((x) => x.length),
    process.env.HOME?.length,
    __dirname.length,
    Buffer.from("a").toString("hex").length,
    process.exitCode,
  );
}
module.exports = { md5 };
exports.x = 1;
console.assert(true);
global.gc?.();
setImmediate(() => {});
process.nextTick(() => {});
process.on("exit", (c) => c.toFixed());
process.hrtime.bigint().toString();
