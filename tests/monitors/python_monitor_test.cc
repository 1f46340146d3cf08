// Python under monitors: programs with ground truth. Each program is right as it is; with one of
// its names replaced by a wrong one it is refused at that name.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

constexpr const char* kHead = R"(import json
import os.path
from collections import OrderedDict, deque
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int = 0

    def norm(self) -> float:
        return (self.x ** 2 + self.y ** 2) ** 0.5


class Stack:
    limit = 10

    def __init__(self, items: list[str], name="stack"):
        self.items = items
        self.name = name

    def push(self, item: str) -> None:
        self.items.append(item)

    @property
    def top(self) -> str:
        return self.items[-1]


def read(path: str, *, strict: bool = False) -> dict[str, list[str]]:
    with open(path) as file:
        return json.loads(file.read())


)";

std::optional<Refusal> In(MonitorSet& set, const std::string& program) {
  return Judge(set, kHead + program);
}

struct PythonCase {
  const char* right;
  const char* wrong;
  const char* name;  // that is refused
};

// clang-format off
const PythonCase kCases[] = {
    {"print(\"a\".upper())\n", "print(\"a\".uper())\n", "uper"},
    {"n = [1, 2].count(1)\n", "n = [1, 2].length(1)\n", "length"},
    {"d = {}\nfor k in d.keys():\n    print(k)\n", "d = {}\nfor k in d.kyes():\n    print(k)\n", "kyes"},
    {"s = json.dumps([])\n", "s = json.dump_string([])\n", "dump_string"},
    {"def f(s: str, n: int | None):\n    return s.lower()\n", "def f(s: str, n: int | None):\n    return s.lowercase()\n", "lowercase"},
    {"def f(all: dict[str, list[int]]):\n    return all[\"a\"].index(1)\n", "def f(all: dict[str, list[int]]):\n    return all[\"a\"].find(1)\n", "find"},
    {"def f(words: list[str]):\n    for w in words:\n        print(w.title())\n", "def f(words: list[str]):\n    for w in words:\n        print(w.titel())\n", "titel"},
    {"s = Stack([])\nprint(s.top.upper())\n", "s = Stack([])\nprint(s.top.uper())\n", "uper"},
    {"s = Stack([])\nprint(s.items)\n", "s = Stack([])\nprint(s.itmes)\n", "itmes"},
    {"s = Stack([])\ns.push(\"a\")\n", "s = Stack([])\ns.psuh(\"a\")\n", "psuh"},
    {"print(Point(1).norm())\n", "print(Point(1).lenght())\n", "lenght"},
    {"q = deque([1])\nx = q.popleft()\n", "q = deque([1])\nx = q.pop_left()\n", "pop_left"},
    {"r = read(\"a\", strict=True)\n", "r = read(\"a\", strickt=True)\n", "strickt"},
    {"r = read(\"a\")\n", "r = read(\"a\", \"b\")\n", "read"},
    {"s = Stack([], name=\"x\")\n", "s = Stack([], title=\"x\")\n", "title"},
    {"s = Stack([])\n", "s = Stack()\n", "Stack"},
    {"p = os.path.join(\"a\")\n", "p = os.path.jion(\"a\")\n", "jion"},
    {"p = os.path.join(\"a\").lower()\n", "p = os.path.join(\"a\").lowr()\n", "lowr"},
    {"total = 1\nprint(total)\n", "total = 1\nprint(totl)\n", "totl"},
    {"def f(a, b):\n    return a + b\n", "def f(a, b):\n    return a + c\n", "c"},
};
// clang-format on

class PythonMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_ = AllMonitors(Language::kPython);
    ASSERT_NE(set_, nullptr);
  }
  std::unique_ptr<MonitorSet> set_;
};

TEST_F(PythonMonitorTest, RightProgramsPassAndWrongNamesAreRefused) {
  for (const PythonCase& c : kCases) {
    const auto right = In(*set_, c.right);
    EXPECT_FALSE(right.has_value()) << c.right << right->identifier << ": " << right->message;
    const auto wrong = In(*set_, c.wrong);
    ASSERT_TRUE(wrong.has_value()) << c.wrong;
    EXPECT_EQ(wrong->identifier, c.name) << c.wrong;
  }
}

TEST_F(PythonMonitorTest, WhatIsDynamicIsOpen) {
  for (const char* program : {
           "import numpy as np\nprint(np.anything(1).more)\n",
           "def f(x):\n    return x.anything\n",
           "def f(x: object):\n    if isinstance(x, str):\n        return x.upper()\n",
           "class A:\n    def __getattr__(self, name): return 1\nprint(A().anything)\n",
           "import base\nclass B(base.Unknown):\n    pass\nprint(B().anything)\n",
           "s = Stack([])\ns.extra = 1\nprint(s.extra)\n",
           "import sys\nif sys.platform == \"win32\":\n    import winreg\n    "
           "print(winreg.anything)\n",
           "try:\n    print(os.something_new)\nexcept AttributeError:\n    pass\n",
           "x = None\nfor i in range(3):\n    if x is not None:\n        print(x.upper())\n    x = "
           "\"a\"\n",
           "x = 1\nx = \"a\"\nprint(x.upper())\n",
           "def f(a, *args, **kwargs):\n    return f(1, 2, 3, z=4)\n",
           // A builtin that gets another meaning further down.
           "builtin_open = open\ndef f(name):\n    t = open(fileobj=name)\n    return "
           "t.anything\ndef make(fileobj):\n    return fileobj\nopen = make\n",
           "def f(name):\n    return print(name, colour=1)\ndef print(name, colour):\n    pass\n",
           // What is called like a function takes attributes like one.
           "import functools\nf = functools.partial(read, \"a\")\nf.converter = 1\n",
           // What a survey of finished files found.
           "def g(d):\n    if isinstance(d, tuple):\n        try:\n            return "
           "d.tm_gmtoff\n        "
           "except AttributeError:\n            pass\n",
           "import weakref\nclass R(weakref.ref):\n    def __init__(self, o, back):\n        "
           "super().__init__(o, back)\n",
           "import sys\nexc, value, tb = sys.exc_info()\nif issubclass(exc, ImportError):\n    "
           "print(value.name)\n",
           // Names that the stubs leave out.
           "import http.server\nprint(http.server.DEFAULT_ERROR_MESSAGE)\n",
           "import turtle\nc = turtle.ScrolledCanvas(None)\nc.adjustScrolls()\n",
           "print(\"{}\".format(1), \"%s\" % 1, f\"{1:>{2}}\")\n",
           "print([y for y in range(3) if y], {k: v for k, v in {}.items()}, lambda q: q)\n",
       }) {
    const auto refusal = In(*set_, program);
    EXPECT_FALSE(refusal.has_value()) << program << refusal->identifier << ": " << refusal->message;
  }
}

// Places inside open brackets and f-strings: what may follow is known, unless a comprehension may
// still give the name another meaning.
TEST_F(PythonMonitorTest, InsideOpenBrackets) {
  const std::string head = std::string(kHead) +
                           "import datetime\n\n\nclass Cart:\n    def __init__(self) -> None:\n"
                           "        self.items: list[str] = []\n\n\n"
                           "def show(cart: Cart, now: datetime.datetime) -> None:\n    ";
  for (const char* known : {
           "print(now.",
           "print(1, now.",
           "x = [1, now.",
           "x = (1, now.",
           "x = {1: 2, 3: now.",
           "x = f\"{now.",
           "x = f'{1:>{now.",
           "x = f\"{1}{2} {now.",
           "if (now.",
           "while (now.",
           "x = 2 * (now.",
           "x = [1 for c in now.",
           "x = [1 for c in cart.items if now.",
           "print(\n        now.",
           "cart.items.",
           "x = cart.items[0].",
           "for item in cart.items:\n        item.",
           "read(now.",
           "print(\"a\", sep=now.",
           "Stack([], now.",
           "show(now.",  // it takes two arguments, so no generator
           "return None if now.",
       }) {
    TextState state = set_->Start("");
    ASSERT_TRUE(state.Add(head + known, nullptr)) << known;
    const auto names = state.Expected();
    ASSERT_NE(names, nullptr) << known;
    EXPECT_GT(names->names.size(), 5u) << known;
  }
  for (const char* open : {
           "x = (now.",
           "x = [now.",
           "x = {now.",
           "x = {1: now.",
           "x = [1 + now.",
           "x = (1 + now.",
           "sum(now.",
           "sorted(now.",
           "list(now.",
           "str(now.",
           "tuple(now.",
           "enumerate(now.",
           "ValueError(now.",
           "match [now.",
           "unknown(now.",
           "x = 1 in (now.",
           "x = [c for c in [now.",
           "print([now.",
           "any(not now.",
       }) {
    TextState state = set_->Start("");
    ASSERT_TRUE(state.Add(head + open, nullptr)) << open;
    EXPECT_EQ(state.Expected(), nullptr) << open;
  }
}

// A comprehension's variable may have the name of another.
TEST_F(PythonMonitorTest, GeneratorsAsArguments) {
  for (const char* made :
       {"tuple(x.real for x in xs)", "enumerate(x.real for x in xs)", "bytes(x.real for x in xs)",
        "Exception(x.real for x in xs)", "Q(x.real for x in xs)", "take(x.real for x in xs)",
        "any(x.real for x in xs)", "{x.real: 1 for x in xs}", "lambda: (y := 1)",
        "f\"{(y := 1)}\""}) {
    const std::string program =
        "class Q:\n    def __init__(self, all):\n        self.all = all\n\n\n"
        "def take(all: object) -> None: ...\n\n\n"
        "def f(x: str, xs: list[int]):\n    return " +
        std::string(made) + "\n";
    const auto refusal = Judge(*set_, program);
    EXPECT_FALSE(refusal.has_value()) << made << ": " << refusal->identifier;
  }
}

TEST_F(PythonMonitorTest, BehindLongStrings) {
  for (const char quote : {'\'', '"'}) {
    const std::string quotes(3, quote);
    const std::string head = "import re\nx = " + quotes + "\na(b" + quotes + "\n";
    auto set = AllMonitors(Language::kPython);
    EXPECT_FALSE(Judge(*set, head + "re.match('a', 'b')\n").has_value());
    const auto refusal = Judge(*set, head + "re.mtach('a', 'b')\n");
    ASSERT_TRUE(refusal.has_value()) << quotes;
    EXPECT_EQ(refusal->identifier, "mtach");
  }
}

TEST_F(PythonMonitorTest, RandomDamageNeverCrashes) {
  const std::string original = kHead + std::string(kCases[4].right) + kCases[8].right;
  std::mt19937 random(7);
  const std::string_view pieces[] = {"(",    ")",      "{",  "}",    "[", "]",      "\"",
                                     "'",    "\"\"\"", "#",  ".",    ":", "\n",     "    ",
                                     "try:", "def ",   "\\", "\xff", "=", "lambda "};
  for (int round = 0; round < 40; ++round) {
    std::string text = original;
    for (int k = 0; k < 1 + static_cast<int>(random() % 4); ++k) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1 + random() % 20);
      } else {
        text.insert(at, pieces[random() % std::size(pieces)]);
      }
    }
    Judge(*set_, text);
  }
}

}  // namespace
}  // namespace pawl::monitors
