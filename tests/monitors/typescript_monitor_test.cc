// Programs and the name at which they are refused, or none. Each line about a monitor has its
// counterpart that must pass.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

struct TypeScriptCase {
  std::string program;
  std::string refused;  // empty: accepted
};

void Check(const std::vector<TypeScriptCase>& cases) {
  auto set = AllMonitors(Language::kTypeScript);
  for (const TypeScriptCase& c : cases) {
    const auto refusal = Judge(*set, c.program);
    EXPECT_EQ(refusal ? refusal->identifier : "", c.refused)
        << c.program << (refusal ? "\n" + refusal->message : "");
    if (refusal && !c.refused.empty()) {
      EXPECT_EQ(c.program.substr(refusal->byte, c.refused.size()), c.refused) << c.program;
    }
  }
}

constexpr const char* kPets =
    "class Animal { name = ''; } class Dog extends Animal { bark() { return 1; } }\n"
    "const isDog = (a: Animal): a is Dog => a instanceof Dog;\n"
    "const dogLike = (a: Animal) => a instanceof Dog;\n"
    "const pets: Animal[] = [new Dog()];\n";

TEST(TypeScriptMonitorTest, GuardsAsArguments) {
  const std::string pets = kPets;
  Check({
      {pets + "pets.filter(isDog).map(d => d.bark());", ""},
      {pets + "pets.filter(isDog).map(d => d.meow());", "meow"},
      {pets + "pets.filter(d => d.name > '').map(d => d.bark());", "bark"},
      {pets + "pets.filter(d => d instanceof Dog).map(d => d.bark());", ""},
      {pets + "if (dogLike(pets[0])) pets[0].bark(); const p = pets[0]; if (dogLike(p)) p.bark();",
       ""},
      {pets + "pets.find(isDog)?.bark(); pets.find(isDog)?.meow();", "meow"},
  });
}

TEST(TypeScriptMonitorTest, NamesOfEnumsMappedTypesTuplesAndExports) {
  Check({
      {"enum E { A = 1, B = A << 1 } E.B;", ""},
      {"enum E { A = 1, B = Q << 1 } E.B;", "Q"},
      {"type G<T> = { [K in keyof T]: (v: T[K]) => void };", ""},
      {"type G<T> = { [K in keyof T]: (v: T[J]) => void };", "J"},
      {"type T = [first: string, ...others: number[]];", ""},
      {"const a = 1; export { a as b };", ""},
      {"const a = 1; export { c as b };", "c"},
      {"class A { static make<T extends A>(this: new () => T): T { return new this(); } }\n"
       "class B extends A { more = 1; } B.make().more;",
       ""},
      {"interface Array<T> { second(): T } [1].second().toFixed(); [1].third();", "third"},
      {"function f(e: KeyboardEvent) { document.title = e.key; }", ""},
      {"new Intl.DateTimeFormat('en').formatToParts(new Date()); new Intl.DateTimeFormat().fmt;",
       "fmt"},
  });
}

TEST(TypeScriptMonitorTest, Members) {
  Check({
      {"[1, 2].lenght;", "lenght"},
      {"[1, 2].length;", ""},
      {"const s = 'a'; s.push('b');", "push"},
      {"const s = 'a'; s.padStart(3);", ""},
      {"function f(x: number[]) { return x.map(v => v.toFixed(1)).join(',').trimm(); }", "trimm"},
      {"function f(x: number[]) { return x.map(v => v.trim()); }", "trim"},
      {"function f(x: string[]) { return x.map(v => v.trim()); }", ""},
      {"interface P { x: number } function f(p: P) { return p.y; }", "y"},
      {"interface P { x: number } interface Q extends P { y: string } function f(p: Q) { return "
       "p.x + p.y.length; }",
       ""},
      {"interface P { x: number } interface Q extends P { y: string } function f(p: Q) { return "
       "p.y.size; }",
       "size"},
      {"const m = new Map<string, number>(); m.get('a')?.toFixed(); m.add('a');", "add"},
      {"enum C { Red, Blue } const c = C.Green;", "Green"},
      {"enum C { Red, Blue } const c = C.Blue;", ""},
      {"const o = {a: 1, b: {c: 'x'}}; o.b.c.length; o.b.d;", "d"},
      {"const o: {[key: string]: number} = {}; o.anything;", ""},
      {"const o: Record<string, number> = {}; o.anything.toFixed(); o.x.foo();", "foo"},
      {"function f(x: any) { return x.anything.at.all; }", ""},
      {"function f(x) { return x.anything; }", ""},
      {"function f(x: string | number) { return x.length; }",
       ""},  // a condition may have said which
      {"function f(x: string | number) { return x.size; }", "size"},
      {"class A { private n = 1; get twice() { return this.n * 2; } } new A().twice.toFixed(); new "
       "A().thrice;",
       "thrice"},
      {"class A { f() { return this.later(); } later() { return 1; } }", ""},
      {"class A { f() { return this.never(); } later() { return 1; } }", "never"},
      {"abstract class B { a = 1 } class C extends B { b = 2 } new C().a + new C().b; new C().c;",
       "c"},
      {"function f() {} f.cache = 1;", ""},
      {"import { x } from './x'; x.anything();", ""},
      {"console.log(process.argv.slice(2).anything);", ""},
      {"const t: [string, number] = ['a', 1]; t[1].toFixed(); t[0].toFixed();", "toFixed"},
      {"for (const [k, v] of Object.entries({a: 1})) { k.length; v.toFixed(); v.length; }",
       "length"},
      {"function id<T>(x: T): T { return x; } id('a').length; id(1).length;", "length"},
      {"const r = [1, 2].reduce((acc, x) => { acc.push(x); return acc; }, [] as number[]); "
       "r.length; r.size;",
       "size"},
      {"async function f() { return 1; } async function g() { (await f()).toFixed(); (await "
       "f()).length; }",
       "length"},
  });
}

TEST(TypeScriptMonitorTest, NamesAreJudgedAtTheEnd) {
  Check({
      {"function f() { return helper(1); }", "helper"},
      {"function f() { return helper(1); } function helper(x: number) { return x; }", ""},
      {"function f() { return TABLE[0]; } const TABLE = [1];", ""},
      {"let x: Missing = 1;", "Missing"},
      {"let x: Later = 1; type Later = number;", ""},
      {"i = 0;", "i"},
      {"var a = b; var b = 1;", ""},
      {"{ let inner = 1; } inner;", "inner"},
      {"if (true) { var hoisted = 1; } hoisted;", ""},
      {"const f = (a, {b, c: [d]}, ...e) => a + b + d + e;", ""},
      {"const f = (a) => c;", "c"},
      {"try { } catch (e) { e; } e;", "e"},
      {"label: for (;;) { break label; }", ""},
      {"const o = { shorthand };", "shorthand"},
      {"export {}; declare const given: number; given;", ""},
      {"setTimeout(() => {}, 1); window.document;", ""},
      {"type F<T> = T extends (infer R)[] ? R : never; let x: F<number[]>;", ""},
      {"function f(this: any, n: number) { return arguments.length; }", ""},
      {"new Foo();", "Foo"},
      {"class A<T> { x: T; m<U>(u: U): T { return this.x; } } type B = keyof A<string>;", ""},
  });
}

TEST(TypeScriptMonitorTest, ArgumentCounts) {
  Check({
      {"function f(a: number, b?: string) {} f(1); f(1, 'a'); f();", "f"},
      {"function f(a: number, b?: string) {} f(1, 'a', 2);", "f"},
      {"function f(...a: number[]) {} f(); f(1, 2, 3);", ""},
      {"function f(a: number): void; function f(a: number, b: number, c: number): void; function "
       "f(...a: any[]) {} f(1); f(1, 2, 3);",
       ""},
      {"const xs = [1]; Math.max(...xs); xs.push(...xs); xs.slice(1, 2, 3);", "slice"},
      {"class A { constructor(x: number) {} } new A(1); new A();", "A"},
      {"class A { constructor(x: number) {} } class B extends A {} new B();", "B"},
      {"parseInt('1', 10); parseInt();", "parseInt"},
      {"function f(g: (x: number) => void) { g(1); g(1, 2); }", "g"},
      {"function f(a = 1, b: number | undefined) {} f(1, 2); f(undefined, undefined);", ""},
      {"[1].map((x) => x); [1].forEach(console.log); Math.floor(1,);", ""},
  });
}

TEST(TypeScriptMonitorTest, Constants) {
  Check({
      {"const a = 1; a = 2;", "a"},
      {"const a = 1; a == 2; a === 2; a >= 2; const f = (a = 3) => a; const g = a => a;", ""},
      {"const a = 1; a += 2;", "a"},
      {"const a = 1; a++;", "a"},
      {"const a = 1; --a;", "a"},
      {"const a = 1; { let a = 2; a = 3; }", ""},
      {"const a = [1]; a[0] = 2; a.length = 0;", ""},
      {"for (const x of [1]) { x = 2; }", "x"},
      {"for (const i = 0; i < 3; i++) {}", "i"},
      {"interface P { readonly x: number; y: number } function f(p: P) { p.y = 1; p.x = 2; }", "x"},
      {"enum C { A } C.A = 1;", "A"},
      {"const [a, b] = [1, 2]; [a, b] = [b, a];", "a"},
      {"let a = 1, b = 2; [a, b] = [b, a];", ""},
  });
}

TEST(TypeScriptMonitorTest, Instantiable) {
  Check({
      {"abstract class A {} class B extends A {} new B(); new A();", "A"},
      {"interface I {} new I();", "I"},
      {"interface Foo {} declare const Foo: { new(): Foo }; new Foo();", ""},
  });
}

TEST(TypeScriptMonitorTest, RefusesWhileWritingNotAfterwards) {
  auto set = AllMonitors(Language::kTypeScript);
  TextState state = set->Start("const list = [1, 2];\nlist.");
  Refusal refusal;
  const TextState before = state;
  EXPECT_TRUE(state.Add("len", &refusal));
  ASSERT_NE(state.completions(), nullptr);
  EXPECT_EQ(state.written(), 3U);
  EXPECT_FALSE(state.Add("h", &refusal));
  EXPECT_EQ(refusal.byte, 26U);
  EXPECT_TRUE(state.Add("gth", &refusal));
  EXPECT_TRUE(state.Add(";", &refusal));
  EXPECT_EQ(state.completions(), nullptr);
  TextState other = before;  // the older state is as it was
  EXPECT_TRUE(other.Add("map(", &refusal));
  EXPECT_EQ(state.text(), "const list = [1, 2];\nlist.length;");
}

TEST(TypeScriptMonitorTest, NamesAreKnownWhereTheSuffixIs) {
  auto set = AllMonitors(Language::kTypeScript);
  Refusal refusal;
  const std::string prefix = "function f(count: number) {\n  return ";
  const std::string suffix = ";\n}\nfunction later() {}\n";
  for (const char* good : {"count", "later", "Math", "typeof", "new", "console", "12", "\"x\""}) {
    TextState state = set->Start(prefix, suffix);
    EXPECT_TRUE(state.Add(std::string(good) + " ", &refusal)) << good;
  }
  for (const char* bad : {"coumt", "helper"}) {
    TextState state = set->Start(prefix, suffix);
    EXPECT_FALSE(state.Add(std::string(bad) + " ", &refusal)) << bad;
  }
  TextState open = set->Start(prefix);
  EXPECT_TRUE(open.Add("helper(", &refusal));
}

TEST(TypeScriptMonitorTest, OnlyTheMonitorsAskedFor) {
  auto made = MonitorSet::Make(Language::kTypeScript, {.monitors = {"constants"}});
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(Judge(**made, "[1].foo; bar;").has_value());
  EXPECT_TRUE(Judge(**made, "const a = 1; a = 2;").has_value());
  const auto none = MonitorSet::Make(Language::kTypeScript, {.monitors = {"nonsense"}});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("dereference"), std::string::npos);
}

// The grammar takes a + b! for (a + b)!.
TEST(TypeScriptMonitorTest, TheMarkOfAValueBindsToTheValue) {
  const std::string find = "function find(s: string): string | null { return s; }\nlet n = 1;\n";
  Check({
      {find + "n > find('a')!.length;", ""},
      {find + "n > find('a')!.lenght;", "lenght"},
      {find + "(n + find('a')!.length).toFixed(1); ('a' + find('b')!.length).trim();", ""},
      {find + "('a' + find('b')!.length).toFixed(1);", "toFixed"},
      {find + "'a!.b'.length; if (n) !n; n != 2; let k!: string; k = find('a')!; k.trim();", ""},
      {"const m = new Map<string, number[]>(); m.get('a')![0].toFixed(1); m.get('b')!.push(2);",
       ""},
      {"const m = new Map<string, number[]>(); m.get('a')![0].toFixt(1);", "toFixt"},
      {find + "n > find('a')!!.length;\nn > find('b')!\n  .length;\nn > find('c')!.lenght;",
       "lenght"},
  });
}

TEST(TypeScriptMonitorTest, LinesThatTheCompilerPassesOver) {
  const std::string box = "class Box { size = 1; }\n";
  Check({
      {box + "// @ts-expect-error not there yet\nnew Box().color;\n", ""},
      {box + "const a = true\n  ? // @ts-ignore\n    new Box().color\n  : 1;\n", ""},
      {box + "// @ts-expect-error not there yet\nnew Box().size;\nnew Box().color;\n", "color"},
      {"// @ts-nocheck\n" + box + "new Box().color;\n", ""},
      {box + "const s = '@ts-ignore';\nnew Box().color;\n", "color"},
  });
}

TEST(TypeScriptMonitorTest, WhatAwaitAndGuardsMakeOfAType) {
  Check({
      {"class Mine extends Promise<string> { extra = 1; }\n"
       "async function f(m: Mine) { (await m).trim(); (await m).extra; }",
       "extra"},
      {"interface Later { then(f: (x: number) => void): void; other: number }\n"
       "async function f(t: Later) { (await t).anything; }",
       ""},
      {"class Path<T> { node!: T; isA<U>(this: Path<U>): this is Path<U & { a: number }> { return "
       "true; } }\n"
       "function f(p: Path<{ b: string }>) { if (p.isA()) { p.node.a; p.node.b; p.node.c; } }",
       "c"},
      {"function f(this: { width: number }) { this.width; this.height; }", "height"},
      {"interface A { a: number }\ninterface B { b: number }\n"
       "declare function isB(x: A): x is A & B;\n"
       "function f(x: A) { if (isB(x)) { x.a; x.b; x.c; } }",
       "c"},
      {"type Saved = { id: number; name: string };\ntype Unsaved<T> = Omit<T, 'id'>;\n"
       "function f(u: Unsaved<Saved>) { u.name; u.id; }",
       "id"},
      {"const t = { left: 'a', both: ['x', 'y'] } as const; t.left; t.both[0].trim(); t.right;",
       "right"},
  });
}

std::string Strictly(const std::string& program) {
  auto set = AllMonitors(Language::kTypeScript);
  const auto refusal = set->FinishStrict(program);
  return refusal ? refusal->identifier : "";
}

// What each line is to TypeScript: well-typed, or not.
TEST(TypeScriptMonitorTest, StrictReadsArraysThatGrowAndConditions) {
  for (const char* well : {
           "function f(n: number): number[] { const a = []; for (let i = 0; i < n; i++) a.push(i); "
           "return a; }",
           "function f(): (string | number)[] { let a = []; a.push('x'); a.unshift(1); return a; }",
           "function f(n: number): number[] { const a = []; a.push(1); a.push(a[0] + n); return a; "
           "}",
           "function f(n: number): string[][] { const a = []; a[0] = ['x']; a.push(['y', 'z']); "
           "return a; }",
           "function f(b: number[]): number[] { const a = []; a.push(...b); return a; }",
           "function f(n: number): number[] { return Array.from({ length: n }, (_, i) => i * 2); }",
           "function f(n: number): string { return Array.from({ length: n }, () => 'a').join(''); "
           "}",
           "function f(s: string): number { return s.match(/[A-Z]/)!.length + "
           "s.match(/[a-z]/)!.length; }",
           "function f(x?: () => number): number { if (x) { return x(); } return 1; }",
           "function f(x: () => number): number { if (x) { return x(); } return 1; }",
           "function f(x: string | number): number { return x as number; }",
       }) {
    EXPECT_EQ(Strictly(well), "") << well;
  }
  for (const char* ill : {
           "function f(): number[] { const a = []; a.push('x'); return a; }",
           "function f(n: number): string[] { const a = []; a[0] = n; return a; }",
           "function f(): number[] { const a = []; [1].forEach(x => a.push(x)); return a; }",
           "function f(n: number): string[] { return Array.from({ length: n }, (_, i) => i); }",
           "function f(n: number): number[] { return Array.from({ size: n }, (_, i) => i); }",
           "function f(x: number): number { if (x !== NaN) { return 1; } return 2; }",
           "function f(x: () => number): number { if (x) { return 2; } return 1; }",
           "function f(x: Promise<boolean>): number { if (x) { return 2; } return 1; }",
           "function f(x: number): number { return {} && x; }",
           "function f(x: string): number { return x as number; }",
           "function f(x: string, y: number): boolean { return x < y; }",
       }) {
    EXPECT_NE(Strictly(ill), "") << ill;
  }
}

}  // namespace
}  // namespace pawl::monitors
