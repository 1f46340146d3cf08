import { parentPort } from "node:worker_threads";

import { loadPawl } from "../src/index.js";

parentPort.once("message", async ({ tokenizer, pattern }) => {
  const pawl = await loadPawl();
  const matcher = pawl.compiler(pawl.tokenizer(tokenizer, { endTokens: [0] })).regex(pattern).matcher();
  const forced = matcher.forcedText();
  matcher.acceptText("abb");
  parentPort.postMessage({ forced, complete: matcher.isAccepting });
});
