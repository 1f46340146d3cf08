// Written by us: what ES2023 and later add to the interfaces of the packaged declarations, which
// are those of ES2022. A member that is there twice does no harm, the declarations merge.
#include <algorithm>

#include "plugins/monitors/typescript/check.h"

namespace pawl::monitors::ts {

// From lib.es*.d.ts, made by embed_library.py when Pawl is built.
extern const char* const kPackagedLibrary[];
extern const size_t kPackagedLibraryParts;
// The names of host_names.txt, sorted.
extern const std::string_view kHostNames[];
extern const size_t kHostNameCount;

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
interface Int8Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Int8Array; toSorted(compareFn?: any): Int8Array; with(index: number, value: number): Int8Array; }
interface Uint8Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Uint8Array; toSorted(compareFn?: any): Uint8Array; with(index: number, value: number): Uint8Array; }
interface Uint8ClampedArray { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Uint8ClampedArray; toSorted(compareFn?: any): Uint8ClampedArray; with(index: number, value: number): Uint8ClampedArray; }
interface Int16Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Int16Array; toSorted(compareFn?: any): Int16Array; with(index: number, value: number): Int16Array; }
interface Uint16Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Uint16Array; toSorted(compareFn?: any): Uint16Array; with(index: number, value: number): Uint16Array; }
interface Int32Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Int32Array; toSorted(compareFn?: any): Int32Array; with(index: number, value: number): Int32Array; }
interface Uint32Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Uint32Array; toSorted(compareFn?: any): Uint32Array; with(index: number, value: number): Uint32Array; }
interface Float32Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Float32Array; toSorted(compareFn?: any): Float32Array; with(index: number, value: number): Float32Array; }
interface Float64Array { findLast(predicate: any, thisArg?: any): number | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): Float64Array; toSorted(compareFn?: any): Float64Array; with(index: number, value: number): Float64Array; }
interface BigInt64Array { findLast(predicate: any, thisArg?: any): bigint | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): BigInt64Array; toSorted(compareFn?: any): BigInt64Array; with(index: number, value: bigint): BigInt64Array; }
interface BigUint64Array { findLast(predicate: any, thisArg?: any): bigint | undefined; findLastIndex(predicate: any, thisArg?: any): number; toReversed(): BigUint64Array; toSorted(compareFn?: any): BigUint64Array; with(index: number, value: bigint): BigUint64Array; }
interface ErrorConstructor {
  captureStackTrace(target: object, from?: any): void;
  prepareStackTrace?: any;
  stackTraceLimit: number;
}
interface IteratorConstructor { from(items: any): any; }
declare var Iterator: any;
declare var SuppressedError: any; declare var DisposableStack: any; declare var AsyncDisposableStack: any;
type SuppressedError = any; type DisposableStack = any; type AsyncDisposableStack = any;
type Disposable = any; type AsyncDisposable = any; type DecoratorMetadata = any; type DecoratorContext = any;
type ClassMemberDecoratorContext = any; type ClassDecoratorContext<C = any> = any;
type ClassMethodDecoratorContext<T = any, V = any> = any; type ClassGetterDecoratorContext<T = any, V = any> = any;
type ClassSetterDecoratorContext<T = any, V = any> = any; type ClassFieldDecoratorContext<T = any, V = any> = any;
type ClassAccessorDecoratorContext<T = any, V = any> = any; type ClassAccessorDecoratorTarget<T, V> = any;
type ClassAccessorDecoratorResult<T, V> = any; type NoInfer<T> = T; type WeakKey = object | symbol;
type BuiltinIteratorReturn = any; type IteratorObject<T, R = any, N = any> = any;
type AsyncIteratorObject<T, R = any, N = any> = any; type ArrayIterator<T> = IterableIterator<T>;
type MapIterator<T> = IterableIterator<T>; type SetIterator<T> = IterableIterator<T>;
type StringIterator<T> = IterableIterator<T>; type RegExpStringIterator<T> = IterableIterator<T>;
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

}  // namespace

std::string LibraryText() {
  std::string text;
  for (size_t i = 0; i < kPackagedLibraryParts; ++i) text += kPackagedLibrary[i];
  return text + kNewer;
}

bool HostName(std::string_view name) {
  return std::binary_search(kHostNames, kHostNames + kHostNameCount, name);
}

const std::string_view* HostNames(size_t* count) {
  *count = kHostNameCount;
  return kHostNames;
}

}  // namespace pawl::monitors::ts
