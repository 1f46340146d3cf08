import * as fs from "fs";
import path, { join, type ParsedPath } from "path";
import type { Readable } from "stream";
import { readFile as rf } from "node:fs/promises";
import { EventEmitter } from "events";
export const here = join("a", "b").length;
export default class Main extends EventEmitter {
  start(): void {
    this.emit("x");
    this.on("y", () => {});
    fs.existsSync("a");
  }
  read(r: Readable) {
    r.pipe(process.stdout);
    return r.readable;
  }
}
export type { ParsedPath };
export interface Opt {
  a: string;
}
export function f(o: Opt): ParsedPath {
  return path.parse(o.a);
}
export async function g() {
  const t = await rf("a", "utf8");
  return t.split("\n").length;
}
const lazy = () => import("os").then((os) => os.cpus().length);
export { lazy as default2 };
console.log(f({ a: "x" }).base.length);
export * as util from "util";
declare module "fs" {
  interface Extra {
    z: 1;
  }
}
declare global {
  interface Window {
    mine: string;
  }
  var GLOB: number;
}
export abstract class Abs {}
export enum E {
  A,
}
export namespace N {
  export const z = 1;
}
const m = new Main();
m.start();
m.removeAllListeners().once("z", () => {});
console.log(E.A.toFixed(), N.z);
