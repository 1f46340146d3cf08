// Calls of the module: what goes into its memory before a call and comes out of it after, and how a status becomes an error.
//
// What a call needs is written into a scratch part of the module's memory, and what does not fit there is allocated; a scope
// frees both. Views of the memory are made anew at each use, since they end where it grows.
//
// Memory that runs out is a status, as in every other program. A call that traps (a stack that is too deep) leaves the module
// as it was in the middle of the call, so it is not asked again.
import { Exit, wasi } from "./wasi.js";

const kPage = 65536;
const kScratch = 16384;
const kOk = 0, kRefused = 7, kEnded = 8;

/** An error of Pawl: `code`, `text` and `place` are those of the native library; `message` is place and text. */
export class PawlError extends Error {
  constructor(code, text, place = "", cause = undefined) {
    super(place === "" ? text : `${place}: ${text}`, cause === undefined ? undefined : { cause });
    this.name = "PawlError";
    this.code = code;
    this.text = text;
    this.place = place;
  }
}

class Scope {
  constructor(calls) {
    this.calls = calls;
    this.begin = calls.next;
    this.last = [];
  }
  room(length) {
    const calls = this.calls, size = 8 * Math.ceil((length + 8) / 8);
    if (calls.next + size <= calls.scratch + kScratch) {
      const at = calls.next;
      calls.next += size;
      return at;
    }
    const at = calls.allocate(length);
    this.last.push(() => calls.plain("pawl_wasm_release", at));
    return at;
  }
  word() {
    const at = this.room(4);
    this.calls.view().setUint32(at, 0, true);
    return at;
  }
  read(at) {
    return this.calls.view().getUint32(at, true);
  }
  bytes(data) {
    const at = this.room(data.length);
    new Uint8Array(this.calls.memory.buffer, at, data.length).set(data);
    return { at, length: data.length };
  }
  tokens(list) {
    const at = this.room(4 * list.length);
    new Int32Array(this.calls.memory.buffer, at, list.length).set(list);
    return { at, length: list.length };
  }
  later(what) {
    this.last.push(what);
  }
  end() {
    this.calls.next = this.begin;
    if (this.calls.broken !== undefined) return;
    for (const what of this.last.reverse()) what();
  }
}

export class Calls {
  // What js/CMakeLists.txt has the module begin with: 4 MiB.
  static leastPages = 64;

  static async load(module, { maxMemory = 1 << 30, print = (text) => console.error(text) }) {
    const imports = WebAssembly.Module.imports(module);
    const names = imports.filter((one) => one.kind === "function").map((one) => one.name);
    const maximum = Math.min(65536, Math.floor(maxMemory / kPage));
    const least = Calls.leastPages;
    if (typeof maxMemory !== "number" || !(maximum >= least))
      throw new PawlError("bad argument", `must be at least ${least * kPage}`, "maxMemory");
    if (typeof print !== "function") throw new PawlError("bad argument", "must be a function", "print");
    let memory, instance;
    try {
      memory = new WebAssembly.Memory({ initial: least, maximum });
      instance = await WebAssembly.instantiate(module, { env: { memory }, wasi_snapshot_preview1: wasi(memory, print, names) });
    } catch (cause) {
      if (memory === undefined) throw new PawlError("limit", `no such memory can be had: ${cause.message}`, "maxMemory", cause);
      throw new PawlError("invalid", `does not fit this version of the package: ${cause.message}`, "module", cause);
    }
    return new Calls(memory, instance.exports);
  }

  constructor(memory, exports) {
    this.memory = memory;
    this.exports = exports;
    this.broken = undefined;
    this.registry = new FinalizationRegistry(({ handle, free }) => this.freeHandle(free, handle));
    exports._initialize();
    this.scratch = exports.pawl_wasm_allocate(kScratch);
    this.next = this.scratch;
    this.masks = 0;
    this.maskWords = 0;
  }

  plain(name, ...values) {
    if (this.broken !== undefined) throw this.ended();
    try {
      return this.exports[name](...values);
    } catch (cause) {
      this.broken = cause;
      throw this.ended();
    }
  }
  ended() {
    const cause = this.broken;
    if (cause instanceof RangeError)
      return new PawlError("limit", "the stack is too small for this call; load the module again", "", cause);
    const why = cause instanceof Exit || cause instanceof Error ? cause.message : String(cause);
    return new PawlError("internal", `the module has ended (${why}); load it again`, "", cause);
  }

  // A status without an error object.
  fail(status, place) {
    const code = this.zeroEnded(this.plain("pawl_status_name", status));
    const text = status === 4 ? "memory ran out, or a limit was reached" : "out of range";
    return new PawlError(code, text, place);
  }
  status(name, values, place) {
    const status = this.plain(name, ...values);
    if (status !== kOk) throw this.fail(status, place);
  }
  accepted(name, values, place) {
    const status = this.plain(name, ...values);
    if (status === kOk || status === kRefused) return status === kOk;
    throw this.fail(status, place);
  }
  filled(name, values) {
    const status = this.plain(name, ...values);
    if (status === kOk || status === kEnded) return status === kOk;
    throw this.fail(status, "mask");
  }
  // A function whose last argument is for an error.
  checked(name, values) {
    this.scope((s) => {
      const error = s.word();
      const status = this.plain(name, ...values, error);
      if (status === kOk) return;
      const at = s.read(error);
      if (at === 0) throw this.fail(status, "");
      const text = this.zeroEnded(this.plain("pawl_error_message", at));
      const place = this.zeroEnded(this.plain("pawl_error_place", at));
      this.plain("pawl_error_free", at);
      throw new PawlError(this.zeroEnded(this.plain("pawl_status_name", status)), text, place);
    });
  }
  // Tokens that a function writes: `guess` of them, or as many as it says.
  list(name, values, guess) {
    for (let capacity = guess; ; ) {
      const [tokens, count] = this.scope((s) => {
        const at = s.room(4 * capacity), out = s.word();
        this.status(name, [...values, at, capacity, out], "tokens");
        const all = s.read(out);
        return [new Int32Array(this.memory.buffer, at, Math.min(all, capacity)).slice(), all];
      });
      if (count <= capacity) return tokens;
      capacity = count;
    }
  }

  scope(body) {
    const scope = new Scope(this);
    try {
      return body(scope);
    } finally {
      scope.end();
    }
  }
  allocate(length) {
    const at = length < 2 ** 32 ? this.plain("pawl_wasm_allocate", length) : 0;
    if (at === 0) throw new PawlError("limit", "memory ran out");
    return at;
  }
  view() {
    return new DataView(this.memory.buffer);
  }
  copy(at, length) {
    return new Uint8Array(this.memory.buffer, at, length).slice();
  }
  // What the module has allocated for the caller.
  take(at, count, Type) {
    if (count === 0) return new Type(0);
    const copy = new Type(this.memory.buffer, at, count).slice();
    this.plain("pawl_wasm_release", at);
    return copy;
  }
  text(at, length) {
    return new TextDecoder().decode(this.copy(at, length));
  }
  zeroEnded(at) {
    const bytes = new Uint8Array(this.memory.buffer);
    return this.text(at, bytes.indexOf(0, at) - at);
  }
  // A row for masks, which all matchers use in turn.
  row(words) {
    if (words > this.maskWords) {
      const row = this.allocate(4 * words);
      if (this.masks !== 0) this.plain("pawl_wasm_release", this.masks);
      this.masks = row;
      this.maskWords = words;
    }
    return this.masks;
  }
  words(at, count) {
    return new Uint32Array(this.memory.buffer, at, count);
  }

  watch(object, handle, free) {
    this.registry.register(object, { handle, free }, object);
  }
  unwatch(object) {
    this.registry.unregister(object);
  }
  freeHandle(free, handle) {
    if (this.broken === undefined) this.plain(free, handle);
  }
}
