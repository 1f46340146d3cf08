// The page asks a worker, so that typing stays smooth while a large schema compiles; the newest question counts.
const byId = (id) => document.getElementById(id);
const kFirst = {
  json_schema: `{
  "type": "object",
  "properties": {
    "name": { "type": "string" },
    "email": { "type": "string", "format": "email" },
    "age": { "type": "integer", "minimum": 0, "maximum": 150 }
  },
  "required": ["name", "age"],
  "additionalProperties": false
}`,
  regex: "(\\d{3}-)?\\d{4}( ext\\. \\d+)?",
  gbnf: 'root ::= sum\nsum ::= term ("+" term)*\nterm ::= [0-9]+ | "(" sum ")"\n',
  ebnf: 'root ::= "[" (root ("," root)*)? "]"\n',
  lark: 'start: "SELECT " /[a-z]+/ " FROM " /[a-z]+/ (" LIMIT " /[0-9]+/)?\n',
};

const kNeeded = "This page needs js/pawl.wasm, which scripts/build_wasm.sh makes, and models/tiny-extract/tokenizer.json. " +
  "Serve the root of the repository: python3 -m http.server";

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
let asked = 0;
let timer;

function ask() {
  worker.postMessage({ id: ++asked, kind: byId("kind").value, constraint: byId("constraint").value, text: byId("text").value });
}
function askSoon() {
  clearTimeout(timer);
  timer = setTimeout(ask, 120);
}

function show(answer) {
  byId("state").textContent = answer.state;
  byId("message").textContent = answer.message ?? "";
  byId("time").textContent = answer.maskTime === undefined ? "" :
    `(compiled in ${answer.compileTime.toFixed(1)} ms, mask in ${answer.maskTime.toFixed(2)} ms)`;
  byId("forced").textContent = answer.forced ?? "";
  byId("steps").replaceChildren(...(answer.steps ?? []).map(({ text, refused }) => {
    const span = document.createElement("span");
    span.textContent = text;
    span.className = refused ? "refused" : "";
    return span;
  }));
  byId("count").textContent = answer.count === undefined ? "" :
    `${answer.count} of ${answer.size} tokens may follow` + (answer.count > answer.next.length ? `; ${answer.next.length} of them:` : ":");
  byId("tokens").replaceChildren(...(answer.next ?? []).map(({ text, end }) => {
    const span = document.createElement("span");
    span.textContent = end ? "end of the output" : JSON.stringify(text).slice(1, -1);
    span.className = end ? "end" : "";
    if (!end) {
      span.onclick = () => {
        byId("text").value += text;
        ask();
      };
    }
    return span;
  }));
}

worker.onmessage = ({ data }) => {
  if (data.loaded !== undefined) {
    byId("loaded").textContent = data.loaded;
    byId("unread").textContent = "";
    ask();
  } else if (data.trouble !== undefined) {
    refuse(data);
  } else if (data.id === asked) {
    show(data);
  }
};
worker.onerror = (event) => refuse({ trouble: event.message || "worker.js did not start", module: false, tokenizer: false });

// `module`, `tokenizer`: whether there is one, maybe of before.
function refuse({ trouble, module, tokenizer }) {
  byId("unread").textContent = module && tokenizer ? trouble : `${trouble}\n${kNeeded}`;
  if (tokenizer) return;
  byId("loaded").textContent = "Not loaded.";
  show({ state: "error" });
}

byId("kind").onchange = () => {
  byId("constraint").value = kFirst[byId("kind").value];
  byId("text").value = "";
  ask();
};
byId("constraint").oninput = askSoon;
byId("text").oninput = askSoon;
byId("file").onchange = async () => {
  const file = byId("file").files[0];
  if (file !== undefined) worker.postMessage({ tokenizer: await file.text(), name: file.name });
};

// ?kind=regex&constraint=a*&text=aa
const given = new URLSearchParams(location.search);
if (kFirst[given.get("kind")] !== undefined) byId("kind").value = given.get("kind");
byId("constraint").value = given.get("constraint") ?? kFirst[byId("kind").value];
byId("text").value = given.get("text") ?? "";
worker.postMessage({ url: new URL("../../models/tiny-extract/tokenizer.json", import.meta.url).href });
