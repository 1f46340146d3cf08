"""What stands before the point of each `.name` of a Python file, in words: by which the places of the survey that stay
open are counted (monitor_places.py).

The words are of the name that the expression begins with, and of how it gets its value: `self`, a parameter with or
without an annotation, a module, a variable that a call, a loop or something else gives its value. `.name`, `()` and
`[]` say what stands between that name and the point.
"""

import ast
import sys


class Scopes(ast.NodeVisitor):
    """The places of a file: where each name begins, in bytes, and its reason."""

    def __init__(self, text):
        self.places = {}
        self.starts = [0]
        for line in text.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.scopes = []  # names of a function, class or module: what they are

    def bind(self, target, what):
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                whole = node is target
                known = self.scopes[-1].get(node.id)
                word = what if whole else "unpacked"
                self.scopes[-1][node.id] = word if known in (None, word) else "variable of several"

    def value(self, node):
        if isinstance(node, ast.Await):
            return "awaited call"
        if isinstance(node, ast.Call):
            return "variable of a call"
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)):
            return "variable of " + {"Attribute": "a member", "Subscript": "an element", "Name": "a name"}[
                type(node).__name__
            ]
        return "variable of a literal" if isinstance(node, (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)) \
            else "variable of an expression"

    def gather(self, body):
        """Binds what the statements of a scope bind; not those of functions in it."""
        todo = list(body)
        while todo:
            node = todo.pop(0)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.scopes[-1][node.name] = "function"
                continue
            if isinstance(node, ast.ClassDef):
                self.scopes[-1][node.name] = "class"
                continue
            if isinstance(node, ast.Lambda):
                continue
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                continue
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name.split(".")[0]
                    library = "library module" if top in sys.stdlib_module_names else "other module"
                    self.scopes[-1][name.asname or top] = library
            elif isinstance(node, ast.ImportFrom):
                top = (node.module or "").split(".")[0]
                library = "imported from the library" if top in sys.stdlib_module_names and not node.level else "imported"
                for name in node.names:
                    self.scopes[-1][name.asname or name.name] = library
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self.bind(target, self.value(node.value))
            elif isinstance(node, ast.AnnAssign):
                self.bind(node.target, "variable with annotation")
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                self.bind(node.target, "loop variable")
            elif isinstance(node, ast.withitem) and node.optional_vars:
                self.bind(node.optional_vars, "variable of with")
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self.scopes[-1][node.name] = "exception"
            elif isinstance(node, ast.NamedExpr):
                self.bind(node.target, self.value(node.value))
            todo.extend(ast.iter_child_nodes(node))

    def visit_Module(self, node):
        self.scopes.append({})
        self.gather(node.body)
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        for kid in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(kid)
        self.scopes.append({})
        self.gather(node.body)
        for kid in node.body:
            self.visit(kid)
        self.scopes.pop()

    def function(self, node):
        lambda_ = isinstance(node, ast.Lambda)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += filter(None, (arguments.vararg, arguments.kwarg))
        outside = [*arguments.defaults, *arguments.kw_defaults, *(one.annotation for one in every)]
        for kid in filter(None, outside if lambda_ else [*node.decorator_list, node.returns, *outside]):
            self.visit(kid)
        self.scopes.append({})
        self.gather([node.body] if lambda_ else node.body)
        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            word = one.arg if one.arg in ("self", "cls") else "parameter with annotation" if one.annotation \
                else "parameter without annotation"
            known = self.scopes[-1].get(one.arg)
            self.scopes[-1][one.arg] = word if known is None else word + ", assigned again"
        for one in filter(None, (arguments.vararg, arguments.kwarg)):
            self.scopes[-1][one.arg] = "*parameter"
        for kid in [node.body] if lambda_ else node.body:
            self.visit(kid)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def comprehension(self, node):
        self.scopes.append({})
        for part in node.generators:
            self.bind(part.target, "comprehension variable")
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_Attribute(self, node):
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        path, root = "", node.value
        while True:
            if isinstance(root, ast.Attribute):
                path, root = ".name" + path, root.value
            elif isinstance(root, ast.Call):
                path, root = "()" + path, root.func
            elif isinstance(root, ast.Subscript):
                path, root = "[]" + path, root.value
            elif isinstance(root, ast.Await):
                path, root = " awaited" + path, root.value
            else:
                break
        if isinstance(root, ast.Name):
            word = next((scope[root.id] for scope in reversed(self.scopes) if root.id in scope), "builtin")
        elif isinstance(root, (ast.Constant, ast.JoinedStr)):
            word = "literal"
        else:
            word = "other expression"
        if word == "builtin" and path.startswith("()") and root.id == "super":
            word, path = "super()", path[2:]
        path = path if len(path) < 12 else path[:12] + "..."
        if word in ("self", "cls") and not path and not isinstance(node.ctx, ast.Load):
            path = " (assigned to)"
        self.places[end - len(node.attr.encode())] = word + path
        self.generic_visit(node)


def reasons(text):
    """Of the bytes of a file: where a name behind a point begins, and its reason. Empty: it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    scopes = Scopes(text)
    scopes.visit(tree)
    return scopes.places
