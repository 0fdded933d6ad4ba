"""The declarations are those of include/pnet.h and its parts: enums, members of structs, arguments of functions."""

import ctypes
import pathlib
import re
import tempfile
import unittest

import support
from pnet import _library as library

PARTS = sorted((support.ROOT / "include" / "pnet").glob("*.h"))
HEADER = re.sub(r"/\*.*?\*/", "", "".join(part.read_text() for part in PARTS), flags=re.S)
WHOLE = (ctypes.c_int, ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_uint64)
TYPES = {
    "void": None,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "char *": ctypes.c_char_p,
    "struct pnet_model *": ctypes.c_void_p,
    "struct pnet_session *": ctypes.c_void_p,
    "struct pnet_set *": ctypes.c_void_p,
    "struct pnet_points *": ctypes.c_void_p,
    "struct pnet_map *": ctypes.c_void_p,
    "struct pnet_buckets *": ctypes.c_void_p,
}


def structs():
    """The structs that are declared here, by name."""
    return {name: value for name, value in vars(library).items()
            if name.startswith("pnet_") and isinstance(value, type) and issubclass(value, ctypes.Structure)}


def to_ctypes(text):
    """A type of the header: `const char *name`, with or without the name."""
    text = re.sub(r"\bconst\b", "", text)
    words = re.findall(r"\w+", text)
    base = " ".join(words[:2]) if words[0] in ("struct", "enum") else words[0]
    depth = text.count("*")
    if base.startswith("enum"):
        return ctypes.c_int
    while depth and base + " *" * min(depth, 1) not in TYPES:
        pointed = base.replace("struct ", "")
        inner = structs()[pointed] if pointed in structs() else TYPES[base]
        return ctypes.POINTER(inner)
    found = TYPES[base + (" *" if depth else "")]
    return ctypes.POINTER(found) if depth == 2 else found


def prototypes():
    """What functions of the header return, and their arguments."""
    found = {}
    for returned, name, arguments in re.findall(r"PNET_API ([\w \*]+?)(pnet_\w+)\(([^)]*)\);", HEADER):
        given = [] if arguments.strip() == "void" else [to_ctypes(a) for a in arguments.split(",")]
        found[name] = (returned.strip(), to_ctypes(returned), given)
    return found


class Header(support.Case):
    def test_enums(self):
        given = {prefix + name.upper(): value for prefix, values in library.ENUMS.items() for name, value in values.items()}
        given.update({"PNET_" + status.name: int(status) for status in library.Status})
        wanted = {name: int(value) for name, value in re.findall(r"\b(PNET_[A-Z0-9_]+) = (\d+)", HEADER)}
        self.assertEqual(given, wanted)
        self.assertEqual(int(re.search(r"#define PNET_ABI (\d+)", HEADER)[1]), library.ABI)

    def test_functions(self):
        wanted = prototypes()
        self.assertGreater(len(wanted), 30)
        self.assertEqual({*library.FALLIBLE, *library.PLAIN}, {*wanted})
        for name, (text, returned, arguments) in wanted.items():
            if text == "enum pnet_status":
                self.assertEqual([*library.FALLIBLE[name], ctypes.POINTER(library.pnet_error)], arguments, name)
            else:
                self.assertEqual(library.PLAIN[name], (returned, arguments), name)

    def test_structs(self):
        wanted = set(re.findall(r"^struct (pnet_\w+) \{", HEADER, flags=re.M))
        self.assertEqual({*structs()}, wanted)
        lines, expected = [], []
        for name, struct in structs().items():
            lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            expected.append(f"{name} {ctypes.sizeof(struct)}")
            for member, kind in struct._fields_:
                field = getattr(struct, member)
                at = f"((struct {name} *)0)->{member}"
                place = f"offsetof(struct {name}, {member}), sizeof {at}, KIND({at})"
                lines.append(f'printf("{name}.{member} %zu %zu %d\\n", {place});')
                what = 0 if kind in WHOLE else 1 if kind in (ctypes.c_float, ctypes.c_double) else 2
                expected.append(f"{name}.{member} {field.offset} {field.size} {what}")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "structs.c"
            source.write_text(
                "#include <pnet.h>\n#include <stdio.h>\n"
                "#define KIND(x) _Generic((x), int: 0, unsigned: 0, long: 0, unsigned long: 0, float: 1, double: 1, default: 2)\n"
                "int main(void)\n{\n" + "\n".join(lines) + "\n}\n")
            support.run("cc", "-std=c11", "-I", support.ROOT / "include", source, "-o", source.with_suffix(""))
            self.assertEqual(support.run(source.with_suffix("")).split("\n")[:-1], expected)


if __name__ == "__main__":
    unittest.main()
