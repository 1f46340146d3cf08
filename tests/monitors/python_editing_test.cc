// Python where the text behind the cursor is known, as in an editor: self, super(), types that the
// whole text tells. Each case has a place, what stands for the name there, and what must not.
#include <gtest/gtest.h>

#include <string>

#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

// What is said of the name where "@" stands, with all that is behind it known.
std::shared_ptr<const Completions> At(MonitorSet& set, const std::string& text) {
  const size_t at = text.find('@');
  TextState state = set.Start(text.substr(0, at), text.substr(at + 1));
  return state.Expected();
}

bool Has(const Completions& names, const std::string& name) {
  return std::ranges::binary_search(names.names, name);
}

class PythonEditingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_ = AllMonitors(Language::kPython);
    ASSERT_NE(set_, nullptr);
  }
  void Known(const std::string& text, const std::string& name, const std::string& wrong) {
    const auto names = At(*set_, text);
    ASSERT_NE(names, nullptr) << text;
    EXPECT_TRUE(Has(*names, name)) << name << " in " << text;
    EXPECT_FALSE(Has(*names, wrong)) << wrong << " in " << text;
  }
  void Open(const std::string& text) { EXPECT_EQ(At(*set_, text), nullptr) << text; }
  std::unique_ptr<MonitorSet> set_;
};

constexpr const char* kClass = R"(
import threading

class Store:
    limit = 3

    def __init__(self, path: str):
        self.path = path
        self._open = False
        self.lines = []

    def read(self) -> "list[str]":
        %
        return self.lines

    def close(self):
        self.closed = True
)";

std::string InClass(const std::string& line) {
  std::string text = kClass;
  return text.replace(text.find('%'), 1, line);
}

TEST_F(PythonEditingTest, SelfHasWhatTheWholeClassAssigns) {
  for (const char* name : {"path", "_open", "closed", "close", "limit", "__class__"})
    Known(InClass("print(self.@, 1)"), name, "paht");
  const auto names = At(*set_, InClass("print(self.@, 1)"));
  ASSERT_NE(names, nullptr);
  EXPECT_FALSE(names->private_free);
  Known(InClass("return self.@()"), "read", "raed");
  // The name that is being written is none of them.
  EXPECT_FALSE(Has(*names, "pawl_name__"));
  // Without the text behind, a later method may assign more.
  const std::string text = InClass("print(self.@, 1)");
  EXPECT_EQ(set_->Start(text.substr(0, text.find('@'))).Expected(), nullptr);
}

TEST_F(PythonEditingTest, WhatMayBeAssignedToIsOpen) {
  for (const char* line : {"self.@", "self.@ = 1", "self.@, b = 1, 2", "for self.@ in []: pass",
                           "self.@ += 1", "with open('a') as self.@: pass"}) {
    Open(InClass(line));
  }
}

TEST_F(PythonEditingTest, ClassesWhoseMembersAreNotWrittenDownAreOpen) {
  const std::string use = "\n    def f(self):\n        return self.@ + 1\n";
  for (const char* head : {"class A:\n    def __getattr__(self, n): return n",
                           "import no\nclass A(no.Base):\n    x = 1",
                           "class A:\n    def g(self, n): setattr(self, n, 1)",
                           "class A:\n    def g(self, d): self.__dict__.update(d)",
                           // Meant to be mixed with another: it reads what it has not.
                           "class A:\n    def g(self): return self.other()",
                           "class A(type):\n    x = 1", "@unknown\nclass A:\n    x = 1"}) {
    Open(head + use);
  }
  Open("class A:\n    x = 1" + use + "setattr(A, 'y', 2)\n");
  const std::string a = "class A:\n    def __init__(self): self.x = 1\n";
  Known(a + "    def g(self): setattr(self, 'late', 1)" + use, "late", "lately");
  Known(a + "    def g(self): return self.__dict__.copy()" + use, "g", "gg");
  // What a class that derives from it has, self may have.
  Known(a + use + "class B(A):\n    def more(self): pass\n", "more", "moer");
  Known(a + use + "a = A()\na.outside = 1\n", "outside", "inside");
  // Without a state of its own, or by what it says, a class is meant to be derived from.
  Open("class A:\n    x = 1" + use);
  Open("class A:\n    \"\"\"Subclasses define step.\"\"\"\n    def __init__(self): self.x = 1\n" +
       use);
  Open(a + "    def g(self): raise NotImplementedError\n" + use);
  // The stubs leave out what is private in the library's classes.
  const auto names = At(*set_, "import threading\nclass A(threading.Thread):\n    x = 1" + use);
  ASSERT_NE(names, nullptr);
  EXPECT_TRUE(names->private_free);
  EXPECT_TRUE(Has(*names, "start"));
}

TEST_F(PythonEditingTest, TypesOfWhatIsAssignedToSelf) {
  Known(InClass("return self.path.@() + 1"), "upper", "append");
  Known(InClass("return self.lines.@(1)"), "append", "upper");
  // Of a value that is not known.
  Open(
      "class A:\n    def __init__(self, x):\n        self.x = x\n    def f(self):\n        "
      "return self.x.@()\n");
  // From outside it may get any.
  Open(InClass("return self.path.@()") + "def f(s, v):\n    s.path = v\n");
}

TEST_F(PythonEditingTest, SuperHasWhatTheBasesHave) {
  const std::string head =
      "class A:\n    def load(self): pass\n\nclass B(A):\n    def more(self):\n";
  Known(head + "        return super().@()\n", "load", "more");
  Known(head + "        return super(B, self).@()\n", "load", "more");
  Open("class A:\n    def more(self):\n        return super().@()\n");
  Open("import no\nclass B(no.A):\n    def more(self):\n        return super().@()\n");
}

TEST_F(PythonEditingTest, TriesAndTestsAreHeeded) {
  const std::string head = "import os\ndef f(x, y: str):\n";
  Known(head + "    try:\n        return os.@()\n    except OSError:\n        pass\n", "getcwd",
        "getcwdu");
  Open(head + "    try:\n        return os.@()\n    except AttributeError:\n        pass\n");
  Open(head + "    return os.@()  # type: ignore\n");
  Open("class A:\n    kind = 'a'\n\ndef f(a: A):\n    return a.kind == 'b' and a.@()\n");
  Open("from collections import namedtuple\nP = namedtuple('P', 'x')\nprint(1, P(1).@)\n");
  Known(head + "    if isinstance(x, str):\n        return x.@()\n", "upper", "append");
  Known(head + "    return isinstance(x, list) and x.@()\n", "append", "upper");
  Known(head + "    if not isinstance(x, (str, list)):\n        return 1\n    return x.@()\n",
        "append", "real");
  Open(head + "    if isinstance(x, str):\n        pass\n    return x.@()\n");
  Open(head +
       "    if isinstance(x, str):\n        x = y + x\n        x = g(x)\n        return x.@()\n");
  Known(head + "    if isinstance(y, list):\n        return 1\n    return y.@()\n", "upper",
        "real");
}

TEST_F(PythonEditingTest, FlowOfTypes) {
  const std::string head =
      "import re\nfrom typing import Dict, List\nfrom enum import IntEnum\n"
      "class Colour(IntEnum):\n    RED = 1\n"
      "def f(d: Dict[str, List[int]], q: \"Colour\", t: tuple[str, int]):\n    ";
  Known(head + "for k, v in d.items():\n        print(1, v.@())\n", "append", "upper");
  Known(head + "for i, (k, v) in enumerate(d.items()):\n        print(1, k.@())\n", "upper",
        "append");
  Known(head + "x = [k.@(1) for k in sorted(d)]\n", "upper", "append");
  Known(head + "a, b = t\n    print(1, a.@())\n", "upper", "real");
  Known(head + "for a, b in [('x', 1), ('y', 2)]:\n        print(1, b.@)\n", "real", "upper");
  Known(head + "print(1, q.@)\n", "value", "RED2");
  Known(head + "print(1, Colour.@)\n", "RED", "GREEN");
  Known(head + "print(1, Colour.RED.@)\n", "name", "nmae");
  Known(head + "try:\n        pass\n    except (KeyError, OSError) as e:\n        print(1, e.@)\n",
        "errno", "number");
  Known(head + "m = re.match('a', 'b')\n    print(1, m.@())\n", "groups", "grups");
  Known("def make():\n    return 'a'\n\ndef g():\n    print(1, make().@())\n", "upper", "append");
  Known(
      "async def make() -> str:\n    return 'a'\n\nasync def g():\n    x = await make()\n    "
      "print(1, x.@())\n",
      "upper", "append");
  Open("def make(a):\n    return a\n\ndef g():\n    print(1, make('a').@())\n");
}

// Names that the survey of places found refused.
TEST_F(PythonEditingTest, WhatTheSurveyFound) {
  Open("class Bag:\n    pass\n\nb = Bag()\nfill(b)\nprint(1, b.@)\n");
  Open("from urllib.request import urlopen\nr = urlopen('a')\nprint(1, r.@())\n");
  Open("def f(x: object):\n    return 1, x.@\n");
  Known("import io\nwith io.BytesIO() as b:\n    print(1, b.@())\n", "getvalue", "getvalues");
  Known(
      "class A:\n    __slots__ = ('a', \"b\")\n    def __init__(self): self.a = 1\n"
      "    def f(self):\n        return self.@ + 1\n",
      "b", "c");
}

TEST_F(PythonEditingTest, ImportsNameModules) {
  Known("import xml.@\n", "dom", "mod");
  Known("from xml.@ import parsers\n", "etree", "tree");
  Open("try:\n    import xml.@\nexcept ImportError:\n    pass\n");
  Open("import unknown.@\n");
  // Also while the line is written.
  TextState state = set_->Start("from xml.");
  const auto names = state.Expected();
  ASSERT_NE(names, nullptr);
  EXPECT_TRUE(Has(*names, "etree"));
}

// A bracket that an editor closed by itself may still get a comprehension.
TEST_F(PythonEditingTest, BracketsThatEndTheLine) {
  const std::string head = "def f(x: str, all: list[int]):\n    ";
  Open(head + "return sum(x.@)\n");
  Known(head + "return sum(x.@ for y in all)\n", "upper", "append");
  Known(head + "return sum(x.@(), 1)\n", "upper", "append");
}

TEST_F(PythonEditingTest, ATextThatDoesNotParseIsReadUpToTheCursor) {
  Known("def f(x: str):\n    print(1, x.@\n\ndef g(:\n", "upper", "append");
  Open("class A:\n    def f(self):\n        return self.@(\n\ndef g(:\n");
}

}  // namespace
}  // namespace pawl::monitors
