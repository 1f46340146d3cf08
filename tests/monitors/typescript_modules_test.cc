// Imports of TypeScript: what another file of the repository declares is known here, with its
// types; what cannot be found is open. Repositories of random exports are compared with what their
// writer knows of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "plugins/monitors/typescript/module_files.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

class TypeScriptModulesTest : public testing::Test {
 protected:
  void SetUp() override {
    base_ =
        fs::temp_directory_path() / ("pawl_modules_" + std::to_string(getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(base_);
    fs::create_directories(base_ / "repo/src");
  }
  void TearDown() override { fs::remove_all(base_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((base_ / "repo" / name).parent_path());
    std::ofstream(base_ / "repo" / name, std::ios::binary) << text;
  }
  std::unique_ptr<MonitorSet> Set(const std::string& file = "src/app.ts") {
    auto made = MonitorSet::Make(Language::kTypeScript, {.repo = (base_ / "repo").string(),
                                                         .file = (base_ / "repo" / file).string()});
    return made.ok() ? *std::move(made) : nullptr;
  }
  // The name that is refused; empty: none.
  std::string Refused(const std::string& text, const std::string& file = "src/app.ts") {
    const auto refusal = Judge(*Set(file), text);
    return refusal ? refusal->identifier : "";
  }
  // Behind the text only the names that are known may come, and no changed one.
  bool Constrained(const std::string& text, const std::string& name) {
    const auto set = Set();
    TextState state = set->Start(text);
    Refusal refusal;
    if (!state.Add(name.substr(0, 1), &refusal) || state.completions() == nullptr) return false;
    const auto& names = state.completions()->names;
    return std::binary_search(names.begin(), names.end(), name) &&
           !std::binary_search(names.begin(), names.end(), name + "_");
  }

  void WriteShop() {
    Write("src/shop/cart.ts",
          "export class Cart {\n"
          "  private items: string[] = [];\n"
          "  itemCount(): number { return this.items.length; }\n"
          "  add(item: string) { this.items.push(item); return this; }\n"
          "}\n"
          "export interface Order { id: number; cart: Cart }\n"
          "export enum Kind { Small, Large }\n"
          "export type Orders = Order[];\n"
          "export default function makeCart(): Cart { return new Cart(); }\n"
          "export const units = { kilo: 'kg', metre: 'm' } as const;\n");
    Write("src/shop/index.ts",
          "export * from './cart';\n"
          "export { default, Cart as Basket } from './cart';\n"
          "export * as all from './cart';\n"
          "export type { Order as O } from './cart';\n");
  }

  fs::path base_;
};

TEST_F(TypeScriptModulesTest, AStatementBehindAClassOnItsLine) {
  Write("src/one.ts", "export default class { x = 1 } export const size = 1;\n");
  const std::string head = "import One, { size } from './one';\n";
  EXPECT_EQ(Refused(head + "size.toFixed(1);\nnew One().x.toFixed(1);\n"), "");
  EXPECT_EQ(Refused(head + "size.toFixd(1);\n"), "toFixd");
}

TEST_F(TypeScriptModulesTest, TypesFlowThroughImports) {
  WriteShop();
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"import { Cart } from './shop';\nconst cart = new Cart();\ncart.", "itemCount"},
      {"import { Basket } from './shop';\nnew Basket().add('x').", "itemCount"},
      {"import make from './shop';\nmake().", "itemCount"},
      {"import make, { Kind as K } from './shop/cart';\nmake().add('a');\nK.", "Large"},
      {"import * as shop from './shop';\nshop.", "Basket"},
      {"import * as shop from './shop';\nnew shop.all.Cart().", "add"},
      {"import type { O } from './shop';\nfunction f(o: O) { o.cart.", "itemCount"},
      {"import { type Orders } from './shop/index.js';\nfunction f(o: Orders) { o[0].", "cart"},
      {"import { all } from './shop';\nall.Kind.", "Small"},
      {"import { units } from './shop/cart';\nunits.", "metre"},
      {"import type * as shop from './shop';\nlet o: shop.", "Order"},
      {"import type * as shop from './shop';\nlet o: Map<string, shop.", "Order"},
      {"import { Cart } from './shop';\nclass Big extends Cart { f() { super.", "add"},
      {"import shop = require('./shop');\nnew shop.Cart().", "add"},
  };
  for (const auto& [text, name] : texts) {
    EXPECT_TRUE(Constrained(text, name)) << text << name;
  }
  EXPECT_EQ(Refused("import { Cart } from './shop';\nnew Cart().itemCout();\n"), "itemCout");
  EXPECT_EQ(Refused("import { Cart } from './shop';\nnew Cart().itemCount();\n"), "");
  EXPECT_EQ(Refused("import { Cart } from './shop';\nnew Cart().add();\n"), "add");
  EXPECT_EQ(Refused("import { units } from './shop';\nunits.kilo = 'g';\n"), "kilo");
}

TEST_F(TypeScriptModulesTest, WhatIsNotFoundIsOpen) {
  WriteShop();
  Write("src/me.ts",
        "import { App } from './app';\nexport function app(): App { return null!; }\n");
  Write("src/far.ts", "export * from './gone';\nexport class Near { a = 1; }\n");
  Write("src/broken.ts", "export class A { x = 1; ]]] }\nexport class B { y = 1; }\n");
  Write("src/huge.ts", "export class H { a = 1; }\n//" + std::string(2U << 20, 'x') + "\n");
  std::ofstream(base_ / "outside.ts") << "export class Out { a = 1; }\n";
  fs::create_symlink(base_ / "outside.ts", base_ / "repo/src/link.ts");
  for (const std::string text : {
           "import { A } from './gone';\nnew A().anything;\n",
           "import { missing } from './shop';\nmissing.anything;\n",
           "import { app } from './me';\nclass App { later = 1; }\napp().anything;\n",
           "import * as far from './far';\nfar.anything;\n",
           "import { A } from './broken';\nnew A().anything;\n",
           "import { H } from './huge';\nnew H().anything;\n",
           "import { Out } from '../../outside';\nnew Out().anything;\n",
           "import { Out } from './link';\nnew Out().anything;\n",
           "import { Map } from 'nowhere';\nclass X extends Map {}\nnew X().anything;\n",
           "import { Cart } from './shop';\n// @ts-expect-error not yet\nnew Cart().anything;\n",
           "import { Cart } from './shop';\ndeclare module './shop/cart' { interface Order { x: 1 "
           "} }\n"
           "import { Order } from './shop';\nfunction f(o: Order) { o.x; }\n",
       }) {
    EXPECT_EQ(Refused(text), "") << text;
  }
  EXPECT_EQ(Refused("import { Near } from './far';\nnew Near().b;\n"), "b");
  // Without a repository nothing is looked for.
  EXPECT_FALSE(Judge(*AllMonitors(Language::kTypeScript),
                     "import { Cart } from './shop';\nnew Cart().anything;\n")
                   .has_value());
}

TEST_F(TypeScriptModulesTest, AliasesOfTsconfig) {
  WriteShop();
  Write("base.json", R"({"compilerOptions": {"baseUrl": "./src"}})");
  Write("tsconfig.json", R"({
    // where things are
    "extends": "./base",
    "compilerOptions": { /* "*" is not a comment */ "paths": { "@/*": ["*"], "the-shop": ["gone", "shop/index"], }, },
  })");
  for (const std::string from : {"@/shop", "@/shop/cart", "the-shop", "shop"}) {
    const std::string text = "import { Cart } from '" + from + "';\nnew Cart().";
    EXPECT_TRUE(Constrained(text, "itemCount")) << from;
  }
  EXPECT_EQ(Refused("import { Cart } from '@/none';\nnew Cart().anything;\n"), "");
  EXPECT_EQ(ts::PlainJson("{\"a//\": [1, /* 2, */ ], // b\n}"), "{\"a//\": [1  ] \n}");
}

TEST_F(TypeScriptModulesTest, DeclarationsOfPackages) {
  Write("node_modules/plain/package.json", R"({"main": "lib/main.js"})");
  Write("node_modules/plain/lib/main.d.ts", "export declare class Tool { turn(): void }\n");
  Write("node_modules/typed/package.json", R"({"typings": "t.d.ts"})");
  Write("node_modules/typed/t.d.ts",
        "declare function typed(): typed.Part;\n"
        "declare namespace typed { interface Part { size: number } }\nexport = typed;\n");
  Write("node_modules/@big/one/package.json",
        R"({"exports": {".": {"types": "./d/index.d.ts"}, "./sub/*": {"types": "./d/*.d.ts"}}})");
  Write("node_modules/@big/one/d/index.d.ts", "export { Deep } from './deep.js';\n");
  Write("node_modules/@big/one/d/deep.d.ts", "export interface Deep { depth: number }\n");
  Write("node_modules/old/package.json",
        R"({"types": "new.d.ts", "typesVersions": {">=3.1": {"*": ["ts3/*"]}}})");
  Write("node_modules/old/ts3/new.d.ts", "export interface Versioned { now: number }\n");
  Write("node_modules/@types/other__part/package.json", R"({"types": "index.d.ts"})");
  Write("node_modules/@types/other__part/index.d.ts",
        "export interface Other {\n  abstract?: boolean;\n  left: number\n}\nexport as namespace "
        "other;\n");
  Write("node_modules/@types/node/package.json", "{}");
  Write("node_modules/@types/node/fs.d.ts",
        "declare module 'fs' {\n  global {\n    interface Extra { a: 1 }\n  }\n"
        "  export function statSync(path: string): Stats;\n"
        "  export interface Stats { size: number }\n}\n"
        "declare module 'node:fs' {\n  export * from 'fs';\n}\n");
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"import { Tool } from 'plain';\nnew Tool().", "turn"},
      {"import typed = require('typed');\nfunction f(p: typed.Part) { p.", "size"},
      {"import type { Deep } from '@big/one';\nfunction f(d: Deep) { d.", "depth"},
      {"import type { Deep } from '@big/one/sub/deep';\nfunction f(d: Deep) { d.", "depth"},
      {"import { Versioned } from 'old';\nfunction f(v: Versioned) { v.", "now"},
      {"import { Other } from '@other/part';\nfunction f(v: Other) { v.", "left"},
      {"import * as fs from 'fs';\nfs.", "statSync"},
      {"import fs from 'node:fs';\nfs.statSync('a').", "size"},
      {"import { statSync as stat } from 'node:fs';\nstat('a').", "size"},
  };
  for (const auto& [text, name] : texts) EXPECT_TRUE(Constrained(text, name)) << text << name;
}

TEST_F(TypeScriptModulesTest, AFileThatChangesIsReadAgain) {
  Write("src/a.ts", "export class A { one = 1; }\n");
  const auto set = Set();
  const std::string text = "import { A } from './a';\nnew A().";
  EXPECT_FALSE(Judge(*set, text + "one;\n").has_value());
  EXPECT_TRUE(Judge(*set, text + "two;\n").has_value());
  Write("src/a.ts", "export class A { one = 1; two = 2; }\n");
  fs::last_write_time(base_ / "repo/src/a.ts",
                      fs::last_write_time(base_ / "repo/src/a.ts") + std::chrono::seconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_FALSE(Judge(*set, text + "two;\n").has_value());
}

TEST_F(TypeScriptModulesTest, FilesThatExportEachOther) {
  Write("src/a.ts",
        "export * from './b';\nexport { x as y } from './b';\nexport class A { a = 1; }\n");
  Write("src/b.ts",
        "export * from './a';\nexport { y as x } from './a';\nimport { A } from './a';\n"
        "export class B extends A { b = 1; }\n");
  EXPECT_EQ(Refused("import { x, y, B } from './a';\nx.a; y.a; new B().a; new B().b;\n"), "");
  EXPECT_EQ(Refused("import { B } from './a';\nnew B().c;\n"), "c");
  EXPECT_EQ(Refused("import * as all from './b';\nall.A; all.B; all.C;\n"), "C");
  Write("node_modules/ring/package.json", R"({"main": "."})");
  EXPECT_EQ(Refused("import { a } from 'ring';\na.b;\n"), "");
}

// Each file has a class, and exports some of the classes of files above it under new names.
TEST_F(TypeScriptModulesTest, RandomExportsAreWhatTheirWriterKnows) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  size_t asked = 0;
  for (int round = 0; round < 6; ++round) {
    struct File {
      std::map<std::string, size_t> classes;  // by exported name
      std::map<std::string, size_t> spaces;   // export * as
    };
    std::vector<File> files;
    for (size_t i = 0; i < 8; ++i) {
      const std::string id = std::to_string(i);
      File file;
      std::string text = "export class C" + id + " { m" + id + " = 1; }\n";
      file.classes["C" + id] = i;
      for (int n = 0; i > 0 && n < 4; ++n) {
        const size_t j = below(i);
        const File& from = files[j];
        const std::string path = "'./f" + std::to_string(j) + "'";
        auto some = from.classes.begin();
        std::advance(some, static_cast<long>(below(from.classes.size())));
        const std::string name = "N" + id + std::to_string(n);
        switch (below(5)) {
          case 0:
            text += "export * from " + path + ";\n";
            for (const auto& [key, of] : from.classes) {
              if (key != "default") file.classes.emplace(key, of);
            }
            for (const auto& [key, of] : from.spaces) file.spaces.emplace(key, of);
            break;
          case 1:
            text += "export { " + some->first + " as " + name + " } from " + path + ";\n";
            file.classes[name] = some->second;
            break;
          case 2:
            text += "import { " + some->first + " as L" + name + " } from " + path +
                    ";\nexport { L" + name + " as " + name + " };\n";
            file.classes[name] = some->second;
            break;
          case 3:
            text += "export * as " + name + " from " + path + ";\n";
            file.spaces[name] = j;
            break;
          default:
            if (file.classes.contains("default")) break;
            text += "import * as S" + name + " from " + path + ";\nexport default C" + id + ";\n";
            file.classes["default"] = i;
        }
      }
      Write("src/f" + id + ".ts", text);
      files.push_back(std::move(file));
    }
    const auto set = Set();
    for (size_t i = 0; i < files.size(); ++i) {
      const std::string path = "'./f" + std::to_string(i) + "'";
      std::string right;
      std::vector<std::string> wrong;
      size_t n = 0;
      for (const auto& [key, of] : files[i].classes) {
        const std::string name = "x" + std::to_string(n++);
        const std::string import = "import { " + key + " as " + name + " } from " + path + ";\n";
        right += import + "new " + name + "().m" + std::to_string(of) + ";\n";
        wrong.push_back(import + "new " + name + "().m" + std::to_string(of + 1) + ";\n");
      }
      for (const auto& [key, j] : files[i].spaces) {
        const std::string import = "import { " + key + " } from " + path + ";\n";
        for (const auto& [inner, of] : files[j].classes) {
          if (inner == "default") continue;
          const std::string use = "new " + key + "." + inner + "().m";
          right += import + use + std::to_string(of) + ";\n";
          wrong.push_back(import + use + std::to_string(of + 1) + ";\n");
        }
        wrong.push_back(import + key + ".Nothing;\n");
      }
      const auto refusal = Judge(*set, right);
      EXPECT_FALSE(refusal.has_value()) << refusal->identifier << "\n" << right;
      for (const std::string& text : wrong) EXPECT_TRUE(Judge(*set, text).has_value()) << text;
      asked += wrong.size();
    }
    fs::remove_all(base_ / "repo/src");
    fs::create_directories(base_ / "repo/src");
  }
  EXPECT_GT(asked, 200U);
}

}  // namespace
}  // namespace pawl::monitors
