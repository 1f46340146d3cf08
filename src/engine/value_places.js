// Text with the places of values in it: of the report, and of the playground.

// Places that are counted in code points, as places in a string of JavaScript.
const unitsOf = (text, places) => {
  const units = new Map();
  let at = 0, unit = 0;
  for (const place of [...new Set(places)].sort((a, b) => a - b)) {
    for (; at < place && unit < text.length; ++at) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
    units.set(place, unit);
  }
  return units;
};

// Fills `box` with the text, and marks in it. `spans`: {begin, end, value}, which may overlap. Each mark has the values
// that it is a part of, the shortest first, 20 at most. The answer has the marks of each value.
const markText = (box, text, spans, classOf) => {
  box.textContent = "";
  const units = unitsOf(text, spans.flatMap((span) => [span.begin, span.end]));
  const opens = new Map(), closes = new Map(), cuts = new Set([0, text.length]), marks = [], first = new Map(), last = new Map();
  for (const span of spans) {
    const begin = units.get(span.begin), end = units.get(span.end);
    if (!(begin < end)) continue;
    for (const [at, list] of [[begin, opens], [end, closes]]) {
      cuts.add(at);
      if (!list.has(at)) list.set(at, []);
      list.get(at).push({ value: span.value, length: end - begin });
    }
  }
  const order = [...cuts].sort((a, b) => a - b);
  let active = [];
  for (let i = 0; i < order.length; ++i) {
    const ended = closes.get(order[i]);
    if (ended) {
      const gone = new Set(ended.map((one) => one.value));
      for (const value of gone) last.set(value, marks.length);
      active = active.filter((one) => !gone.has(one.value));
    }
    const begun = opens.get(order[i]);
    if (begun) {
      for (const one of begun) first.set(one.value, marks.length);
      active = active.concat(begun).sort((a, b) => a.length - b.length);
    }
    if (i + 1 === order.length) break;
    const piece = text.slice(order[i], order[i + 1]);
    if (active.length === 0) { box.append(piece); continue; }
    const mark = document.createElement("mark");
    mark.textContent = piece;
    mark.values = active.slice(0, 20).map((one) => one.value);
    mark.className = classOf(mark.values[0]);
    marks.push(mark);
    box.append(mark);
  }
  return (value) => first.has(value) ? marks.slice(first.get(value), last.get(value)) : [];
};

// How sure a value is, by both figures: the model hesitated among what was allowed, or wanted something else.
const sureness = (probability, surprise) => {
  if (typeof probability !== "number") return "unknown";
  const off = surprise || 0;
  if (probability < 0.5 || off >= 3) return "low";
  return probability < 0.9 || off >= 1 ? "mid" : "high";
};

const percent = (probability) => typeof probability !== "number" ? "–" : (100 * probability).toFixed(probability < 0.1 ? 2 : 1) + " %";

// The values that a choice could have, each with a bar.
const alternativesTable = (list) => {
  const table = document.createElement("table");
  table.className = "alternatives";
  for (const [value, probability] of list) {
    const row = table.insertRow();
    row.insertCell().textContent = value;
    const meter = document.createElement("meter");
    meter.max = 1; meter.value = probability;
    row.insertCell().append(meter);
    row.insertCell().textContent = percent(probability);
  }
  return table;
};
