import { loadEngine } from "../../js/src/engine.js";

let engine, stopping;

async function load(folder) {
  const begin = performance.now();
  engine = await loadEngine({ files: folder, name: "tiny-extract" });
  postMessage({ loaded: { info: engine.info, seconds: (performance.now() - begin) / 1000, memory: engine.memoryBytes } });
}

async function write({ schema, text }) {
  stopping = new AbortController();
  const begin = performance.now();
  const output = await engine.extract({ schema, text, signal: stopping.signal, onToken: (piece) => postMessage({ piece }) });
  const { stop, stats } = output;
  postMessage({ done: { text: output.text, stop, stats, seconds: (performance.now() - begin) / 1000 } });
}

onmessage = async ({ data }) => {
  try {
    if (data.folder !== undefined) await load(data.folder);
    else if (data.stop) stopping?.abort();
    else await write(data);
  } catch (error) {
    postMessage({ trouble: error.message, ended: error.code === "internal" });
  }
};
