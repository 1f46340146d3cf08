// What both modules' objects have in common: options, handles, and where a module comes from.
import { PawlError } from "./module.js";

export const encoder = new TextEncoder();

// additionalProperties -> additional_properties, and back
export const snake = (name) => name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());
export const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

export function badArgument(place, text, cause = undefined) {
  return new PawlError("bad argument", text, place, cause);
}

export function onlyKnown(options, names) {
  if (typeof options !== "object" || options === null) throw badArgument("options", "must be an object");
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw badArgument(name, `is no option; there are: ${names.join(", ")}`);
  }
}

// UTF-8 has no half of a surrogate pair; TextEncoder would write another character in its place.
export function wellFormed(place, text) {
  const at = text.search(/\p{Surrogate}/u);
  if (at >= 0) throw badArgument(place, `has half of a surrogate pair at index ${at}`);
  return text;
}
export function bytesOf(place, text) {
  if (typeof text === "string") return encoder.encode(wellFormed(place, text));
  if (text instanceof Uint8Array) return text;
  throw badArgument(place, "must be a string or a Uint8Array");
}
// What JSON.stringify would write as {} or null, or leave out: a Promise that was not awaited would be a schema of everything.
function checkJson(place, key, value) {
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  const fits = typeof value === "object" ? ["Object", "Array", "Null", "String", "Number", "Boolean"].includes(kind)
    : typeof value === "number" ? Number.isFinite(value) : typeof value !== "function" && typeof value !== "symbol";
  if (fits) return;
  const what = typeof value === "number" ? String(value) : typeof value === "symbol" ? "a symbol" : `a ${kind}`;
  throw badArgument(place, `${key === "" ? "" : `has at ${JSON.stringify(key)} what `}is no JSON: ${what}`);
}
// The text of a value as JSON.
export function jsonText(place, value) {
  let text;
  try {
    text = JSON.stringify(value, (key, one) => {
      wellFormed(place, key);
      checkJson(place, key, one);
      return typeof one === "string" ? wellFormed(place, one) : one;
    });
  } catch (cause) {
    if (cause instanceof PawlError) throw cause;
    throw badArgument(place, `cannot be written as JSON: ${String(cause.message).split("\n")[0]}`, cause);
  }
  if (text === undefined) throw badArgument(place, value === undefined ? "is missing" : "cannot be written as JSON");
  return text;
}
export function wholeNumber(place, value, least = -(2 ** 31), most = 2 ** 31 - 1) {
  if (!Number.isInteger(value) || value < least || value > most)
    throw badArgument(place, `must be a whole number from ${least} to ${most}`);
  return value;
}
// Tokens as the module takes them.
export function tokenList(place, list) {
  if (list instanceof Int32Array || list instanceof Uint32Array) return list;
  if (typeof list !== "object" || !Number.isInteger(list?.length) || list.length < 0)
    throw badArgument(place, "must be a list of tokens");
  for (let i = 0; i < list.length; ++i) wholeNumber(`${place}[${i}]`, list[i]);
  return list;
}

// An error of the native library, whose place is max_tokens where the caller has written maxTokens.
export function spelled(error, names) {
  if (!(error instanceof PawlError)) return error;
  const native = /^[a-z]+(_[a-z]+)+/.exec(error.place)?.[0];
  const name = native === undefined ? undefined : names.find((one) => snake(one) === native);
  if (name === undefined || name === native) return error;
  return new PawlError(error.code, error.text, name + error.place.slice(native.length), error.cause);
}
export function withNames(names, body) {
  try {
    return body();
  } catch (error) {
    throw spelled(error, names);
  }
}

// What lives in the module's memory. `free` is the name of the function that frees it.
export class Handle {
  constructor(calls, handle, free) {
    this._calls = calls;
    this._at = handle;
    this._free = free;
    calls.watch(this, handle, free);
  }
  get _handle() {
    if (this._at === 0) throw badArgument(this.constructor.name, "was freed");
    return this._at;
  }
  free() {
    if (this._at === 0) return;
    this._calls.unwatch(this);
    this._calls.freeHandle(this._free, this._at);
    this._at = 0;
  }
}

// What went wrong, with the reason that Node gives apart.
function reasonOf(cause) {
  return cause?.cause?.message ? `${cause.message} (${cause.cause.message})` : cause?.message ?? String(cause);
}

export function ioError(place, what, cause) {
  return new PawlError("io", `${what}: ${reasonOf(cause)}`, place, cause);
}

// An address that the caller gave: in a page relative to the page, in a worker to the worker's script, in Node to the current
// folder.
export async function addressOf(place, given) {
  let base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (base === undefined && typeof process === "object") base = (await import("node:url")).pathToFileURL(process.cwd() + "/");
  try {
    return new URL(given, base);
  } catch (cause) {
    throw badArgument(place, `${JSON.stringify(String(given))} is no address`, cause);
  }
}

// The bytes at an address; undefined: there is no such file.
export async function bytesAt(url, what) {
  if (url.protocol === "file:" && typeof process === "object") {
    const { readFile } = await import("node:fs/promises");
    try {
      return await readFile(url);
    } catch (cause) {
      if (cause.code === "ENOENT" || cause.code === "ENOTDIR") return undefined;
      throw ioError(url.href, what, cause);
    }
  }
  try {
    const reply = await fetch(url);
    if (reply.status === 404) return undefined;
    if (!reply.ok) throw new PawlError("io", `${what}: ${reply.status} ${reply.statusText}`.trimEnd(), url.href);
    return new Uint8Array(await reply.arrayBuffer());
  } catch (cause) {
    throw cause instanceof PawlError ? cause : ioError(url.href, what, cause);
  }
}

// The bytes or the module that `source` names or holds, and where it is from.
async function moduleSource(source, own, expected) {
  const what = `cannot load the module ${expected}`;
  if (source === undefined || typeof source === "string" || source instanceof URL) {
    const url = source === undefined ? new URL(own, import.meta.url) : await addressOf("module", source);
    const bytes = await bytesAt(url, what);
    if (bytes === undefined) throw new PawlError("io", `${what}: there is no such file`, url.href);
    return [bytes, url.href];
  }
  if (source instanceof WebAssembly.Module) return [source, "module"];
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return [source, "module"];
  if (typeof source?.arrayBuffer !== "function")
    throw badArgument("module", "must be an address, bytes, a Response or a WebAssembly.Module");
  const place = source.url || "module";
  if (source.ok === false) throw new PawlError("io", `${what}: ${source.status} ${source.statusText}`.trimEnd(), place);
  try {
    return [await source.arrayBuffer(), place];
  } catch (cause) {
    throw ioError(place, what, cause);
  }
}

// A promise that is awaited later, or never where another error comes first.
export function awaitedLater(value) {
  if (typeof value?.then === "function") value.then(undefined, () => {});
}

const kModules = { "pawl.wasm": "pawl_compile", "pawl-engine.wasm": "pawl_wasm_engine_load" };

// The module that `source` names or holds; undefined: the one of this package. `expected` is its name.
export async function compiled(source, expected) {
  let given;
  try {
    given = await source;
  } catch (cause) {
    throw cause instanceof PawlError ? cause : ioError("module", `cannot load the module ${expected}`, cause);
  }
  const [code, place] = await moduleSource(given, `../${expected}`, expected);
  let module = code;
  if (!(code instanceof WebAssembly.Module)) {
    try {
      module = await WebAssembly.compile(code);
    } catch (cause) {
      const why = code.byteLength === 0 ? "is empty" : `is no WebAssembly module (${reasonOf(cause)})`;
      throw new PawlError("invalid", `${why}; ${expected} was expected`, place, cause);
    }
  }
  const exported = new Set(WebAssembly.Module.exports(module).map((one) => one.name));
  if (!exported.has(kModules[expected])) {
    const other = Object.keys(kModules).find((name) => exported.has(kModules[name]));
    throw new PawlError("invalid", `is ${other ?? "a module of another library"}; ${expected} was expected`, place);
  }
  return module;
}
