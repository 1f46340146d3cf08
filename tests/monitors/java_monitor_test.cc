// Java under monitors: class files, the repository, typing at the cursor.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "plugins/monitors/java/class_path.h"
#include "src/base/file.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

// package com.shop;
// public class Basket<T extends Comparable<T>> {
//   public static final int LIMIT = 3;
//   protected java.util.List<T> items;
//   private int hidden;
//   public T first() { return null; }
//   public static <U> java.util.Map<String, ? extends U> named(U[] all, int... rest) { return null;
//   } public class Slot {}
// }
constexpr std::string_view kBasket =
    "cafebabe0000003d001f0a000200030700040c000500060100106a6176612f6c616e672f4f626a6563740100"
    "063c696e69743e01000328295607000801000f636f6d2f73686f702f4261736b65740100054c494d49540100"
    "014901000d436f6e7374616e7456616c756503000000030100056974656d730100104c6a6176612f7574696c"
    "2f4c6973743b0100095369676e61747572650100154c6a6176612f7574696c2f4c6973743c54543b3e3b0100"
    "0668696464656e010004436f6465010005666972737401001828294c6a6176612f6c616e672f436f6d706172"
    "61626c653b010005282954543b0100056e616d6564010026285b4c6a6176612f6c616e672f4f626a6563743b"
    "5b49294c6a6176612f7574696c2f4d61703b0100453c553a4c6a6176612f6c616e672f4f626a6563743b3e28"
    "5b54553b5b49294c6a6176612f7574696c2f4d61703c4c6a6176612f6c616e672f537472696e673b2b54553b"
    "3e3b0100323c543a3a4c6a6176612f6c616e672f436f6d70617261626c653c54543b3e3b3e4c6a6176612f6c"
    "616e672f4f626a6563743b01000b4e6573744d656d6265727307001c010014636f6d2f73686f702f4261736b"
    "657424536c6f7401000c496e6e6572436c6173736573010004536c6f74002100070002000000030019000900"
    "0a0001000b00000002000c0004000d000e0001000f00000002001000020011000a0000000300010005000600"
    "0100120000001100010001000000052ab70001b100000000000100130014000200120000000e000100010000"
    "000201b000000000000f000000020015008900160017000200120000000e000100020000000201b000000000"
    "000f0000000200180003000f000000020019001a000000040001001b001d0000000a0001001b0007001e0001";

std::string Unhex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

const java::Member* Named(const java::Class& c, std::string_view name) {
  for (const java::Member& m : c.members) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

TEST(ClassFileTest, ReadsMembersWithTheirGenericTypes) {
  const auto read = java::ReadClassFile(Unhex(kBasket));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->name, "com.shop.Basket");
  EXPECT_EQ(read->package, "com.shop");
  EXPECT_EQ(read->variables, std::vector<std::string>{"T"});
  const java::Member* items = Named(*read, "items");
  ASSERT_NE(items, nullptr);
  EXPECT_EQ(items->visibility, java::Visibility::kProtected);
  EXPECT_EQ(items->type.name, "java.util.List");
  ASSERT_EQ(items->type.args.size(), 1U);
  EXPECT_EQ(items->type.args[0].kind, java::Type::Kind::kVariable);
  EXPECT_TRUE(Named(*read, "LIMIT")->is_static);
  EXPECT_EQ(Named(*read, "hidden")->visibility, java::Visibility::kPrivate);
  const java::Member* named = Named(*read, "named");
  ASSERT_NE(named, nullptr);
  EXPECT_TRUE(named->varargs);
  EXPECT_EQ(named->variables, std::vector<std::string>{"U"});
  ASSERT_EQ(named->parameters.size(), 2U);
  EXPECT_EQ(named->parameters[0].kind, java::Type::Kind::kArray);
  ASSERT_EQ(named->type.args.size(), 2U);
  EXPECT_EQ(named->type.args[1].kind, java::Type::Kind::kExtends);
  EXPECT_EQ(Named(*read, "Slot")->kind, java::Member::Kind::kType);
}

TEST(ClassFileTest, DamagedBytesAreAnErrorAndNoCrash) {
  const std::string whole = Unhex(kBasket);
  for (size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_FALSE(java::ReadClassFile(whole.substr(0, cut)).ok()) << cut;
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    (void)java::ReadClassFile(bytes);
  }
}

class JavaMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (java::DefaultJavaModules().empty())
      GTEST_SKIP() << "no .jmod files of a Java development kit on this machine";
    set_ = AllMonitors(Language::kJava);
  }
  std::optional<Refusal> In(const std::string& statements) {
    return Judge(*set_,
                 "import java.util.*;\nimport java.util.stream.*;\nclass A {\n"
                 "  enum Color { RED, GREEN }\n"
                 "  static class Box<T> { T item; T get() { return item; } }\n"
                 "  void f(List<String> words, Map<String, Integer> counts, Color c, Box<String> b)"
                 " {\n" +
                     statements + "\n  }\n}\n");
  }
  void Accepts(const std::string& statements) {
    const auto refusal = In(statements);
    EXPECT_FALSE(refusal.has_value()) << statements << ": " << refusal->identifier;
  }
  void Refuses(const std::string& statements, const std::string& name) {
    const auto refusal = In(statements);
    ASSERT_TRUE(refusal.has_value()) << statements;
    EXPECT_EQ(refusal->identifier, name) << statements;
  }
  std::unique_ptr<MonitorSet> set_;
};

TEST_F(JavaMonitorTest, MembersOfLibraryTypes) {
  Accepts("words.get(0).trim().length();");
  Refuses("words.gett(0);", "gett");
  Refuses("words.get(0).lenght();", "lenght");
  Refuses("for (String w : words) { w.trimm(); }", "trimm");
  Refuses("for (Map.Entry<String, Integer> e : counts.entrySet()) { e.key(); }", "key");
  Refuses("var list = new ArrayList<String>(words); list.get(0).foo();", "foo");
  Refuses("Object o = 1; ((String) o).push();", "push");
  Refuses("int[] a = {1, 2}; int n = a.size;", "size");
  Refuses("String s = true ? \"a\" : words.get(0); s.bar();", "bar");
  Refuses("Strin s; Math.sqroot(1);", "sqroot");
}

TEST_F(JavaMonitorTest, WordsBehindADotThatAreNoMembers) {
  Accepts("Class<?> k = String.class;");
  Accepts("Class<?> k = int[].class;");
  Accepts("A a = A.this; Object o = java.util.Map.class;");
  Refuses("b.super = null;", "super");
  Refuses("words.get(0).class.getName();", "class");
  Refuses("(words).this.size();", "this");
  Accepts("String S = \"a\"; Object o = S.getClass();");
  const auto judge = [&](const std::string& body) {
    return Judge(*set_,
                 "class O {\n  class I {}\n  static class J extends I {\n    J(O o, String s) { " +
                     body + " }\n    Object f(O o) { return o.new I(); }\n  }\n}\n");
  };
  EXPECT_FALSE(judge("o.super();").has_value());
  EXPECT_FALSE(judge("s.super();").has_value());
  EXPECT_TRUE(judge("s.class.getName();").has_value());
}

TEST_F(JavaMonitorTest, GenericsLambdasAndOverloads) {
  Accepts("words.stream().map(w -> w.length()).filter(n -> n.intValue() > 2).count();");
  Refuses("words.stream().map(w -> w.size());", "size");
  Refuses("words.stream().map(String::length).forEach(n -> n.foo());", "foo");
  Refuses("counts.forEach((k, v) -> k.isBlankk());", "isBlankk");
  Refuses("b.get().nothing();", "nothing");
  Refuses("Optional.of(\"a\").get().nope();", "nope");
  Accepts("new StringBuilder().append(1).append(\"a\").reverse().toString();");
  Refuses("new StringBuilder().append(1).appendd(\"a\");", "appendd");
  Refuses("if (words instanceof ArrayList<String> list) { list.trimToSizee(); }", "trimToSizee");
}

// What a constructor's lambda is given: by the arguments of the class, where they are written.
TEST_F(JavaMonitorTest, LambdasOfConstructors) {
  const auto judge = [&](const std::string& made) {
    return Judge(*set_,
                 "class Task<T> {\n  interface Work<T> { void run(T t, String s); }\n"
                 "  Task(Work<T> work) {}\n}\nclass Use {\n  Task<?> task = new " +
                     made + ";\n}\n");
  };
  EXPECT_FALSE(judge("Task<String>((t, s) -> t.length())").has_value());
  EXPECT_TRUE(judge("Task<String>((t, s) -> t.size())").has_value());
  EXPECT_TRUE(judge("Task<String>((t, s) -> s.size())").has_value());
  EXPECT_FALSE(judge("Task<Use>((t, s) -> t.later())").has_value());
  EXPECT_FALSE(judge("Task<>((t, s) -> t.anything())").has_value());
  EXPECT_FALSE(judge("Task((t, s) -> t.anything())").has_value());
}

TEST_F(JavaMonitorTest, MethodsOfAnInterfaceAbove) {
  EXPECT_FALSE(Judge(*set_,
                     "interface X { default void foo() {} }\n"
                     "class A { static class Y implements X { public void foo() { X.super.foo(); } "
                     "} }\n")
                   .has_value());
}

TEST_F(JavaMonitorTest, Imports) {
  for (const char* right :
       {"import java.util.List;\n", "import java.util.*;\n",
        "import java.util.concurrent.Future;\n", "package a; import java.util.List;\n",
        "import java.util.Map.Entry;\n", "import static java.lang.Math.abs;\n",
        "import com.foo.Bar;\n", "import javax.foo.Bar;\n"}) {
    const auto refusal = Judge(*set_, std::string(right) + "class A {}\n");
    EXPECT_FALSE(refusal.has_value()) << right << refusal->identifier;
  }
  for (const auto& [wrong, name] :
       {std::pair("import java.utill.List;\n", "utill"),
        {"import java.util.Lisst;\n", "Lisst"},
        {"import java.io.File; import java.util.concurrent.Futur;\n", "Futur"}}) {
    const auto refusal = Judge(*set_, std::string(wrong) + "class A {}\n");
    ASSERT_TRUE(refusal.has_value()) << wrong;
    EXPECT_EQ(refusal->identifier, name);
  }
}

TEST_F(JavaMonitorTest, WhatIsNotKnownIsOpen) {
  Accepts("Unknown u = null; u.anything(); u.field.more();");
  Accepts("this.later(); later().anything();");
  Accepts("var x = helper(words); x.anything();");
  Accepts("new Object() { void g() {} }.g();");
}

TEST_F(JavaMonitorTest, LabelsOfSwitches) {
  Accepts("switch (c) { case RED: break; case GREEN: break; default: }");
  Refuses("switch (c) { case BLUE: break; }", "BLUE");
  Refuses("int n = switch (c) { case BLACK -> 2; };", "BLACK");
  Accepts("int n = switch (c) { case RED, GREEN -> 2; };");
  Refuses("int n = switch (c) { case RED, BLACK -> 2; };", "BLACK");
  Refuses("switch (c) { case RED,\n  WHITE: break; }", "WHITE");
}

TEST_F(JavaMonitorTest, ClassesThatCannotBeMade) {
  const auto judge = [&](const std::string& statement) {
    return Judge(
        *set_,
        "import java.util.AbstractList;\nimport java.util.*;\nclass A {\n"
        "  static abstract class Base { Base(int n) {} }\n  interface Shape { void d(); }\n"
        "  enum Color { RED }\n  static class Leaf extends Base { Leaf() { super(1); } }\n"
        "  void f() {\n" +
            statement + "\n  }\n}\n");
  };
  for (const char* well : {"Base b = new Leaf();", "Base b = new Base(f(1, \")\")) { };",
                           "Shape s = new Shape() { public void d() {} };",
                           "g(new Base(2)\n  /* a body */ { });", "Shape[] all = new Shape[3];",
                           // Something of this name may be declared further down.
                           "Object o = new Collection();", "Object o = new Elsewhere();"}) {
    const auto refusal = judge(well);
    EXPECT_FALSE(refusal.has_value()) << well << ": " << refusal->message;
  }
  EXPECT_EQ(judge("Base b = new Base(2);").value_or(Refusal{}).identifier, "Base");
  EXPECT_EQ(judge("g(new Shape());").value_or(Refusal{}).identifier, "Shape");
  EXPECT_EQ(judge("g(new Shape().d());").value_or(Refusal{}).identifier, "Shape");
  EXPECT_EQ(judge("var c = new Color();").value_or(Refusal{}).identifier, "Color");
  EXPECT_EQ(judge("Object o = new AbstractList<String>();").value_or(Refusal{}).identifier,
            "AbstractList");
}

TEST_F(JavaMonitorTest, AssignmentsToWhatIsFinal) {
  const auto judge = [&](const std::string& members) {
    return Judge(*set_,
                 "class A {\n  final int once;\n  static final int MOST = 3;\n  int n;\n  A() " +
                     members + "\n}\n");
  };
  for (const char* well :
       {"{ once = 1; this.once = 2; n = 3; n++; }", "{ final int k; k = 1; }",
        "{ int MOST = 1; MOST = 2; }", "{ if (MOST == n || MOST <= 3 || MOST != 1) n = 1; }",
        "{ for (final int i : new int[0]) { int j = i; j += 1; } } void f(int MOST) { MOST = 4; }",
        "{ Runnable r = () -> { n = 1; }; } void g(A o) { new A() { int MOST; { MOST = 1; } }; }",
        "{ once = 1; } void f(Object o) { if (o instanceof Integer MOST) { MOST = 5; } }",
        "{ once = 1; } class B extends A { { MOST = 2; } }",
        "{ try (var r = open()) { n = 1; } catch (Exception r) { r = null; } }"}) {
    const auto refusal = judge(well);
    EXPECT_FALSE(refusal.has_value()) << well << ": " << refusal->identifier;
  }
  const std::pair<const char*, const char*> ill[] = {
      {"{ MOST = 2; }", "MOST"},
      {"{ MOST += 2; }", "MOST"},
      {"{ this.MOST = 2; }", "MOST"},
      {"{ MOST++; }", "MOST"},
      {"{ final int k = 1; if (n > 1) { k = 2; } }", "k"},
      {"{ for (final int i : new int[0]) { i -= 1; } }", "i"},
      {"{ once = 1; } void f() { once = 2; }", "once"},
      {"{ } void f(final String s) { s = null; }", "s"},
      {"{ try (var r = open()) { r = null; } }", "r"},
  };
  for (const auto& [members, name] : ill)
    EXPECT_EQ(judge(members).value_or(Refusal{}).identifier, name) << members;
}

TEST_F(JavaMonitorTest, NumbersOfArguments) {
  Accepts("words.add(0, \"a\"); words.add(\"b\"); String.format(\"%s\", 1, 2, 3);");
  Refuses("words.get(0, 1);", "get");
  Refuses("new HashMap<String, String>(1, 2f, 3);", "HashMap");
}

TEST_F(JavaMonitorTest, ClassesOfTheRepository) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "java_repository";
  fs::create_directories(folder / "src/com/shop");
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile((folder / "src/com/shop" / name).string(), text).ok());
  };
  write("Item.java",
        "package com.shop;\npublic class Item extends Thing { public String label() { "
        "return \"\"; } private int secret; }\n");
  write("Thing.java", "package com.shop;\npublic abstract class Thing { public int weight; }\n");
  write("Made.java",
        "package com.shop;\nimport lombok.Data;\n@Data public class Made { int a; }\n");
  write("Odd.java", "package com.shop;\npublic class Odd extends org.elsewhere.Base { }\n");
  auto set = MonitorSet::Make(Language::kJava, {.repo = folder.string()});
  ASSERT_TRUE(set.ok());
  const auto judge = [&](const std::string& statement) {
    return Judge(**set,
                 "package org.user;\nimport com.shop.Item;\nimport com.shop.*;\nclass A { void "
                 "f(Item item, Made made, Odd odd) { " +
                     statement + " } }\n");
  };
  EXPECT_FALSE(judge("item.label().trim(); int w = item.weight;").has_value());
  EXPECT_EQ(judge("item.lable();").value_or(Refusal{}).identifier, "lable");
  EXPECT_EQ(judge("int s = item.secret;").value_or(Refusal{}).identifier, "secret");
  EXPECT_EQ(judge("item.label().trimm();").value_or(Refusal{}).identifier, "trimm");
  EXPECT_FALSE(judge("made.getA(); odd.anything();").has_value());
  fs::remove_all(folder);
}

// HashMap.Node is not public, so a class that derives from HashMap does not inherit it.
TEST_F(JavaMonitorTest, NestedClassesThatAreNotInherited) {
  const std::string program =
      "class Node<K> { K key; Node(K k, int n) { key = k; } }\n"
      "class Store extends java.util.HashMap<String, String> {\n"
      "  int f() { Node<String> n = new Node<>(\"a\", 1); return n.key.length(); }\n}\n";
  auto set = AllMonitors(Language::kJava);
  EXPECT_FALSE(Judge(*set, program).has_value());
}

TEST_F(JavaMonitorTest, RandomDamageNeverCrashes) {
  const std::string original =
      "package a.b;\nimport java.util.*;\npublic class Shop<T extends Comparable<T>> {\n"
      "  private final Map<String, List<T>> all = new HashMap<>();\n"
      "  enum Size { SMALL, LARGE { int x() { return 1; } }; int x() { return 0; } }\n"
      "  record Pair(String left, int right) { Pair { left.trim(); } }\n"
      "  T best(String name) { return all.getOrDefault(name, List.of()).stream()\n"
      "    .max((x, y) -> x.compareTo(y)).orElse(null); }\n"
      "  String text(Size s, Object o) { var t = \"\"\"\n      long \"text\"\n      "
      "\"\"\".strip();\n"
      "    switch (s) { case SMALL: return t; default: }\n"
      "    if (o instanceof Pair p && p.left().isEmpty()) { return p.left().trim(); }\n"
      "    try (var in = new java.io.StringReader(t)) { in.read(); } catch (Exception e) { "
      "e.getMessage(); }\n    int[] n = {1, 2}; for (int i : n) { t += i; }\n"
      "    return new Object() { String g() { return t0().trim(); } String t0() { return \"\"; } "
      "}.toString();\n  }\n}\n";
  EXPECT_FALSE(Judge(*set_, original).has_value()) << Judge(*set_, original)->identifier;
  std::mt19937 random(7);
  const std::string_view pieces[] = {"(",      ")",  "{",    "}",      "<", ">",  "\"",
                                     "'",      "/*", "//",   ".",      ";", "->", "case ",
                                     "class ", "\\", "\xff", "\"\"\"", "?", ":",  "@"};
  for (int round = 0; round < 60; ++round) {
    std::string text = original;
    for (int k = 0; k < 1 + static_cast<int>(random() % 4); ++k) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text.erase(at, 1 + random() % 20);
      } else {
        text.insert(at, pieces[random() % std::size(pieces)]);
      }
      if (text.empty()) text = " ";
    }
    Judge(*set_, text);
  }
}

}  // namespace
}  // namespace pawl::monitors
