// Pawl from Node, through an addon on the C library (pawl_addon.c): a mask, a record, a stream that is stopped, an error.
//   node pawl.js ./pawl_addon.node models/tiny-extract schemas/examples/invoice.json "$(cat examples/invoice.txt)"
const fs = require("fs");
const path = require("path");

const [addon, model, schemaFile, text] = process.argv.slice(2);
const pawl = require(path.resolve(addon));

const tokens = ["r", "re", "d", "g", "reen", "green", "blue", "<end>"];
const matcher = pawl.matcher(tokens, 7, "choice", '["red", "green"]');
for (const token of [1, 2, 7]) {
  const row = new Uint32Array(1);
  pawl.fillMask(matcher, row);
  console.log(`allowed: ${row[0].toString(16).padStart(2, "0")}, taken: ${tokens[token]}`);
  pawl.accept(matcher, token);
}

const engine = pawl.load(model);
const schema = fs.readFileSync(schemaFile, "utf8");
console.log(pawl.extract(engine, schema, text).text);
let parts = 0;
const { cancelled } = pawl.extract(engine, schema, text, () => ++parts < 2);
console.log(`parts: ${parts}, cancelled: ${cancelled}`);
try {
  pawl.matcher(tokens, 7, "json_schema", '{"type": "strin"}');
} catch (error) {
  console.log(`error: ${error.message}`);
}
