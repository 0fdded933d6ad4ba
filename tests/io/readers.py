"""Compares what pnetc wrote with what other programs read: laspy, with lazrs for compressed points, plyfile, pypcd4 and NumPy.

readers.py kept IN OUT.las       OUT has the header, records and points of IN, LAS or LAZ
readers.py packed OUT.las OUT.laz  OUT.laz is OUT.las, compressed: for lazrs and LASzip
readers.py make OUT.las          writes a file of several chunks, with extra dimensions and extended records
readers.py las OUT.las TEXT.csv  laspy finds the values that TEXT has, which pnetc read from OUT
readers.py ply OUT.ply TEXT.csv  the same for plyfile
readers.py table KIND OUT.npy    writes records of that kind: near, far or stamps
readers.py holds KIND IN.npy OUT  OUT, of any other format, has the rows of IN, in the types that docs/formats.md names
readers.py same OUT.las OUT.ply  both have the same `class` and `score`, row by row, and the same places
readers.py labels S.npy F CODES  F has the codes, with commas between, of the classes with the highest scores in S.npy; no row of NaN
"""

import csv
import sys

import laspy
import numpy as np
import plyfile
import pypcd4

HEADER = [
    "version", "file_source_id", "uuid", "system_identifier", "generating_software", "creation_date", "point_count",
    "number_of_points_by_return", "scales", "offsets", "maxs", "mins", "start_of_waveform_data_packet_record"]
GONE = [("laszip encoded", 22204), ("copc", 1), ("copc", 1000)]  # of LAZ and COPC
# pnet's names of what laspy calls otherwise, in point formats 0 to 5
OLD_NAMES = {"scan_angle": "scan_angle_rank"}


def records(file):
    """The records before and after the points, without those about compression."""
    every = list(file.vlrs) + list(file.evlrs or [])
    return [(v.user_id, v.record_id, v.description, v.record_data_bytes()) for v in every
            if (v.user_id, v.record_id) not in GONE]


def check_kept(first, second):
    a, b = laspy.read(first), laspy.read(second)
    for name in HEADER:
        u, v = getattr(a.header, name), getattr(b.header, name)
        assert np.array_equal(u, v), f"{name}: {u}, not {v}"
    assert a.header.point_format == b.header.point_format, b.header.point_format
    assert a.points.array.tobytes() == b.points.array.tobytes(), "points"
    assert records(a) == records(b), f"{records(a)}, not {records(b)}"
    assert not b.header.are_points_compressed


def check_packed(plain, compressed):
    a = laspy.read(plain)
    for backend in laspy.LazBackend.detect_available():
        b = laspy.read(compressed, laz_backend=backend)
        assert b.header.are_points_compressed
        for name in HEADER:
            u, v = getattr(a.header, name), getattr(b.header, name)
            assert np.array_equal(u, v), f"{name}: {u}, not {v}"
        assert a.header.point_format == b.header.point_format, b.header.point_format
        assert a.points.array.tobytes() == b.points.array.tobytes(), f"points, by {backend}"
        assert records(a) == records(b), f"{records(a)}, not {records(b)}"
    assert laspy.LazBackend.Lazrs.is_available()


def make(path):
    n, random = 120_001, np.random.default_rng(7)
    header = laspy.LasHeader(version="1.4", point_format=8)
    header.add_extra_dim(laspy.ExtraBytesParams("height", "float32"))
    header.add_extra_dim(laspy.ExtraBytesParams("pair", "2int16"))
    header.scales, header.offsets = [0.001] * 3, [154000, 463000, 0]
    las = laspy.LasData(header)
    for name, values in zip("XYZ", np.cumsum(random.integers(-9, 10, (3, n)), axis=1)):
        setattr(las, name, values)
    for name in list(las.point_format.dimension_names)[3:]:
        of = las[name]
        top = 2 ** of.dtype.itemsize if name == "height" else {"return_number": 15, "number_of_returns": 15}.get(name)
        most = las.point_format.dimension_by_name(name).num_bits
        top = top or 2 ** min(most, 15)
        values = random.integers(0, top, (n, 2) if name == "pair" else n)
        las[name] = values / 8 if name in ("gps_time", "height") else values
    las.vlrs.append(laspy.VLR("pnet", 7, "a record", b"seven"))
    las.evlrs = laspy.vlrs.vlrlist.VLRList([laspy.VLR("pnet", 8, "an extended record", b"eight" * 20000)])
    las.write(path)


def check_same(las_path, ply_path):
    las, ply = laspy.read(las_path), plyfile.PlyData.read(ply_path)["vertex"]
    assert len(las.points) == len(ply.data), f"{len(las.points)} rows, not {len(ply.data)}"
    for name in ("class", "score"):
        assert np.array_equal(np.asarray(las[name]), ply[name]), name
    for axis in "xyz":
        assert np.abs(np.asarray(las[axis]) - ply[axis]).max() < 1e-6, axis
    assert len(np.unique(ply["class"])) > 1


def read_text(path):
    """The columns of a text with names."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}


def same(got, want):
    """Equal numbers. Text has every digit; integers are compared as such."""
    got = np.asarray(got)
    if got.dtype.kind in "iu":
        return [int(v) for v in got] == [int(float(v)) if "." in v or "e" in v else int(v) for v in want]
    return np.array_equal(got, np.array([float(v) for v in want]).astype(got.dtype), equal_nan=True)


def check_las(path, text):
    file, columns = laspy.read(path), read_text(text)
    names = list(file.point_format.dimension_names)
    assert len(columns) > 3
    for name, values in columns.items():
        if name in "xyz":
            got = np.asarray(file[name])
        elif name == "scan_angle" and "scan_angle" in names:
            got = np.asarray(file.scan_angle) * 0.006
        else:
            got = file[OLD_NAMES.get(name, name)]
        assert same(got, values), f"{name}: {list(got)[:5]}, not {values[:5]}"
    low, high = np.array([file.x, file.y, file.z]).min(axis=1), np.array([file.x, file.y, file.z]).max(axis=1)
    assert np.array_equal(low, file.header.mins) and np.array_equal(high, file.header.maxs), "box"
    returns, counts = np.unique(np.asarray(file.return_number), return_counts=True)
    expected = {int(r): int(n) for r, n in zip(returns, counts) if r}
    found = {r + 1: int(n) for r, n in enumerate(file.header.number_of_points_by_return) if n}
    assert found == expected, f"{found} points by return, not {expected}"


def check_ply(path, text):
    vertices, columns = plyfile.PlyData.read(path)["vertex"], read_text(text)
    assert [p.name for p in vertices.properties] == list(columns)
    for name, values in columns.items():
        assert same(vertices[name], values), name


KINDS = {  # fields behind the coordinates, and the types that hold all of them
    "near": ("f4", {"intensity": "f4", "ring": "u1", "red": "u1", "green": "u1", "blue": "u1", "step": "i2"}),
    "far": ("f8", {
        "real": "f8", "red": "u1", "green": "u1", "blue": "u1", "alpha": "u1", "small": "i1", "code": "i4", "count": "u4",
    }),
    "stamps": ("f8", {"red": "u2", "green": "u2", "blue": "u2", "stamp": "i8", "id": "u8", "single": "f4"}),
}


def make_table(kind, path):
    """Values over the whole range of each type; a point without coordinates, and numbers that are none."""
    coordinate, fields = KINDS[kind]
    random, n = np.random.default_rng(11), 1000
    rows = np.empty(n, [(axis, coordinate) for axis in "xyz"] + list(fields.items()))
    for axis, origin in zip("xyz", (0, 0, 0) if coordinate == "f4" else (154000, 463000, -30)):
        rows[axis] = origin + np.rint(random.normal(0, 40, n) * 1024) / 1024  # in steps that a transform in double keeps
    rows["y"][17] = np.nan
    for name, code in fields.items():
        if code[0] == "f":
            rows[name] = random.normal(0, 1, n)
            rows[name][3::100] = np.nan
        else:
            limits = np.iinfo(code)
            rows[name] = random.integers(limits.min, limits.max, n, code, endpoint=True)
            rows[name][:2] = limits.min, limits.max
    np.save(path, rows)


def unpack_colours(columns):
    """The fields of which PCD's rgb and rgba are made."""
    for name, parts in (("rgb", {"red": 16, "green": 8, "blue": 0}), ("rgba", {"red": 16, "green": 8, "blue": 0, "alpha": 24})):
        if name in columns:
            packed = columns.pop(name)
            assert packed.dtype == np.uint32, packed.dtype
            assert name == "rgba" or not (packed >> 24).any()
            columns.update((part, (packed >> shift & 255).astype("u1")) for part, shift in parts.items())
    return columns


def read_lines(path, types):
    """The columns of a text, each read as its type."""
    comma = path.endswith(".csv")
    with open(path) as file:
        lines = file.read().splitlines()
    if path.endswith(".pts"):
        assert int(lines.pop(0)) == len(lines) - 1
    names = (lines[0] if comma else lines[0].removeprefix("# ")).split("," if comma else " ")
    rows = [line.split("," if comma else " ") for line in lines[1:]]
    return {name: np.array([(int if types[name].kind in "iu" else float)(row[k]) for row in rows], types[name])
            for k, name in enumerate(names)}


def read_table(path, types):
    """The columns of a file of any format but LAS."""
    names = list(types)
    if path.endswith(".bin"):
        names = ["x", "y", "z", "intensity"] + ["ring"] * path.endswith(".pcd.bin")
        return dict(zip(names, np.fromfile(path, "<f4").reshape(-1, len(names)).T))
    if path.endswith(".npy"):
        rows = np.load(path)
        return dict(zip(names, rows.T)) if rows.ndim == 2 else {name: rows[name] for name in rows.dtype.names}
    if path.endswith(".ply"):
        vertices = plyfile.PlyData.read(path)["vertex"]
        return {p.name: np.asarray(vertices[p.name]) for p in vertices.properties}
    if path.endswith(".pcd"):
        cloud = pypcd4.PointCloud.from_path(path)
        return unpack_colours({name: np.asarray(cloud.pc_data[name]) for name in cloud.fields})
    return read_lines(path, types)


def check_holds(kind, source, path):
    want = np.load(source)
    types = {name: want.dtype[name] for name in want.dtype.names}
    columns = read_table(path, types)
    matrix = {"near": "f4", "far": "f8"}.get(kind) if path.endswith(".npy") else "f4" if path.endswith(".bin") else None
    assert len(columns) >= 4 and (path.endswith(".bin") or sorted(columns) == sorted(types)), list(columns)
    for name, got in columns.items():
        assert got.dtype == (matrix or types[name]), f"{name}: {got.dtype}"
        values = want[name].copy()
        if name in "xyz":  # a point that lacks one coordinate has none
            values[np.isnan(want["y"])] = np.nan
        values = values.astype(got.dtype)
        assert np.array_equal(got, values, equal_nan=True), f"{name}: {got[got != values][:5]}, not {values[got != values][:5]}"


def check_labels(scores, path, codes):
    """As the tools of SemanticKITTI, nuScenes and ScanNet read them."""
    want = np.array([int(c) for c in codes.split(",")])[np.load(scores).argmax(axis=1)]
    if path.endswith(".label"):
        got = np.fromfile(path, dtype=np.uint32)
        assert not (got >> 16).any(), "instances"
        got = got & 0xFFFF
    elif path.endswith("_lidarseg.bin"):
        got = np.fromfile(path, dtype=np.uint8)
    else:
        got = np.loadtxt(path, dtype=np.int64)
    assert np.array_equal(got, want), f"{got[:9]}, not {want[:9]}"
    assert len(np.unique(got)) > 1, "one class alone compares nothing"


COMMANDS = {
    "kept": check_kept, "packed": check_packed, "make": make, "las": check_las, "ply": check_ply, "table": make_table,
    "holds": check_holds, "same": check_same, "labels": check_labels,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
