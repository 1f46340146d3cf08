// The second half of the page: a model in a worker of its own writes a record, token by token.
//
// ?record=5 loads the model and writes the first record five times, which is how its time is measured.
const byId = (id) => document.getElementById(id);
const kText = "Ann Lee lives in Porto. Phone: 020 7946 0018.";
const kSchema = `{
  "type": "object",
  "properties": {
    "name": { "type": "string" },
    "phone": { "type": ["string", "null"] },
    "city": { "enum": ["Leeds", "Porto", null] }
  },
  "required": ["name", "phone", "city"],
  "additionalProperties": false
}`;
const folder = new URL("../../models/tiny-extract/", import.meta.url).href;

const kNeeded = "This page needs js/pawl-engine.wasm, which scripts/build_wasm.sh --engine makes, and the folder " +
  "models/tiny-extract. Serve the root of the repository: python3 -m http.server";

let worker;
let runs = Number(new URLSearchParams(location.search).get("record") ?? 0);
const seconds = [];

function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function load() {
  byId("load").disabled = true;
  byId("model").textContent = "Loading…";
  byId("trouble").textContent = "";
  byId("extraction").hidden = true;
  worker = new Worker(new URL("record_worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = (event) => hear({ trouble: event.message || "record_worker.js did not start", ended: true });
  worker.postMessage({ folder });
}

function write() {
  byId("record").textContent = byId("times").textContent = byId("trouble").textContent = "";
  byId("write").disabled = true;
  byId("stop").disabled = false;
  worker.postMessage({ schema: byId("schema").value, text: byId("source").value });
}

function ready() {
  byId("write").disabled = false;
  byId("stop").disabled = true;
}

function hear(data) {
  if (data.loaded !== undefined) {
    const { info, seconds: time, memory } = data.loaded;
    byId("model").textContent = `${(info.parameters / 1e6).toFixed(1)} million weights (${info.weights}), loaded in ` +
      `${time.toFixed(2)} s, ${(memory / (1 << 20)).toFixed(0)} MiB of memory.`;
    byId("extraction").hidden = false;
    ready();
    if (runs > 0) write();
  } else if (data.piece !== undefined) {
    byId("record").textContent += data.piece;
  } else if (data.done !== undefined) {
    const { text, stop, stats, seconds: time } = data.done;
    ready();
    seconds.push(time);
    byId("record").textContent = text;
    byId("times").textContent = `${stop === "cancelled" ? "stopped" : "done"}: ${stats.promptTokens} tokens read and ` +
      `${stats.outputTokens} written in ${time.toFixed(2)} s`;
    if (runs > 0 && --runs > 0) {
      write();
    } else if (seconds.length > 1) {
      byId("times").textContent += `; median of ${seconds.length}: ${median(seconds).toFixed(2)} s`;
      byId("times").dataset.seconds = JSON.stringify(seconds);
    }
  } else if (byId("extraction").hidden) {
    worker.terminate();
    byId("load").disabled = false;
    byId("model").textContent = "Not loaded.";
    byId("trouble").textContent = `${data.trouble}\n${kNeeded}`;
  } else {
    ready();
    byId("trouble").textContent = data.trouble;
    if (!data.ended) return;
    // The module cannot be used any more.
    worker.terminate();
    byId("load").disabled = false;
    byId("write").disabled = true;
    byId("model").textContent = "The model has ended; load it again.";
  }
}

byId("source").value = kText;
byId("schema").value = kSchema;
byId("load").onclick = load;
byId("write").onclick = write;
byId("stop").onclick = () => worker.postMessage({ stop: true });
if (runs > 0) load();
