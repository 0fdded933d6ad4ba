"""The Python of a page of docs/, block by block.

    python3 page.py PAGE.md

runs the blocks ```python in the order in which they stand on the page, as one program. Blocks ```python cuda need a GPU, on which
pytorch/gpu/test_cuda_pages.py runs them in their places; here they are checked as far as goes without one: they are Python, and
their names are there by then. A block of another kind than KINDS and indented code are errors, because nothing would run them.
"""

import ast
import builtins
import importlib
import importlib.util
import pathlib
import re
import sys
import types
from typing import NamedTuple

KINDS = "python", "python cuda", "sh", "text"


class Block(NamedTuple):
    kind: str
    line: int  # of its first line
    text: str


def blocks(page):
    """All blocks of a page."""
    found, kind, lines, before = [], None, [], ""
    for number, line in enumerate(pathlib.Path(page).read_text().splitlines(), 1):
        if kind is None and line.startswith("```"):
            kind, first, lines = line[3:].strip(), number + 1, []
            if kind not in KINDS:
                raise ValueError(f"{page}:{number}: a block of the kind {kind!r}: nothing runs it")
        elif line.startswith("```"):
            found.append(Block(kind, first, "".join(f"{one}\n" for one in lines)))
            kind = None
        elif kind is not None:
            lines.append(line)
        elif line.startswith("    ") and not before.strip():
            raise ValueError(f"{page}:{number}: indented code: nothing runs it")
        before = line
    if kind is not None:
        raise ValueError(f"{page}:{first}: the block does not end")
    return found


def shown(page):
    """The lines that the page says are printed, without their numbers: last digits may be others."""
    lines = "".join(block.text for block in blocks(page) if block.kind == "text").splitlines()
    return [without_numbers(line) for line in lines]


def without_numbers(line):
    return re.sub(r"\s+", " ", re.sub(r"[0-9.]+", "N", line))


def program():
    """The names of an empty module, in which blocks run."""
    module = sys.modules["page_program"] = types.ModuleType("page_program")
    return vars(module)


def run(page, block, names):
    """Runs a block; lines in messages are those of the page."""
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)


class Missing(Exception):
    """A block uses what is not there."""


def check(page, block, names, made=frozenset()):
    """Checks a block that is not run, where `names` are there and `made` was made by such blocks before. What it takes from
    modules must be in them, as far as they can be imported here. Returns the names that it makes."""
    def fail(node, what):
        raise Missing(f"{page}:{node.lineno}: {what}")

    tree = ast.parse("\n" * (block.line - 1) + block.text, str(page))
    compile(tree, str(page), "exec")
    own, modules = set(), {name: value for name, value in names.items() if isinstance(value, types.ModuleType)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            own.add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                own.add(name)
                origin = node.module if isinstance(node, ast.ImportFrom) else alias.name
                if importlib.util.find_spec(origin.split(".")[0]) is None:
                    continue  # what this Python does not have
                module = importlib.import_module(origin)
                if isinstance(node, ast.ImportFrom) and not hasattr(module, alias.name):
                    fail(node, f"{origin} has no {alias.name}")
                if isinstance(node, ast.Import):
                    modules[name] = module if alias.asname else importlib.import_module(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not any(node.id in known for known in (own, made, names, vars(builtins))):
                fail(node, f"there is no {node.id}")
        elif isinstance(node, ast.Attribute):
            module = _module(node.value, modules)
            if module is not None and not hasattr(module, node.attr):
                fail(node, f"{module.__name__} has no {node.attr}")
    return own


def _module(node, modules):
    """The module that an expression names, or None."""
    if isinstance(node, ast.Name):
        return modules.get(node.id)
    if isinstance(node, ast.Attribute):
        found = getattr(_module(node.value, modules), node.attr, None)
        return found if isinstance(found, types.ModuleType) else None
    return None


def main(page):
    names, made, count = program(), set(), 0
    for block in blocks(page):
        if block.kind == "python":
            run(page, block, names)
            count += 1
        elif block.kind == "python cuda":
            made |= check(page, block, names, made)
    print(f"{page}: {count} blocks ran, and {sum(b.kind == 'python cuda' for b in blocks(page))} for a GPU are in order")


if __name__ == "__main__":
    main(sys.argv[1])
