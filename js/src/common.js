// What both modules' objects have in common: options, handles, and where a module comes from.
import { PawlError } from "./module.js";

export const encoder = new TextEncoder();

export const bytesOf = (text) => (typeof text === "string" ? encoder.encode(text) : text);
// additionalProperties -> additional_properties
export const snake = (name) => name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());

export function badArgument(place, text) {
  return new PawlError("bad argument", text, place);
}

export function onlyKnown(options, names) {
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw badArgument(name, `is no option; there are: ${names.join(", ")}`);
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

// The module that `source` names or holds; undefined: `own`, beside this file.
export async function compiled(source, own) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (source === undefined || typeof source === "string" || source instanceof URL) {
    const url = new URL(source ?? own, import.meta.url);
    if (url.protocol === "file:") {
      const { readFile } = await import("node:fs/promises");
      const bytes = await readFile(url).catch((cause) => {
        throw new PawlError("io", `cannot load the module: ${cause.message}`, url.href, cause);
      });
      return WebAssembly.compile(bytes);
    }
    source = await fetch(url);
  }
  if (!source.ok) throw new PawlError("io", `cannot load the module: ${source.status} ${source.statusText}`, source.url);
  return WebAssembly.compile(await source.arrayBuffer());
}
