// Types of Pawl for JavaScript; docs/javascript.md explains them.

/** What `PawlError.code` says. */
export type ErrorCode =
  | "invalid" | "unsupported" | "unsatisfiable" | "limit" | "io" | "internal" | "refused" | "ended" | "bad argument";

/** An error with the text and the place of the native library. `message` is "place: text". */
export class PawlError extends Error {
  constructor(code: ErrorCode, text: string, place?: string, cause?: unknown);
  readonly code: ErrorCode;
  readonly text: string;
  /** A JSON Pointer, "line:column", "byte 17", the name of an argument or an option, an address, or "". */
  readonly place: string;
}

/** Frees the memory of the object now. Without it the garbage collector does, some time after the last use. */
interface Freed {
  free(): void;
}

export type Text = string | Uint8Array;
export type Tokens = ArrayLike<number>;

export class Vocabulary implements Freed {
  private constructor();
  /** The number of token ids. */
  readonly size: number;
  /** The number of words of a mask: ceil(size / 32). */
  readonly maskWords: number;
  readonly endTokens: Int32Array;
  tokenBytes(token: number): Uint8Array;
  free(): void;
}

export class Tokenizer extends Vocabulary {
  /** `parseSpecial`: the text of a special token becomes that token. */
  encode(text: Text, options?: { parseSpecial?: boolean }): Int32Array;
  decode(tokens: Tokens, options?: { keepSpecial?: boolean }): string;
  decodeBytes(tokens: Tokens, options?: { keepSpecial?: boolean }): Uint8Array;
}

export interface CompilerOptions {
  /** Grammars to keep for the same text with the same options. Default: 0. */
  cachedGrammars?: number;
  /** Bytes for the states and masks of all grammars. Default: 256 MiB. */
  memoryBudget?: number;
  /** Steps to prepare masks while a grammar is compiled. */
  prepareSteps?: number;
}

/** docs/json_schema.md explains the options; names with underscores are taken too. */
export interface JsonSchemaOptions {
  order?: "schema" | "any";
  whitespace?: "compact" | "bounded" | "any";
  maxWhitespace?: number;
  itemSeparator?: string;
  keySeparator?: string;
  defaultDialect?: string;
  forceDialect?: string;
  assertFormats?: boolean;
  canonicalSpelling?: boolean;
  maxDigits?: number;
  maxDecimals?: number;
  maxString?: number;
  excludedTexts?: string;
  ascii?: boolean;
  additionalProperties?: boolean;
  allowExponents?: boolean;
  profile?: "full" | "strict";
  listAnnotations?: boolean;
  maxDocuments?: number;
  maxSchemaBytes?: number;
  maxDepth?: number;
  stepFuel?: number;
  keys?: "required" | "all";
  nulls?: "keep" | "drop";
  openIfUnsatisfiable?: boolean;
  source?: string;
  verbatim?: "none" | "strings" | "all";
  bindSource?: boolean;
}

export type Kind =
  | "json_schema" | "regex" | "choice" | "ebnf" | "gbnf" | "lark" | "lark_xgrammar" | "llguidance" | "substring" | "structural_tag";

export class Compiler implements Freed {
  private constructor();
  readonly vocabulary: Vocabulary;
  readonly memoryBytes: number;
  /** `schema`: its text, or its value. */
  jsonSchema(schema: string | object | boolean, options?: JsonSchemaOptions): Grammar;
  regex(pattern: Text): Grammar;
  choice(choices: string[]): Grammar;
  ebnf(text: Text, options?: JsonSchemaOptions): Grammar;
  gbnf(text: Text, options?: JsonSchemaOptions): Grammar;
  lark(text: Text, options?: JsonSchemaOptions): Grammar;
  substring(text: Text): Grammar;
  structuralTag(tag: string | object, options?: JsonSchemaOptions): Grammar;
  compile(kind: Kind, text: Text, options?: JsonSchemaOptions): Grammar;
  /** What `Grammar.serialize` made, here or in another program, for the same vocabulary. */
  deserialize(bytes: Uint8Array): Grammar;
  free(): void;
}

export interface MatcherOptions {
  /** The tokens that end the output, instead of those of the vocabulary. */
  endTokens?: Tokens;
  terminateWithoutEndToken?: boolean;
}

export class Grammar implements Freed {
  private constructor();
  readonly vocabulary: Vocabulary;
  /** What the compiler says that is no error. */
  readonly notes: string[];
  matcher(options?: MatcherOptions): Matcher;
  serialize(): Uint8Array;
  free(): void;
}

/** The position of one output in a grammar. */
export class Matcher implements Freed {
  private constructor();
  readonly grammar: Grammar;
  /** Steps that can be taken back. */
  readonly steps: number;
  /** The output has ended: no token may follow. */
  readonly isTerminated: boolean;
  /** The text so far is complete. */
  readonly isAccepting: boolean;
  /** false: the token is refused, and nothing has changed. */
  accept(token: number): boolean;
  /** Accepts all of the text as one step. */
  acceptText(text: Text): boolean;
  rollback(steps?: number): void;
  reset(): void;
  clone(): Matcher;
  /** Bit i % 32 of word i / 32 is 1 where token i may come next. */
  mask(): Uint32Array;
  /** The same into `row`. false: no token may follow, and the row is 0. */
  fillMask(row: Uint32Array): boolean;
  /** How many of the tokens would be accepted in turn. */
  validateTokens(tokens: Tokens): number;
  /** The text with which every continuation begins ("jump forward"); "" where there is a choice. */
  forcedText(limit?: number): string;
  forcedBytes(limit?: number): Uint8Array;
  /** Tokens that spell it. */
  forcedTokens(): Int32Array;
  /** Tokens of a short completion of the output. */
  completionTokens(): Int32Array;
  free(): void;
}

export class Pawl {
  private constructor();
  readonly version: string;
  /** Of the module's memory, which grows and does not shrink. */
  readonly memoryBytes: number;
  /** `json`: the text of a tokenizer.json. `endTokens`: the ids or the names of the tokens that end an output. */
  tokenizer(json: Text | object, options?: { endTokens?: (number | string)[]; paddedSize?: number }): Tokenizer;
  vocabulary(parts: { tokens: Text[]; special?: Tokens; endTokens?: Tokens }): Vocabulary;
  compiler(vocabulary: Vocabulary, options?: CompilerOptions): Compiler;
}

export interface LoadOptions {
  /** Where pawl.wasm is (relative: to the page, in a worker to its script, in Node to the current folder), or what is in it.
   * Default: in this package. */
  module?: string | URL | WebAssembly.Module | BufferSource | Response | Promise<Response>;
  /** Bytes of memory beyond which a call ends with the code "limit". Default: 1 GiB. */
  maxMemory?: number;
  /** Gets what the module prints before it ends. Default: console.error. */
  print?: (text: string) => void;
}

export function loadPawl(options?: LoadOptions): Promise<Pawl>;
