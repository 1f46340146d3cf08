// Java under monitors: names of packages, places where only a type may stand, modules.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "plugins/monitors/java/class_path.h"
#include "plugins/monitors/java/modules.h"
#include "plugins/monitors/java/packages.h"
#include "src/base/file.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

class JavaPackagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (java::DefaultJavaModules().empty())
      GTEST_SKIP() << "no .jmod files of a Java development kit on this machine";
    folder_ = fs::path(::testing::TempDir()) / "java_packages";
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    ASSERT_TRUE(WriteFile((folder_ / name).string(), text).ok());
  }
  std::unique_ptr<MonitorSet> SetOf(const std::string& file) {
    auto set = MonitorSet::Make(Language::kJava,
                                {.repo = folder_.string(), .file = (folder_ / file).string()});
    EXPECT_TRUE(set.ok());
    return std::move(*set);
  }
  // What is refused, "" for a text that is not.
  static std::string Refused(MonitorSet& set, const std::string& text) {
    return Judge(set, text).value_or(Refusal{}).identifier;
  }
  fs::path folder_;
};

TEST_F(JavaPackagesTest, OnlyTypesStandHere) {
  const auto set = AllMonitors(Language::kJava);
  const auto judge = [&](const std::string& members) {
    return Refused(*set,
                   "import java.util.*;\nclass A {\n  static class In { static class Deep {} }\n" +
                       members + "\n}\n");
  };
  for (const char* well :
       {"void f(Map.Entry<String, A> e, final java.io.File g) throws java.io.IOException {}",
        "public Map.Entry<String, In.Deep> e; Map<String, java.util.List<In>> m;",
        "void f() { try { g(); } catch (java.io.IOException | java.sql.SQLException e) {} }",
        "class B extends java.util.AbstractList<A> implements java.io.Serializable {}",
        "@java.lang.Deprecated void f() { Object o = new java.util.ArrayList<A>(); }",
        "@Unknown(java.util.Map.Entry.class) javax.inject.Provider<A> p; org.foo.Bar b;",
        "Class<?> k = boolean.class; Class<?> l = String[].class; Object o = new javax.foo.Bar();",
        "void f(Unknown.Any a, later.Name b) { javax.swing.JFrame j; java.util.Arrays.sort(x); }",
        "static class Sub extends Unknown { Map.Here h; }", "Object f() { return x.new Y(); }",
        "void f() { var list = new ArrayList<A>(); list.siz\\u0065(); }"}) {
    EXPECT_EQ(judge(well), "") << well;
  }
  const std::pair<const char*, const char*> ill[] = {
      {"void f(Map.Entri<String, A> e) {}", "Entri"},
      {"void f(int a, final java.io.Fil g) {}", "Fil"},
      {"void f() throws java.io.IOExeption {}", "IOExeption"},
      {"public Map.Entrie<String> e;", "Entrie"},
      {"void f() { try { g(); } catch (java.io.IOException | java.sql.SqlException e) {} }",
       "SqlException"},
      {"class B extends java.util.AbstractLst<A> {}", "AbstractLst"},
      {"@java.lang.Depricated void f() {}", "Depricated"},
      {"Object o = new java.util.ArayList<A>();", "ArayList"},
      {"Object o = new javax.swing.JFrme();", "JFrme"},
      {"void f() { java.utils.Arrays.sort(null); }", "utils"},
      {"Class<?> k = boolean.clas;", "clas"},
      {"Class<?> k = String[].length;", "length"},
      {"int n = Map.super.size();", ""},
  };
  for (const auto& [members, name] : ill) EXPECT_EQ(judge(members), name) << members;
}

TEST_F(JavaPackagesTest, Imports) {
  const auto set = AllMonitors(Language::kJava);
  for (const char* well :
       {"import javax.inject.Inject;", "import javax.xml.parsers.SAXParser;",
        "import javax.xml.bind.JAXB;", "import static java.util.Map.Entry;",
        "import static java.lang.Math.max;", "import java.util.Map.Entry;",
        "import com.sun.mail.Any;", "import jakarta.ws.rs.Path;", "import static a.b.C.d;"}) {
    EXPECT_EQ(Refused(*set, std::string(well) + "\nclass A {}\n"), "") << well;
  }
  const std::pair<const char*, const char*> ill[] = {
      {"import javax.xml.parsers.SaxParser;", "SaxParser"},
      {"import static java.lang.Math.maxx;", "maxx"},
      {"import java.util.Map.Entri;", "Entri"},
      {"import org.w3c.dom.Nod;", "Nod"},
  };
  for (const auto& [import, name] : ill)
    EXPECT_EQ(Refused(*set, std::string(import) + "\nclass A {}\n"), name) << import;
}

// What a field is called further down may hide one that is known: nothing is said then.
TEST_F(JavaPackagesTest, FieldsThatMayBeHidden) {
  const auto set = AllMonitors(Language::kJava);
  EXPECT_EQ(Refused(*set,
                    "class A { String s; class In { int f() { return s.size(); } "
                    "java.util.List<A> s; } }"),
            "");
  EXPECT_EQ(Refused(*set, "class A { String s; Runnable r = () -> s.size(); }"), "size");
  EXPECT_EQ(Refused(*set, "class Acc {}\nclass A { void f(Acc acc) { acc.super = null; } }"),
            "super");
  EXPECT_EQ(Refused(*set,
                    "class A extends java.util.ArrayList<String> { class In { int f() { return "
                    "A.super.siz(); } } }"),
            "siz");
}

TEST_F(JavaPackagesTest, AModuleNamesWhatItReads) {
  Write("app/module-info.java",
        "/* module of the shop */ module app {\n  requires java.sql; // and java.logging\n"
        "  requires transitive lib;\n  exports com.shop;\n}\n");
  Write("app/com/shop/Item.java", "package com.shop;\npublic class Item { class Part {} }\n");
  Write("app/com/shop/Cart.java", "package com.shop;\nclass Cart { int old; }\nclass Old {}\n");
  Write("lib/module-info.java", "@Deprecated open module lib { requires static java.net.http; }\n");
  Write("lib/org/lib/Tool.java", "package org.lib;\npublic class Tool {}\n");
  auto set = SetOf("app/com/shop/Cart.java");
  const auto judge = [&](const std::string& text) { return Refused(*set, text); };
  for (const char* well : {"package com.shop;", "import com.shop.Item;", "import org.lib.Tool;",
                           "import java.util.logging.Logger;", "import com.shop.Item.Part;",
                           "import java.sql.Date;", "package com.shop; import com.shop.Cart.Line;",
                           "package com.shop; class Cart { java.sql.Date d; org.lib.Tool t; Old o; "
                           "int n = o.any; }"}) {
    EXPECT_EQ(judge(well), "") << well;
  }
  const std::pair<const char*, const char*> ill[] = {
      {"package com.shpo;", "shpo"},
      {"import com.shop.Itm;", "Itm"},
      {"import org.junit.Test;", "junit"},
      {"import java.awt.Color;", "awt"},
      {"import java.net.http.HttpClient;", "http"},
      {"package com.shop; class Cart { org.lib.Tol t; }", "Tol"},
      {"package com.shop; class Cart { Object o = new org.lob.Tool(); }", "lob"},
  };
  for (const auto& [text, name] : ill) EXPECT_EQ(judge(text), name) << text;
  // A build tool may add sources, and a module that is not found has packages that are not known.
  Write("app/pom.xml", "<project/>");
  set = SetOf("app/com/shop/Cart.java");
  EXPECT_EQ(judge("import org.junit.Test;"), "");
  fs::remove(folder_ / "app/pom.xml");
  Write("app/module-info.java", "module app { requires org.unknown; }");
  set = SetOf("app/com/shop/Cart.java");
  EXPECT_EQ(judge("import org.junit.Test;"), "");
}

TEST(JavaModuleTest, Descriptions) {
  const auto module = java::ReadModuleText(
      "import a.b.C;\n@Note(\"module x { requires y; }\")\nopen module com.shop.app {\n"
      "  requires static transitive java.sql;\n  requires /* requires z; */ a . b;\n"
      "  requires transitive;\n  uses a.requires.Foo;\n}\n");
  ASSERT_TRUE(module.has_value());
  EXPECT_EQ(module->name, "com.shop.app");
  ASSERT_EQ(module->requirements.size(), 3U);
  EXPECT_EQ(module->requirements[0].name, "java.sql");
  EXPECT_TRUE(module->requirements[0].transitive);
  EXPECT_EQ(module->requirements[1].name, "a.b");
  EXPECT_FALSE(module->requirements[1].transitive);
  EXPECT_EQ(module->requirements[2].name, "transitive");
  for (const char* none : {"", "class A {}", "module", "module x", "module x { requires y"})
    EXPECT_FALSE(java::ReadModuleText(none).has_value()) << none;
}

TEST_F(JavaPackagesTest, ModulesOfTheKit) {
  java::ClassPath path({java::DefaultJavaModules()});
  const auto* sql = path.ModuleNamed("java.sql");
  ASSERT_NE(sql, nullptr);
  EXPECT_TRUE(std::any_of(sql->module.requirements.begin(), sql->module.requirements.end(),
                          [](const auto& r) { return r.name == "java.xml" && r.transitive; }));
  EXPECT_TRUE(path.OfKit("javax.sql"));
  EXPECT_TRUE(path.OfKit("org.w3c.dom"));
  EXPECT_FALSE(path.OfKit("sun.security.util"));  // exported to some
  EXPECT_FALSE(path.OfKit("javax"));
  EXPECT_EQ(path.ModuleNamed("org.unknown"), nullptr);
  // Damaged descriptions are errors and no crash.
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes("\xca\xfe\xba\xbe\0\0\0\x3d", 8);
    for (int i = 0; i < 60; ++i) bytes += static_cast<char>(random() % 24);
    (void)java::ReadModuleFile(bytes);
  }
}

// However a text is cut, the places of types are found or not; nothing else happens.
TEST_F(JavaPackagesTest, AnyTextIsLookedAt) {
  const std::string text =
      "/** {@link a.b.} */ @A(\"x;{\") public <T extends a.B> Map.Entry<c.D, T> f(g.H... h) "
      "throws i.J { for (k.L m : n) { char c = '{'; o.P.q(r -> new s.T() { u.V w; }); } }";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    (void)java::TypePlaceAt(text.substr(0, cut));
    (void)java::DottedPlaceAt(text.substr(0, cut));
    (void)java::OnlyClassFollows(text.substr(cut));
  }
  const auto place = java::TypePlaceAt(text.substr(0, text.find("H...")));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->before, "g");
  EXPECT_TRUE(place->of_member);
  EXPECT_FALSE(java::TypePlaceAt("class A { int n = f(a.").has_value());
  EXPECT_FALSE(java::TypePlaceAt("class A { @B(a.").has_value());
  EXPECT_TRUE(java::TypePlaceAt("class A { int x; void f() { new a.b.").value().anywhere);
}

}  // namespace
}  // namespace pawl::monitors
