// Programs made of bytes, in TypeScript, Java and Python, under the monitors. Each byte chooses a
// declaration or a statement and the few names in it, so that types derive from each other in
// circles, mention themselves, are declared twice and are nested; other bytes repeat what stands
// there until it is deep. The bytes behind a zero are program text as they are.
//
// Every program ends within the limits, which are counted in steps. A question that is stopped, at
// any step, leaves nothing behind: the program is judged as before.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/work.h"
#include "src/base/stop_scope.h"
#include "tests/fuzz/fuzz_util.h"

namespace {

using namespace pawl;
using namespace pawl::monitors;

// "A" is a type's name, "a" a variable's, "m" a member's; "%" repeats what follows up to the next
// "%".
const std::vector<std::string_view>& Parts(Language language) {
  static const std::vector<std::string_view> typescript = {
      "interface A extends A {m: A}\n",
      "interface A<T> extends A<A<T>> {m: T}\n",
      "interface A<T, U> extends A<U>, A<T> {m(a: U): A<T>}\n",
      "class A extends A {m = 1;}\n",
      "class A<T> extends A<T[]> {constructor(a: A<T>) {super(a);} m(): A<A<T>> {return this;}}\n",
      "class A {static m: A; m = this.m; get m() {return new A().m;}}\n",
      "abstract class A implements A {abstract m: typeof a;}\n",
      "type A = A | A;\n",
      "type A<T> = {m: A<A<T>>, [key: string]: T};\n",
      "type A<T> = T extends A<infer U> ? A<U> : keyof T;\n",
      "type A = Partial<A> & Pick<A, \"m\">;\n",
      "enum A {m = A.m, n}\n",
      "namespace A {export let a: A.A; export interface A extends A {}}\n",
      "function a<T extends T>(a: T) {return a.m;}\n",
      "function a<T extends U | A, U extends T | A>(a: T, b: U) {return a.m ?? b.m(a);}\n",
      "function a(a: A): a is A {return a(a);}\n",
      "let a = a.m; const a = a, b = [a, ...a];\n",
      "declare let a: A<A<A>>; declare let a: A;\n",
      "a.m.m(a => a.m(a)).m;\n",
      "new A(a, new A()).m; a = new A<A>(a);\n",
      "if (a instanceof A && a.m === \"m\") {a.m = a;} else {a.m();}\n",
      "while (a) {a = a.m; for (const a of a) {a.m;} switch (a.m) {case A.m: a;}}\n",
      "const {m, ...a} = a; [a, a] = [a, a]; a?.m?.[m]?.(a);\n",
      "const a = () => a(); const b = {m: () => b.m(), a};\n",
      "let a = %(%a.m;\n",
      "let a: %A<%A;\n",
      "let a = %`${%a.m;\n",
      "%if (a) {} else %a.m;\n",
      "let a = a%.m%;\n",
      "let a = a% + a.m%;\n",
  };
  static const std::vector<std::string_view> java = {
      "class A extends A {A m; A m(A a) {return a.m.m(a);}}\n",
      "class A<T extends T> extends A<A<T>> {T m; void m(T a) {a.m();}}\n",
      "class A<T, U> extends A<java.util.Map<T, T>, U> {{m.m();}}\n",
      "interface A<T> extends A<T>, A<A<T>> {T m(A<? super T> a);}\n",
      "enum A implements A {a, m {A m() {return A.m;}}; A m() {switch (this) {case a: return "
      "m;}}}\n",
      "record A(A a, A m) {A {a.m();}}\n",
      "class A {class A extends A {A.A m() {return new A().m();}}}\n",
      "class A {void m() {var a = a; var m = a.m; for (var a : a) {a.m();}}}\n",
      "class A {void m() {m(a -> a.m(a)); m(A::m); new A(1).m; new A() {{m();}};}}\n",
      "class A {final A m; void m() {this.m = m; m = m; int a = 1; a++;}}\n",
      "class A {void m(Object a) {if (a instanceof A m) m.m(); %(%a;}}\n",
      "class A {%A<%A m; void m() {m.m();}}\n",
      "class A {void m() {%{%a.m();}}\n",
      "class A {void m() {%if (a) {} else %a.m();}}\n",
      "class A {void m() {a%.m()%.m;}}\n",
      "import static A.*;\nimport A.A;\npackage a;\n",
  };
  static const std::vector<std::string_view> python = {
      "class A(A):\n  m = A\n  def m(self) -> 'A': return self.m()\n",
      "class A(A, A):\n  def __init__(self, a: A): self.m = a.m\n",
      "class A(list['A[A]'], metaclass=A):\n  m: 'A'\n",
      "class A:\n  class A(A):\n    m = A.A\n",
      "import a\nfrom a import *\nfrom . import A as A\n",
      "def a(a: A, *m: A) -> A:\n  return a(a, *m).m\n",
      "def a(m=a):\n  global a\n  a = a\n  return lambda a: a.m\n",
      "a = a\nb = a.m\na = b\n",
      "a = [a for a in a.m if a]\na = a[0].m\n",
      "a: A = A(a, m=a)\na.m.m(a).m\n",
      "for a in a:\n  with a.m as a:\n    a.m\n",
      "try:\n  a.m\nexcept A as a:\n  a.m\nfinally:\n  a.m = a\n",
      "@a\n@A.m\nclass A:\n  @property\n  def m(self): return self.m\n",
      "match a:\n  case A(m=a): a.m\n",
      "a = %(%a.m\n",
      "a: %list[%A\n",
      "a = a%.m%\n",
      "a = % not %a.m\n",
      "if a: pass\n%elif a.m: pass\n%",
      "a = ''.join(a).upper().m\n",
  };
  return language == Language::kTypeScript ? typescript
         : language == Language::kJava     ? java
                                           : python;
}

std::string Program(Language language, const uint8_t* data, size_t size) {
  constexpr size_t kMostBytes = 4'000;
  std::string text;
  size_t at = 0;
  const auto next = [&]() -> uint8_t { return at < size ? data[at++] : 0; };
  while (at < size && data[at] != 0 && text.size() < kMostBytes) {
    const auto& parts = Parts(language);
    const std::string_view part = parts[next() % parts.size()];
    for (size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      // A name that is one letter.
      const bool letter = (c == 'A' || c == 'a' || c == 'm') &&
                          (i == 0 || !NameByte(part[i - 1])) &&
                          (i + 1 == part.size() || !NameByte(part[i + 1]));
      if (letter) {
        text += static_cast<char>(c + next() % 3);
      } else if (c == '%') {
        const size_t end = part.find('%', i + 1);
        if (end == std::string_view::npos) continue;
        const uint8_t times = next();
        for (int n = times < 128 ? times % 8 : times * 4; n > 0; --n)
          text += part.substr(i + 1, end - i - 1);
        i = end;
      } else {
        text += c;
      }
    }
  }
  if (at < size) text.append(reinterpret_cast<const char*>(data) + at + 1, size - at - 1);
  return text;
}

// What is said of a text, in one line.
std::string Judged(MonitorSet& set, std::string_view text) {
  TextState state = set.Start("");
  Refusal refusal;
  std::string said;
  for (const char c : text) {
    if (state.Add(c, &refusal)) continue;
    said = "refused at " + std::to_string(refusal.byte) + " " + refusal.message;
    // What is behind is read too.
    state = set.Start(std::string(text.substr(0, state.text().size() + 1)));
    break;
  }
  if (state.too_deep() != SIZE_MAX) said += "; too deep at " + std::to_string(state.too_deep());
  const std::shared_ptr<const Completions> names = state.Expected();
  said += "; " + std::to_string(names == nullptr ? 0 : names->names.size()) + " names";
  const auto end = set.Finish(text);
  if (end) said += "; at the end " + std::to_string(end->byte) + " " + end->message;
  if (set.language() == Language::kTypeScript) {
    const auto strict = set.FinishStrict(text);
    if (strict) said += "; strict " + std::to_string(strict->byte) + " " + strict->message;
  }
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const std::vector<std::unique_ptr<MonitorSet>> sets = [] {
    std::vector<std::unique_ptr<MonitorSet>> made;
    for (const Language language : {Language::kTypeScript, Language::kJava, Language::kPython})
      made.push_back(*MonitorSet::Make(language, {}));
    return made;
  }();
  MonitorSet& set = *sets[data[0] % sets.size()];
  const std::string text = Program(set.language(), data + 2, size - 2);
  const MonitorLimits& limits = set.limits();
  const uint64_t before = Work::Total();
  const std::string first = Judged(set, text);
  const uint64_t steps = Work::Total() - before;
  const uint64_t most = limits.text_steps * 2 + limits.finish_steps * 2 +
                        (limits.finish_steps_per_byte * 2 + 16) * text.size() + limits.file_steps;
  fuzz::Require(steps <= most, "took more steps than its limits allow", text);

  // Stopped at a step that the input chooses.
  std::atomic<bool> stop{true};
  try {
    Work::Count(uint64_t{data[1]} * 4);
    const StopScope scope(&stop);
    Judged(set, text);
  } catch (const Stopped&) {
  }
  fuzz::Require(Judged(set, text) == first, "is judged otherwise behind a stop", text);
  return 0;
}
