// Types of the module with models; docs/javascript.md explains them.
import { PawlError } from "./index.js";

export { PawlError };

/** The bytes of a file, its text, or what has them. */
export type FileBytes = Uint8Array | ArrayBuffer | string | Blob | Response | Promise<Uint8Array | ArrayBuffer | string | Blob | Response>;

export interface EngineOptions {
  /** Where pawl-engine.wasm is, or what is in it. Default: in this package. */
  module?: string | URL | WebAssembly.Module | BufferSource | Response | Promise<Response>;
  /** The address of a model's folder, from which its files are fetched (relative: to the page, in a worker to its script, in
   * Node to the current folder); or the files by name ("config.json", "tokenizer.json",
   * "model.safetensors", ...; or one GGUF file). */
  files: string | URL | Record<string, FileBytes>;
  /** Bytes of memory beyond which a call ends with the code "limit". Default: 1 GiB. */
  maxMemory?: number;
  /** Gets what the module prints before it ends. Default: console.error. */
  print?: (text: string) => void;
  /** What places of errors call the model's folder. Default: "model". */
  name?: string;
  /** Memory for keys and values. Default: 64 MiB. */
  kvBytes?: number;
  /** Outputs that share calls of the model. Default: 1. */
  maxBatch?: number;
  /** Of the weights in memory. Default: "stored". The library's fp8 needs a CUDA device. */
  dtype?: "stored" | "fp32" | "bf16" | "fp16" | "int8" | "int4";
  chatTemplate?: string;
}

export interface ExtractOptions {
  /** The JSON Schema: its text, or its value. */
  schema: string | object | boolean;
  text: string;
  instruction?: string;
  examples?: { text: string; record: unknown }[];
  schemaView?: "auto" | "template" | "keys" | "schema" | "none";
  preferText?: number;
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  seed?: number;
  /** Gets the output as it comes. Keys whose values the record leaves out are in it. */
  onToken?: (text: string, tokens: Int32Array) => void;
  /** Ends the output: `stop` is "cancelled", and `text` what there is. */
  signal?: AbortSignal;
}

export interface Extraction {
  text: string;
  /** The record; undefined where the output has not come to its end. */
  value: unknown;
  stop: "end" | "closed" | "length" | "cancelled" | "stop" | "refused";
  tokens: Int32Array;
  notes: string[];
  reasoning: string;
  stats: {
    promptTokens: number;
    outputTokens: number;
    sampledTokens: number;
    forwardCalls: number;
    prefillSeconds: number;
    decodeSeconds: number;
    constraintSeconds: number;
    sampleSeconds: number;
  };
}

/** A model. It computes on the thread that asks: use it in a worker. */
export class Engine {
  private constructor();
  readonly info: {
    architecture: string;
    weights: string;
    kernels: string;
    parameters: number;
    weightBytes: number;
    contextLength: number;
  };
  /** Of the module's memory, which grows and does not shrink. */
  readonly memoryBytes: number;
  /** Rejects with a PawlError whose place is "schema: #/properties/a", "text", or the name of an option ("maxTokens"). */
  extract(options: ExtractOptions): Promise<Extraction>;
  /** Frees the model; outputs that have not ended are rejected. */
  free(): void;
}

export function loadEngine(options: EngineOptions): Promise<Engine>;
