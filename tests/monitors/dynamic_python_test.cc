// Programs around what is dynamic in Python (dynamic_python.txt), each of which runs under CPython
// (dynamic_python.py): so nothing in them may be refused, neither while they are typed, nor at
// their end, nor where a name is written in the middle of the text. A program of several files is a
// repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/monitors/scan.h"
#include "src/base/file.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

struct DynamicProgram {
  std::string name;
  std::map<std::string, std::string> files;
};

// What stands behind each mark on its line, and the text up to the next. A mark begins with a
// newline.
std::vector<std::pair<std::string, std::string>> Parts(const std::string& text,
                                                       const std::string& mark) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (size_t at = text.find(mark); at != std::string::npos;) {
    const size_t line = text.find('\n', at + mark.size());
    const size_t next = text.find(mark, line);
    const size_t end = next == std::string::npos ? text.size() : next + 1;
    parts.emplace_back(text.substr(at + mark.size(), line - at - mark.size()),
                       text.substr(line + 1, end - line - 1));
    at = next;
  }
  return parts;
}

std::vector<DynamicProgram> DynamicPrograms() {
  const auto text = ReadRegularFile(PAWL_TEST_PROGRAMS "/../dynamic_python.txt", size_t{1} << 20);
  std::vector<DynamicProgram> programs;
  if (!text.ok()) return programs;
  for (auto& [head, body] : Parts("\n" + *text, "\n#### ")) {
    DynamicProgram program{.name = head.substr(0, head.find(' ')), .files = {}};
    for (auto& [file, content] : Parts("\n==== main.py\n" + body, "\n==== "))
      program.files[file] = content;
    programs.push_back(std::move(program));
  }
  return programs;
}

// The first name that is refused where it stands, with all of the text around it; empty: none is.
std::string RefusedInTheMiddle(MonitorSet& set, const std::string& text) {
  Scan scan(Language::kPython, set.limits().brackets);
  for (size_t at = 0; at < text.size(); scan.Add(text[at++])) {
    if (at == 0 || text[at - 1] != '.' || !NameStart(text[at]) || !scan.in_code()) continue;
    size_t end = at;
    while (end < text.size() && NameByte(text[end])) ++end;
    TextState state = set.Start(text.substr(0, at), text.substr(end));
    for (size_t i = at; i < std::min(end + 1, text.size()); ++i) {
      Refusal refusal;
      if (!state.Add(text[i], &refusal)) return text.substr(at, end - at);
    }
  }
  return {};
}

TEST(DynamicPythonTest, NothingIsRefusedInAProgramThatRuns) {
  const std::vector<DynamicProgram> programs = DynamicPrograms();
  ASSERT_GE(programs.size(), 150U);
  auto plain = AllMonitors(Language::kPython);
  ASSERT_NE(plain, nullptr);
  const fs::path folder = fs::path(::testing::TempDir()) / "pawl_dynamic_python";
  size_t constrained = 0;
  for (const DynamicProgram& program : programs) {
    std::unique_ptr<MonitorSet> own;
    if (program.files.size() > 1) {
      fs::remove_all(folder);
      for (const auto& [file, text] : program.files) {
        fs::create_directories((folder / file).parent_path());
        std::ofstream(folder / file) << text;
      }
      auto made = MonitorSet::Make(Language::kPython, {.repo = folder.string()});
      ASSERT_TRUE(made.ok());
      own = std::move(*made);
    }
    MonitorSet& set = own != nullptr ? *own : *plain;
    for (const auto& [file, text] : program.files) {
      if (own != nullptr) set.analysis().SetFile((folder / file).string());
      const auto refusal = Judge(set, text);
      EXPECT_FALSE(refusal.has_value()) << program.name << " " << file << " byte " << refusal->byte
                                        << ": " << refusal->identifier;
      EXPECT_EQ(RefusedInTheMiddle(set, text), "") << program.name << " " << file;
    }
    constrained += set.counts().constrained;
    if (own == nullptr) set.counts() = {};
  }
  fs::remove_all(folder);
  // The programs are judged, not passed over.
  EXPECT_GE(constrained, 400U);
}

TEST(DynamicPythonTest, WrongNamesBesideWhatIsDynamicAreRefused) {
  auto set = AllMonitors(Language::kPython);
  ASSERT_NE(set, nullptr);
  const auto refused = [&](const std::string& text) {
    const auto refusal = Judge(*set, text);
    return refusal ? refusal->identifier : "";
  };
  // The mode of open() says what it returns.
  EXPECT_EQ(refused("with open('a', 'rb') as f:\n    f.peek(1)\n    f.reconfigur()\n"),
            "reconfigur");
  EXPECT_EQ(refused("with open('a') as f:\n    f.reconfigure()\n    f.peek(1)\n"), "peek");
  EXPECT_EQ(refused("with open('a', 'wb') as f:\n    f.raw\n    f.peek(1)\n"), "peek");
  EXPECT_EQ(refused("f = open('a', 'rb', buffering=0)\nf.readall()\nf.peek(1)\n"), "peek");
  // A class without dynamic members in a text with one that has them.
  const std::string two =
      "class A:\n    def __init__(self, **k):\n        for n in k: setattr(self, n, k[n])\n"
      "class B:\n    size = 1\n";
  EXPECT_EQ(refused(two + "A().anything\n"), "");
  EXPECT_EQ(refused(two + "B().siez\n"), "siez");
  // What is assigned passes on as it is.
  EXPECT_EQ(refused("class A:\n    def __setattr__(self, name, value):\n"
                    "        super().__setattr__(name, value)\n    size = 1\nA().siez\n"),
            "siez");
  EXPECT_EQ(refused("class A:\n    size = 1\n    def __getstate__(self):\n"
                    "        return self.__dict__.copy()\nA().siez\n"),
            "siez");
  EXPECT_EQ(refused("class A:\n    size = 1\n    def __new__(cls):\n"
                    "        return super().__new__(cls)\nA().siez\n"),
            "siez");
  EXPECT_EQ(refused("from enum import Enum\nclass E(Enum):\n    A = 1\nE.A.nmae\n"), "nmae");
}

TEST(DynamicPythonTest, WrongNamesBesideConditionsBehindAreRefused) {
  auto set = AllMonitors(Language::kPython);
  ASSERT_NE(set, nullptr);
  const auto refused = [&](const std::string& text) {
    const auto refusal = Judge(*set, text);
    return refusal ? refusal->identifier : "";
  };
  // What neither the class nor one below it has.
  const std::string date = "import datetime\ndef f(d: datetime.date):\n    return ";
  EXPECT_EQ(refused(date + "d.hour if isinstance(d, datetime.datetime) else 0\n"), "");
  EXPECT_EQ(refused(date + "d.huor if isinstance(d, datetime.datetime) else 0\n"), "huor");
  EXPECT_EQ(refused(date + "d.huor if isinstance(d, str) else 0\n"), "huor");
  EXPECT_EQ(refused("import ast\nt = ast.parse('a')\n"
                    "x = [n.di for n in ast.walk(t) if isinstance(n, ast.Name)]\n"),
            "di");
  // A class without classes below it.
  EXPECT_EQ(refused("class A:\n    size = 1\nx: A = A()\nprint(1, x.siez)\n"), "siez");
  EXPECT_EQ(refused("import enum\ndef f(s: str):\n    return s.nmae\n"), "nmae");
  EXPECT_EQ(refused("def f(x: float):\n    return x.bit_length() + x.bit_lenght()\n"),
            "bit_lenght");
  // Only what is replaced is open.
  const std::string patched =
      "import json\nfrom unittest import mock\nwith mock.patch('json.loads'):\n    ";
  EXPECT_EQ(refused(patched + "print(1, json.loads.assert_called_once())\n"), "");
  EXPECT_EQ(refused(patched + "print(1, json.laods('1'))\n"), "laods");
  // What is caught is another error.
  EXPECT_EQ(refused("def f(s: str):\n    try:\n        return s.uper()\n"
                    "    except ValueError:\n        return s\n"),
            "uper");
}

TEST(DynamicPythonTest, WrongNamesNextToWhatIsOpenAreRefused) {
  auto set = AllMonitors(Language::kPython);
  ASSERT_NE(set, nullptr);
  const auto refused = [&](const std::string& text) {
    const auto refusal = Judge(*set, text);
    return refusal ? refusal->identifier : "";
  };
  // A match statement that is read as an assignment, and names in patterns.
  const std::string match = "import sys\nmatch [1, sys]:\n    case [one, two]:\n        ";
  EXPECT_EQ(refused(match + "one.real + two.path\n"), "");
  EXPECT_EQ(refused(match + "onne.real\n"), "onne");
  EXPECT_EQ(refused("x = 1\nmatch x:\n    case Ponit(a=1):\n        pass\n"), "Ponit");
  EXPECT_EQ(refused("x = 1\nmatch x:\n    case Colour.RED:\n        pass\n"), "Colour");
  EXPECT_EQ(refused("x = 1\nmatch x:\n    case {'a': key, **rest}:\n        print(key, rest)\n"),
            "");
  // Names of no version.
  EXPECT_EQ(refused("import sys\nPY2 = sys.version_info[0] == 2\nx = sys.maxnit if PY2 else 1\n"),
            "maxnit");
  EXPECT_EQ(refused("import sys\nx = sys.maxint\n"), "maxint");
  EXPECT_EQ(refused("def f(d: dict):\n    if len(d):\n        return 1\n    return d.iteritms()\n"),
            "iteritms");
  // What is given to a function of the library stays as it is.
  EXPECT_EQ(
      refused("import copy\nclass A:\n    size = 1\na = A()\nb = copy.copy(a)\nprint(1, a.siez)\n"),
      "siez");
  EXPECT_EQ(refused("import no\nclass A:\n    size = 1\nno.register(A)\nprint(1, A.siez)\n"), "");
  EXPECT_EQ(refused("import no\nclass A:\n    size = 1\nno.register(1)\nprint(1, A.siez)\n"),
            "siez");
  EXPECT_EQ(refused("import no, os\nx = no.load(1)\nprint(1, os.getcwdd)\n"), "getcwdd");
}

TEST(DynamicPythonTest, WrongNamesNextToFailedTestsAreRefused) {
  auto set = AllMonitors(Language::kPython);
  ASSERT_NE(set, nullptr);
  const auto refused = [&](const std::string& text) {
    const auto refusal = Judge(*set, text);
    return refusal ? refusal->identifier : "";
  };
  const std::string head = "def f(v: str | bytes, w: str):\n    ";
  // A class is left, the test is of another object, a condition with `and` may fail by its rest.
  EXPECT_EQ(refused(head + "if not isinstance(v, str):\n        v.isofromat()\n"), "isofromat");
  EXPECT_EQ(refused(head + "if not isinstance(v, str):\n        w.isofromat()\n"), "isofromat");
  EXPECT_EQ(refused(head + "if isinstance(w, str):\n        w.isofromat()\n"), "isofromat");
  EXPECT_EQ(refused(head + "if isinstance(w, str) and w.isdigit():\n        return 1\n"
                           "    return w.isofromat()\n"),
            "isofromat");
  EXPECT_EQ(refused(head + "if not isinstance(w, str):\n        print(1)\n    w.isofromat()\n"),
            "isofromat");
  // Assigned again.
  EXPECT_EQ(refused(head + "if not isinstance(w, str):\n        w = str(w)\n"
                           "        return w.isofromat()\n"),
            "isofromat");
  // Tuples of the library, and of a parameter.
  EXPECT_EQ(refused("import os\nt = os.path.split('a')\nprint(1, t.head)\n"), "head");
  EXPECT_EQ(refused("def f(t: tuple[int, int]):\n    return t.y\n"), "y");
  EXPECT_EQ(refused("import argparse\nclass A:\n    size = 1\na = A()\n"
                    "b = argparse.ArgumentParser().parse_args([])\nprint(1, a.siez)\n"),
            "siez");
}

// In a text that is written, the names are those that a list proposes.
TEST(DynamicPythonTest, WhatIsWrittenIsWhatAListProposes) {
  auto set = AllMonitors(Language::kPython);
  ASSERT_NE(set, nullptr);
  const auto names = [&](const std::string& text) { return set->Start(text).Expected(); };
  const auto has = [](const std::shared_ptr<const Completions>& of, const std::string& name) {
    return of != nullptr && std::ranges::binary_search(of->names, name);
  };
  // Read, the text may go on with an assignment; what the stub imports is there as well.
  EXPECT_EQ(names("import os\nos."), nullptr);
  EXPECT_TRUE(has(names("import datetime\nx = datetime."), "sys"));
  EXPECT_TRUE(has(names("import sys\nx = sys."), "maxint"));
  EXPECT_TRUE(names("class Cart:\n    n = 1\nc = Cart()\nx = c.")->private_free);
  set->TextsAreWritten();
  EXPECT_TRUE(has(names("import os\nos."), "getcwd"));
  EXPECT_FALSE(has(names("import os\nos."), "sys"));
  EXPECT_FALSE(has(names("import datetime\nx = datetime."), "sys"));
  EXPECT_FALSE(has(names("import datetime\nx = datetime."), "_D"));
  EXPECT_TRUE(has(names("import datetime\nx = datetime."), "timedelta"));
  EXPECT_FALSE(has(names("import sys\nx = sys."), "maxint"));
  EXPECT_FALSE(has(names("import itertools\nx = itertools."), "batched"));  // of 3.12
  EXPECT_TRUE(has(names("import itertools\nx = itertools."), "pairwise"));
  EXPECT_TRUE(has(names("import os\nx = os."), "path"));
  EXPECT_TRUE(has(names("import json\nx = json."), "JSONDecodeError"));
  const auto cart = names("class Cart:\n    _n = 1\nc = Cart()\nx = c.");
  EXPECT_TRUE(has(cart, "_n"));
  EXPECT_FALSE(cart->private_free);
  EXPECT_FALSE(set->Start("class Cart:\n    _n = 1\nc = Cart()\nx = c.").Add("_m", nullptr));
  // What Python calls itself, until it is asked for.
  EXPECT_FALSE(has(cart, "__init_subclass__"));
  EXPECT_FALSE(has(cart, "__doc__"));
  EXPECT_TRUE(has(cart, "__class__"));  // other.__class__ is what methods read
  EXPECT_TRUE(set->Start("class Cart:\n    _n = 1\nc = Cart()\nx = c.").Add("__eq__", nullptr));
  EXPECT_TRUE(has(names("class A(dict):\n    def __init__(self):\n        super()."), "__init__"));
}

}  // namespace
}  // namespace pawl::monitors
