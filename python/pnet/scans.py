"""Scans of E57 and PTX files as clouds that pnetc reads, for python -m pnet.convert.

Each scan is moved by its pose, in double. Points without a return are left out. E57 needs pye57, which reads it.
"""

from __future__ import annotations

import importlib
import io
import itertools
import os

import numpy as np

# What a PTX file has before the points of a scan: numbers of each line.
PTX_HEAD = (1, 1, 3, 3, 3, 3, 4, 4, 4, 4)
PLY_TYPES = {"float64": "double", "float32": "float", "uint8": "uchar", "uint16": "ushort", "int32": "int"}
# Fields of E57 that are read besides coordinates, and what they are called in a cloud.
E57_FIELDS = {
    "intensity": "intensity", "colorRed": "red", "colorGreen": "green", "colorBlue": "blue", "rowIndex": "row",
    "columnIndex": "column",
}
# The extension of E57 for normals, whose fields have the prefix that the file gives it.
NORMALS_URI = "http://www.libe57.org/E57_NOR_surface_normals.txt"
OTHER_CLOUDS = (".las", ".laz", ".pcd", ".xyz", ".txt", ".csv", ".pts", ".bin", ".npz", ".h5", ".hdf5")
COORDINATES = {
    "cartesian": ("cartesianX", "cartesianY", "cartesianZ"),
    "spherical": ("sphericalRange", "sphericalAzimuth", "sphericalElevation"),
}


class Refused(Exception):
    """A file that cannot be converted; the text says why."""


class Absent(Exception):
    """What the conversion needs is not installed."""


class Scan:
    """fields: {name: array [points]}, x, y and z first. lost: points without a return. left: fields that were not taken."""

    def __init__(self, fields, lost, left=()):
        self.fields, self.lost, self.left = fields, lost, list(left)

    def __len__(self):
        return len(self.fields["x"])


def kind(path):
    """By what the file holds: "e57", "ptx", or None for others."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if head.startswith(b"ASTM-E57"):
        return "e57"
    lines = head.split(b"\n")[:len(PTX_HEAD)]
    return "ptx" if len(lines) == len(PTX_HEAD) and tuple(map(_count_numbers, lines)) == PTX_HEAD else None


def _count_numbers(line):
    words = line.split()
    try:
        [float(word) for word in words]
    except ValueError:
        return 0
    return len(words)


def read_ptx(path):
    """The scans of a PTX file: points are rows of vectors, [x y z 1] @ matrix is the place of one."""
    scans = []
    with open(path, encoding="ascii", errors="replace") as file:
        line = 0
        while True:
            head = [text.split() for text in itertools.islice(file, len(PTX_HEAD))]
            if not any(head):
                break
            if tuple(map(len, head)) != PTX_HEAD:
                raise Refused(f"line {line + 1}: expected the head of a scan, {len(PTX_HEAD)} lines of numbers")
            try:
                columns, rows = int(head[0][0]), int(head[1][0])
                matrix = np.array(head[6:], float)
            except ValueError as e:
                raise Refused(f"line {line + 1}: the head of a scan: {e}") from None
            line += len(PTX_HEAD)
            if columns < 0 or rows < 0:
                raise Refused(f"line {line - len(PTX_HEAD) + 1}: a scan of {columns} columns and {rows} rows")
            scans.append(_ptx_scan(file, line, columns, rows, matrix))
            line += columns * rows
    if not scans:
        raise Refused("holds no scan")
    return scans


def _ptx_scan(file, line, columns, rows, matrix):
    count = columns * rows
    place = f"lines {line + 1} to {line + count}"
    try:
        table = np.loadtxt(itertools.islice(file, count), float, ndmin=2, comments=None) if count else np.zeros((0, 4))
    except ValueError as e:
        raise Refused(f"{place}: {e}") from None
    if len(table) != count or table.shape[1] not in (4, 7):
        raise Refused(f"{place}: expected {count} points of 4 or 7 numbers, found {len(table)} of {table.shape[1]}")
    found = table[:, :3].any(axis=1) & np.isfinite(table[:, :3]).all(axis=1)
    number = np.flatnonzero(found)
    table = table[found]
    xyz = table[:, :3] @ matrix[:3, :3] + matrix[3, :3]
    fields = dict(zip("xyz", xyz.T), intensity=_narrow(table[:, 3]))
    if table.shape[1] == 7:
        fields.update((name, _colour(table[:, 4 + k], 0, 255)) for k, name in enumerate(("red", "green", "blue")))
    fields.update(row=(number % max(rows, 1)).astype(np.int32), column=(number // max(rows, 1)).astype(np.int32))
    return Scan(fields, count - len(number))


def read_e57(path):
    """The scans of an E57 file."""
    try:
        pye57 = importlib.import_module("pye57")
    except ImportError:
        raise Absent("E57 needs pye57, and this Python has none: pip install pye57") from None
    try:
        with pye57.E57(path) as file:
            scans = [_e57_scan(pye57, file, i) for i in range(file.scan_count)]
    except (Refused, OSError, MemoryError):
        raise
    except Exception as e:  # the library has one class for all its errors
        raise Refused(str(e).strip().split("\n")[0] or type(e).__name__) from None
    if not scans:
        raise Refused("holds no scan")
    return scans


def _e57_scan(pye57, file, index):
    header = file.get_header(index)
    present, count = header.point_fields, header.point_count
    system = next((s for s, names in COORDINATES.items() if set(names) <= set(present)), None)
    if system is None:
        raise Refused(f"scan {index} has no coordinates: its fields are {', '.join(present)}")
    state = system + "InvalidState"
    normals = _e57_normals(file, present)
    wanted = [n for n in (*COORDINATES[system], state, *E57_FIELDS, *normals) if n in present]
    data = _e57_columns(pye57, file, header, wanted, count)
    a, b, c = (data[name] for name in COORDINATES[system])
    xyz = np.stack([a, b, c] if system == "cartesian" else
                   [a * np.cos(c) * np.cos(b), a * np.cos(c) * np.sin(b), a * np.sin(c)], axis=1)
    found = np.isfinite(xyz).all(axis=1)
    if state in data:
        found &= data[state] == 0
    rotation, translation = _e57_pose(header.node)
    fields = dict(zip("xyz", (xyz[found] @ rotation.T + translation).T))
    for name, called in E57_FIELDS.items():
        if name not in data:
            continue
        values = data[name][found]
        if name.startswith("color"):
            values = _colour(values, *_e57_limits(pye57, header, name))
        else:
            values = _narrow(values) if name == "intensity" else values.astype(np.int32)
        fields[called] = values
    if normals:
        turned = np.stack([data[name][found] for name in normals], axis=1) @ rotation.T
        fields.update((called, values.astype(np.float32)) for called, values in zip(("nx", "ny", "nz"), turned.T))
    known = {name for names in COORDINATES.values() for name in names} | {s + "InvalidState" for s in COORDINATES} | {*normals}
    return Scan(fields, count - int(found.sum()), [n for n in present if n not in known and n not in E57_FIELDS])


def _e57_normals(file, present):
    """The names of the three fields of normals, or none."""
    image = file.image_file
    for i in range(image.extensionsCount()):
        names = [f"{image.extensionsPrefix(i)}:normal{axis}" for axis in "XYZ"]
        if image.extensionsUri(i) == NORMALS_URI and set(names) <= set(present):
            return names
    return []


def _e57_columns(pye57, file, header, names, count):
    """Every field in double, which holds what pye57's own types do not: colours of 16 bits, large indices."""
    data = {name: np.zeros(count) for name in names}
    if not count:
        return data
    buffers = pye57.libe57.VectorSourceDestBuffer()
    for name, column in data.items():
        buffers.append(pye57.libe57.SourceDestBuffer(file.image_file, name, column, count, True, True))
    read = header.points.reader(buffers).read()
    if read != count:
        raise Refused(f"a scan of {count} points holds {read}")
    return data


def _e57_pose(node):
    """Rotation and translation, by the names of their numbers: their order in a file is free."""
    rotation, translation = np.eye(3), np.zeros(3)
    if not node.isDefined("pose"):
        return rotation, translation
    pose = node["pose"]
    if pose.isDefined("rotation"):
        q = np.array([pose["rotation"][name].value() for name in "wxyz"])
        if not np.linalg.norm(q) > 0:
            raise Refused("a pose has a rotation of zeros")
        w, x, y, z = q / np.linalg.norm(q)
        rotation = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                             [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                             [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    if pose.isDefined("translation"):
        translation = np.array([pose["translation"][name].value() for name in "xyz"])
    return rotation, translation


def _e57_limits(pye57, header, name):
    """The least and the greatest value of a colour: of the scan, else of its type."""
    if header.node.isDefined("colorLimits"):
        limits = header.node["colorLimits"]
        if limits.isDefined(name + "Minimum") and limits.isDefined(name + "Maximum"):
            return limits[name + "Minimum"].value(), limits[name + "Maximum"].value()
    field = pye57.libe57.StructureNode(header.points.prototype())[name]
    if isinstance(field, pye57.libe57.ScaledIntegerNode):
        return field.scaledMinimum(), field.scaledMaximum()
    return field.minimum(), field.maximum()


def _colour(values, low, high):
    """Colours of 8 or 16 bits as they are, others from 0 to 255."""
    if (low, high) == (0, 65535):
        return np.clip(np.rint(values), 0, 65535).astype(np.uint16)
    if (low, high) != (0, 255) and high > low:
        values = (values - low) * 255 / (high - low)
    return np.clip(np.rint(np.nan_to_num(values)), 0, 255).astype(np.uint8)


def _narrow(values):
    """float32 if it holds every value."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single.astype(np.float64), values, equal_nan=True) else values


def join(scans):
    """One scan of all, with the fields that each of them has, and the number of its scan for each point."""
    if len(scans) == 1:
        return scans[0]
    names = [n for n in scans[0].fields if all(n in s.fields for s in scans)]
    fields = {n: np.concatenate([s.fields[n] for s in scans]) for n in names}
    fields["scan"] = np.repeat(np.arange(len(scans), dtype=np.int32), [len(s) for s in scans])
    left = dict.fromkeys(n for s in scans for n in [*s.fields, *s.left] if n not in names)
    return Scan(fields, sum(s.lost for s in scans), left)


def encode(scan, path):
    """The parts of a file: binary PLY, or a NumPy array of records."""
    types = [(name, values.dtype.newbyteorder("<")) for name, values in scan.fields.items()]
    records = np.empty(len(scan), types)
    for name, values in scan.fields.items():
        records[name] = values
    if path.endswith(".npy"):
        yield _npy_head(records)
    else:
        lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(scan)}"]
        lines += [f"property {PLY_TYPES[values.dtype.name]} {name}" for name, values in scan.fields.items()]
        yield "\n".join([*lines, "end_header\n"]).encode()
    yield records.tobytes()


def _npy_head(records):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(records))
    return head.getvalue()


def convert(path, output, scans=None):
    """The files to be written, as (path, Scan): one cloud where `output` is a .ply or .npy, else a file in that folder for each
    scan. `scans`: "one" or "each", which `output` must fit, or None."""
    one = output.endswith((".ply", ".npy"))
    if scans == "one" and not one:
        raise Refused(f"--scans one writes a cloud: -o NAME.ply or NAME.npy, not {output}")
    if not one and os.path.splitext(output)[1].lower() in OTHER_CLOUDS:
        raise Refused(f"scans are written as .ply or .npy, not {output}")
    if scans == "each" and one:
        raise Refused(f"--scans each writes a file for each scan: -o FOLDER, not {output}")
    found = read_ptx(path) if kind(path) == "ptx" else read_e57(path)
    if one:
        return [(output, join(found))]
    stem = os.path.splitext(os.path.basename(path))[0]
    width = len(str(len(found) - 1))
    return [(os.path.join(output, f"{stem}_{i:0{width}}.ply"), scan) for i, scan in enumerate(found)]
