import { parentPort } from "node:worker_threads";

import { loadEngine } from "../src/engine.js";

parentPort.once("message", async ({ folder, request }) => {
  const engine = await loadEngine({ files: folder });
  parentPort.postMessage((await engine.extract(request)).text);
});
