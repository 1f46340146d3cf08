#!/usr/bin/env python3
"""Which names the modules and classes of Python's standard library have although their stubs leave them out.

    scripts/unlisted_names.py build/grammars/typeshed LIB... > plugins/monitors/python/unlisted_names.txt

LIB are folders such as /usr/lib/python3.11, of several versions. Both sides are read with `ast`, nothing is imported. A
line is a module, or a module and a class of it (turtle:ScrolledCanvas), and the names. Names and modules that begin with
"_" are left out: monitors don't judge them.
"""
import ast
import os
import sys


def bound(body, classes):
    """The names that statements bind; class definitions are put into `classes`."""
    names, todo = set(), list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            classes.setdefault(node.name, []).append(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.If, ast.Try, ast.For, ast.While, ast.With)):
            for kid in ast.iter_child_nodes(node):
                if isinstance(kid, ast.stmt):
                    todo.append(kid)
                elif isinstance(kid, ast.ExceptHandler):
                    todo += kid.body
                else:
                    names.update(stored(kid))
        else:
            names.update(stored(node))
    return names


def stored(node):
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def of_class(nodes):
    names = set()
    for node in nodes:
        names |= bound(node.body, {})
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and isinstance(one.value, ast.Name):
                if one.value.id in ("self", "cls"):
                    names.add(one.attr)
    return names


def parse(path):
    try:
        with open(path, encoding="utf-8") as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def starred(tree, library, depth=0):
    """The names that `from module import *` at the top of a module brings into it."""
    names = set()
    for node in tree.body if depth < 4 else []:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and any(a.name == "*" for a in node.names):
            path = os.path.join(library, node.module.replace(".", "/"))
            for file in (path + ".py", os.path.join(path, "__init__.py")):
                other = parse(file)
                if other is not None:
                    names |= bound(other.body, {}) | starred(other, library, depth + 1)
    return names


def main():
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    stubs, libraries, found = sys.argv[1], sys.argv[2:], {}
    for folder, _, files in os.walk(stubs):
        for file in files:
            relative = os.path.relpath(os.path.join(folder, file), stubs)
            if not relative.endswith(".pyi") or any(part.startswith("_") for part in relative.split("/")[:-1]):
                continue
            relative = relative[:-4]
            stub = parse(os.path.join(folder, file))
            module = relative.replace("/", ".").removesuffix(".__init__")
            if stub is None or module.split(".")[-1].startswith("_"):
                continue
            stub_classes = {}
            stub_names = bound(stub.body, stub_classes)
            for library in libraries:
                tree = parse(os.path.join(library, relative + ".py"))
                if tree is None:
                    continue
                classes = {}
                names = (bound(tree.body, classes) | starred(tree, library)) - {"*"}
                found.setdefault(module, set()).update(names - stub_names)
                for name in classes.keys() & stub_classes.keys():
                    found.setdefault(f"{module}:{name}", set()).update(
                        of_class(classes[name]) - of_class(stub_classes[name])
                    )
    print("# Names of Python's standard library that its stubs leave out: scripts/unlisted_names.py.")
    for owner in sorted(found):
        names = sorted(name for name in found[owner] if not name.startswith("_"))
        if names:
            print(owner, *names)


if __name__ == "__main__":
    main()
