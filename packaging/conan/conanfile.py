"""Pawl as a package of Conan 2. The tree that this file lies in is what is packaged.

    conan create packaging/conan --profile:all packaging/conan/system.profile
"""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCES = ["CMakeLists.txt", "LICENSE", "cmake/*", "grammar/*", "include/*", "kernels/*", "schemas/*", "src/*"]


class Pawl(ConanFile):
    name = "pawl"
    description = "Structured output for language models"
    license = "Apache-2.0"
    topics = ("grammar", "json-schema", "language-model")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "engine": [True, False]}
    default_options = {"shared": False, "engine": False}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = text.split("project(pawl VERSION ", 1)[1].split()[0]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in SOURCES:
            copy(self, pattern, src=root, dst=self.export_sources_folder, excludes=["*.pyc"])

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # Headers that our sources alone include.
        self.requires("nlohmann_json/[>=3.9]", visible=False, libs=False)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "PAWL_BUILD_ENGINE": bool(self.options.engine), "PAWL_BUILD_COMMAND": False, "PAWL_BUILD_C": True,
            "PAWL_BUILD_TESTS": False, "PAWL_BUILD_BENCH": False, "PAWL_CUDA": "OFF", "PAWL_WERROR": False,
        })
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package files that are installed with Pawl serve find_package: its components are theirs.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "pawl"))
        self.cpp_info.libs = ["pawl_engine", "pawl_core"] if self.options.engine else ["pawl_core"]
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread", "m"]
