// Written by us: what ES2023 and later add to the interfaces of the packaged declarations, which
// are those of ES2022. A member that is there twice does no harm, the declarations merge.
#include "plugins/monitors/typescript/library.h"

#include <algorithm>
#include <array>

namespace pawl::monitors::ts {

// From lib.es*.d.ts, made by embed_library.py when Pawl is built.
extern const char* const kPackagedLibrary[];
extern const size_t kPackagedLibraryParts;

namespace {

constexpr const char* kNewer = R"(
interface Array<T> {
  findLast<S extends T>(predicate: (value: T, index: number, array: T[]) => value is S, thisArg?: any): S | undefined;
  findLast(predicate: (value: T, index: number, array: T[]) => unknown, thisArg?: any): T | undefined;
  findLastIndex(predicate: (value: T, index: number, array: T[]) => unknown, thisArg?: any): number;
  toReversed(): T[];
  toSorted(compareFn?: (a: T, b: T) => number): T[];
  toSpliced(start: number, deleteCount?: number, ...items: T[]): T[];
  with(index: number, value: T): T[];
}
interface ReadonlyArray<T> {
  findLast(predicate: (value: T, index: number, array: readonly T[]) => unknown, thisArg?: any): T | undefined;
  findLastIndex(predicate: (value: T, index: number, array: readonly T[]) => unknown, thisArg?: any): number;
  toReversed(): T[];
  toSorted(compareFn?: (a: T, b: T) => number): T[];
  toSpliced(start: number, deleteCount?: number, ...items: T[]): T[];
  with(index: number, value: T): T[];
}
interface ArrayConstructor {
  fromAsync(items: any, mapper?: any, thisArg?: any): Promise<any>;
}
interface String {
  isWellFormed(): boolean;
  toWellFormed(): string;
}
interface ObjectConstructor {
  groupBy(items: any, keySelector: any): any;
}
interface MapConstructor {
  groupBy(items: any, keySelector: any): any;
}
interface PromiseConstructor {
  withResolvers<T>(): any;
  try(callback: any, ...args: any[]): Promise<any>;
}
interface Set<T> {
  union<U>(other: any): Set<any>;
  intersection<U>(other: any): Set<any>;
  difference<U>(other: any): Set<T>;
  symmetricDifference<U>(other: any): Set<any>;
  isSubsetOf(other: any): boolean;
  isSupersetOf(other: any): boolean;
  isDisjointFrom(other: any): boolean;
}
interface RegExp { readonly unicodeSets: boolean; }
interface RegExpConstructor { escape(text: string): string; }
interface Iterator<T> {
  map(callback: any): any; filter(callback: any): any; take(limit: number): any; drop(count: number): any;
  flatMap(callback: any): any; reduce(callback: any, initial?: any): any; toArray(): T[]; forEach(callback: any): void;
  some(callback: any): boolean; every(callback: any): boolean; find(callback: any): any;
}
interface ArrayBuffer {
  readonly maxByteLength: number; readonly resizable: boolean; readonly detached: boolean;
  resize(length?: number): void; transfer(length?: number): ArrayBuffer; transferToFixedLength(length?: number): ArrayBuffer;
}
)";

constexpr std::array<std::string_view, 66> kHost = {"AbortController",
                                                    "Blob",
                                                    "Buffer",
                                                    "Bun",
                                                    "Deno",
                                                    "Document",
                                                    "Element",
                                                    "Event",
                                                    "EventTarget",
                                                    "File",
                                                    "FormData",
                                                    "HTMLElement",
                                                    "Headers",
                                                    "Image",
                                                    "MessageChannel",
                                                    "MutationObserver",
                                                    "NodeJS",
                                                    "Request",
                                                    "Response",
                                                    "TextDecoder",
                                                    "TextEncoder",
                                                    "URL",
                                                    "URLSearchParams",
                                                    "WebSocket",
                                                    "Window",
                                                    "Worker",
                                                    "XMLHttpRequest",
                                                    "__dirname",
                                                    "__filename",
                                                    "addEventListener",
                                                    "afterAll",
                                                    "afterEach",
                                                    "alert",
                                                    "atob",
                                                    "beforeAll",
                                                    "beforeEach",
                                                    "btoa",
                                                    "clearImmediate",
                                                    "clearInterval",
                                                    "clearTimeout",
                                                    "confirm",
                                                    "console",
                                                    "crypto",
                                                    "customElements",
                                                    "describe",
                                                    "document",
                                                    "exports",
                                                    "expect",
                                                    "fetch",
                                                    "global",
                                                    "history",
                                                    "it",
                                                    "localStorage",
                                                    "location",
                                                    "module",
                                                    "navigator",
                                                    "performance",
                                                    "process",
                                                    "prompt",
                                                    "queueMicrotask",
                                                    "require",
                                                    "sessionStorage",
                                                    "setImmediate",
                                                    "setInterval",
                                                    "setTimeout",
                                                    "window"};

}  // namespace

std::string LibraryText() {
  std::string text;
  for (size_t i = 0; i < kPackagedLibraryParts; ++i) text += kPackagedLibrary[i];
  return text + kNewer;
}

bool HostName(std::string_view name) {
  return std::binary_search(kHost.begin(), kHost.end(), name);
}

const std::string_view* HostNames(size_t* count) {
  *count = kHost.size();
  return kHost.data();
}

}  // namespace pawl::monitors::ts
