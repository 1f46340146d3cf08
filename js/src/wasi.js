// The functions of WASI that the module imports: a clock, and a place for what the C++ library
// prints before it ends a program. There are no files; who asks for one gets an error.

const kBadDescriptor = 8;
const kNotSupported = 58;

/** Ends a call from inside of the module. */
export class Exit extends Error {
  /** @param {number} code */
  constructor(code) {
    super(`the module ended with code ${code}`);
    this.code = code;
  }
}

/**
 * @param {WebAssembly.Memory} memory
 * @param {(text: string) => void} print what is written to the standard output and to errors
 * @param {string[]} names of the functions that the module imports
 */
export function wasi(memory, print, names) {
  const view = () => new DataView(memory.buffer);
  const known = {
    /** @param {number} clock @param {bigint} _ @param {number} out */
    clock_time_get(clock, _, out) {
      const ms = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(out, BigInt(Math.round(ms * 1e6)), true);
      return 0;
    },
    /** @param {number} fd @param {number} list @param {number} count @param {number} out */
    fd_write(fd, list, count, out) {
      if (fd !== 1 && fd !== 2) return kBadDescriptor;
      let all = 0;
      let text = "";
      for (let i = 0; i < count; ++i) {
        const begin = view().getUint32(list + 8 * i, true);
        const length = view().getUint32(list + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory.buffer, begin, length).slice());
        all += length;
      }
      print(text);
      view().setUint32(out, all, true);
      return 0;
    },
    /** @param {number} _ @param {number} count @param {number} size */
    sizes(_, count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_sizes_get: (/** @type {number} */ count, /** @type {number} */ size) =>
      known.sizes(0, count, size),
    environ_get: () => 0,
    /** @param {number} out @param {number} length */
    random_get(out, length) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, out, length));
      return 0;
    },
    fd_close: () => kBadDescriptor,
    fd_seek: () => kBadDescriptor,
    fd_read: () => kBadDescriptor,
    fd_fdstat_get: () => kBadDescriptor,
    fd_prestat_get: () => kBadDescriptor,
    /** @param {number} code */
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  /** @type {Record<string, Function>} */
  const functions = {};
  for (const name of names) {
    functions[name] = /** @type {Record<string, Function>} */ (known)[name] ?? (() => kNotSupported);
  }
  return functions;
}
