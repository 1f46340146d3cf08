#!/usr/bin/env python3
"""Writes the bill of materials of a release: CycloneDX 1.6, as JSON.

    scripts/bill_of_materials.py > pawl.cdx.json

The bill names what others wrote and what the command, the libraries, the wheels or the module for browsers contain: with
license and the products that have it, and with the version where the sources know it. Versions are those of the headers on this machine, and of the packages
that scripts/install_deps.sh names. Two runs on one commit and one machine write equal bytes.
"""

import json
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name, license, the header that tells the version with the macros of its parts, what contains it.
HEADERS = [
    ("nlohmann-json", "MIT", "nlohmann/json.hpp",
     ["NLOHMANN_JSON_VERSION_MAJOR", "NLOHMANN_JSON_VERSION_MINOR", "NLOHMANN_JSON_VERSION_PATCH"],
     "command, libraries, wheels, module"),
    ("cli11", "BSD-3-Clause", "CLI/CLI.hpp",
     ["CLI11_VERSION_MAJOR", "CLI11_VERSION_MINOR", "CLI11_VERSION_PATCH"], "command, wheels"),
    ("fmt", "MIT", "fmt/core.h", ["FMT_VERSION"], "command, wheels"),
    ("sqlite", "blessing", "sqlite3.h", ["SQLITE_VERSION"], "command, wheels"),
    ("zlib", "Zlib", "zlib.h", ["ZLIB_VERSION"], "command, wheels"),
]
# Name, license, what install_deps.sh writes before the version, what contains it.
PINNED = [
    ("tree-sitter", "MIT", "tree-sitter==", "command, wheels"),
    ("tree-sitter-typescript", "MIT", "tree-sitter-typescript==", "command, wheels"),
    ("tree-sitter-java", "MIT", "tree-sitter-java==", "command, wheels"),
    ("tree-sitter-python", "MIT", "tree-sitter-python==", "command, wheels"),
    ("typeshed-client", "MIT", "typeshed_client==", "command, wheels: the stubs of Python's standard library"),
]
# What has no version that the sources know: name, SPDX expression, what contains it.
UNVERSIONED = [
    ("nanobind", "BSD-3-Clause", "wheels"),
    ("typescript", "Apache-2.0", "command, wheels: the declarations of JavaScript's standard library"),
    ("gcc-runtime", "GPL-3.0-or-later WITH GCC-exception-3.1", "wheels, static builds"),
]


def header_versions():
    lines = []
    for name, _, header, macros, _ in HEADERS:
        lines.append(f"#if __has_include(<{header}>)\n#include <{header}>\n#endif")
        lines += [f"PAWL_BILL {name} {macro}" for macro in macros]
    text = "\n".join(lines) + "\n"
    out = subprocess.run(["c++", "-std=c++20", "-E", "-P", "-x", "c++", "-"], input=text, capture_output=True, text=True,
                         check=True).stdout
    versions = {}
    for name, value in re.findall(r"^PAWL_BILL (\S+) (.+)$", out, re.M):
        versions.setdefault(name, []).append(value.strip().strip('"'))
    for name, _, header, macros, _ in HEADERS:
        if any(value in macros for value in versions[name]):
            raise SystemExit(f"bill_of_materials.py: <{header}> is missing; scripts/install_deps.sh installs it")
    number = versions["fmt"][0]
    versions["fmt"] = [str(int(number) // 10000), str(int(number) // 100 % 100), str(int(number) % 100)]
    return {name: ".".join(values) for name, values in versions.items()}


def component(name, version, license_id, contained, **more):
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": license_id}}],
        **more,
        "properties": [{"name": "pawl:contained-in", "value": contained}],
    }


def components():
    versions = header_versions()
    found = [component(name, versions[name], license_id, contained) for name, license_id, _, _, contained in HEADERS]
    pins = (ROOT / "scripts" / "install_deps.sh").read_text()
    for name, license_id, before, contained in PINNED:
        version = re.search(re.escape(before) + r"([0-9.]+)", pins)
        if version is None:
            raise SystemExit(f"bill_of_materials.py: install_deps.sh names no version of {name}")
        package = before.rstrip("=")
        found.append(component(name, version[1], license_id, contained, purl=f"pkg:pypi/{package}@{version[1]}"))
    unicode = re.search(r"Unicode (\d+\.\d+\.\d+)", (ROOT / "src" / "base" / "unicode_tables.inc").read_text())
    found.append(component("unicode-character-database", unicode[1] if unicode else "unknown", "Unicode-3.0",
                           "command, libraries, wheels, module: tables made from it"))
    found += [{"type": "library", "bom-ref": name, "name": name, "licenses": [{"expression": expression}],
               "properties": [{"name": "pawl:contained-in", "value": contained}]}
              for name, expression, contained in UNVERSIONED]
    return found


def main():
    version = re.search(r"project\(pawl VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    commit = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%H %cI"], capture_output=True, text=True).stdout.split()
    pawl = {"type": "application", "bom-ref": f"pawl@{version}", "name": "pawl", "version": version,
            "description": "Structured output for language models",
            "licenses": [{"license": {"id": "Apache-2.0"}}]}
    parts = components()
    metadata = {"component": pawl}
    if commit:
        metadata["timestamp"] = commit[1]
        pawl["properties"] = [{"name": "pawl:commit", "value": commit[0]}]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": parts,
        "dependencies": [{"ref": pawl["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    # A name for this content, so that two runs write the same.
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bill, sort_keys=True))}"
    json.dump(bill, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
