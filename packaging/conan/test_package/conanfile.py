"""Builds and runs a program that links the package."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout

EXPECTED = ["allowed: 2b, taken: re", "allowed: 04, taken: d", "allowed: 80, taken: <end>"]


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"

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
        out = os.path.join(self.build_folder, "printed.txt")
        program = os.path.join(self.cpp.build.bindir, "print_mask")
        self.run(f'"{program}" > "{out}"', env="conanrun")
        with open(out, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if lines != EXPECTED:
            raise RuntimeError(f"print_mask printed {lines}")
