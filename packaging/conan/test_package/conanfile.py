"""Builds and runs a program that links the package."""

import os
import re

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout

EXPECTED = ["allowed: 2b, taken: re", "allowed: 04, taken: d", "allowed: 80, taken: <end>"]
RECORD = r'\{"far":(true|false),"hours":[1-9]\}'


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["PAWL_ENGINE"] = bool(self.dependencies["pawl"].options.engine)
        toolchain.generate()

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        lines = self.printed("print_mask")
        if lines != EXPECTED:
            raise RuntimeError(f"print_mask printed {lines}")
        if self.dependencies["pawl"].options.engine:
            lines = self.printed("answer", os.path.join(self.recipe_folder, "..", "..", "..", "models", "tiny-extract"))
            if len(lines) != 2 or lines[0] not in ("red", "green") or not re.fullmatch(RECORD, lines[1]):
                raise RuntimeError(f"answer printed {lines}")

    def printed(self, name, argument=""):
        out = os.path.join(self.build_folder, name + ".txt")
        program = os.path.join(self.cpp.build.bindir, name)
        self.run(f'"{program}" "{argument}" > "{out}"', env="conanrun")
        with open(out, encoding="utf-8") as file:
            return file.read().splitlines()
