"""Writes tests/io/laz_files.h, and first inputs of the fuzzer: LAZ files of made-up points, with a hash of the records that a
reader must find in them. Other programs write and read them back (pip install laspy lazrs laszip numpy), so neither is this
project's code.

python3 tests/io/make_laz.py [OLD_LAZ]

OLD_LAZ is the program of OLD_SOURCE, which compresses by version 1 of LASzip's items. Without it the files of that version stay.
"""

import datetime
import io
import os
import struct
import subprocess
import sys
import tempfile

import laspy
import lazrs
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "..", "fuzz", "seeds", "las")
VARIABLE = 0xFFFFFFFF
CHUNK_SIZE = 12  # its offset in the record "laszip encoded"
# Compresses LAS records: old_laz FORMAT RECORD CHUNK RECORDS VLR POINTS. CHUNK: points a chunk, 0: no chunks. RECORDS is read;
# VLR and POINTS, whose table is counted from 0, are written. C++ for the sources of LASzip (https://github.com/LASzip/LASzip).
OLD_SOURCE = r"""
#include "laszip.hpp"
#include "laszipper.hpp"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    const int record = atoi(argv[2]), chunk = atoi(argv[3]);
    LASzip zip;
    LASzipper zipper;
    unsigned char *vlr;
    int vlr_size;
    if (!zip.setup((unsigned char)atoi(argv[1]), (unsigned short)record, chunk ? 2 : 1)) return 1;
    if (chunk && !zip.set_chunk_size((unsigned)chunk)) return 1;
    if (!zip.request_version(1) || !zip.pack(vlr, vlr_size)) return 1;
    FILE *records = fopen(argv[4], "rb"), *to = fopen(argv[5], "wb"),
         *points = fopen(argv[6], "wb+");
    if (!records || !to || !points || !zipper.open(points, &zip)) return 1;
    fwrite(vlr, 1, (size_t)vlr_size, to);
    std::vector<unsigned char> point((size_t)record);
    while (fread(point.data(), 1, point.size(), records) == point.size()) {
        std::vector<unsigned char *> items;
        unsigned char *at = point.data();
        for (int i = 0; i < zip.num_items; at += zip.items[i++].size) items.push_back(at);
        if (!zipper.write(items.data())) return 1;
    }
    return zipper.close() && fclose(to) == 0 && fclose(points) == 0 ? 0 : 1;
}
"""


def pulses(random, rows):
    """Return numbers and numbers of returns of pulses with up to four returns, some of them not well-formed; and the pulses."""
    numbers, counts, pulse = [], [], []
    while len(numbers) < rows:
        count = int(random.choice([1, 1, 2, 3, 4]))
        for number in range(1, count + 1):
            odd = random.random() < 0.05
            numbers.append(int(random.integers(0, 8)) if odd else number)
            counts.append(int(random.integers(0, 8)) if odd else count)
            pulse.append(len(set(pulse)) if number == 1 else pulse[-1])
    return np.array(numbers[:rows]), np.array(counts[:rows]), np.array(pulse[:rows])


def times(random, pulse):
    """A time for each pulse: mostly regular steps, some multiples of them, and jumps between distant sequences."""
    clocks, step, current, of_pulse = [1e5, 3e5, -2e4, 7e8, 0.0, 1e300], 2.0**-16, 0, []
    for _ in range(pulse[-1] + 1):
        if random.random() < 0.1:
            current = int(random.integers(0, len(clocks)))
        kind = random.random()
        factor = 1 if kind < 0.6 else random.integers(-20, 30) if kind < 0.8 else random.integers(0, 1000)
        clocks[current] += step * float(factor) + (1e-9 if kind < 0.3 else 0)
        of_pulse.append(clocks[current])
    return np.array(of_pulse)[pulse]


def rare(random, rows, values, chance=0.1):
    """Values that change now and then."""
    return np.array(values)[np.cumsum(random.random(rows) < chance) % len(values)]


def fill(random, points):
    """Fills all fields of the records."""
    rows = len(points)
    names = points.array.dtype.names
    a = points.array
    numbers, counts, pulse = pulses(random, rows)
    for axis, spread in zip("XYZ", (9, 700, 60000)):
        a[axis] = np.cumsum(random.integers(-spread, spread, rows)) + random.integers(-(2**30), 2**30)
        a[axis][rows // 2] = -(2**31) if axis == "X" else 2**31 - 1
    a["intensity"] = np.where(random.random(rows) < 0.4, 500, random.integers(0, 65536, rows))
    a["user_data"] = rare(random, rows, [0, 7, 7, 255])
    a["point_source_id"] = rare(random, rows, [1, 2, 65535, 300], 0.05)
    if "bit_fields" in names and "scan_angle" in names:  # formats 6 to 8
        modern_counts = np.where(random.random(rows) < 0.03, random.integers(0, 16, rows), counts)
        a["bit_fields"] = numbers | modern_counts << 4
        channel = rare(random, rows, [1, 1, 3, 0, 1, 2, 3], 0.15)
        a["classification_flags"] = rare(random, rows, [0, 1, 8, 15]) | channel << 4 | rare(random, rows, [0, 1, 2, 3]) << 6
        a["classification"] = rare(random, rows, [2, 200, 5, 64], 0.3)
        a["scan_angle"] = rare(random, rows, [-30000, -17, 400, 30000], 0.3)
    else:
        a["bit_fields"] = numbers | counts << 3 | rare(random, rows, [0, 1, 2, 3]) << 6
        a["raw_classification"] = rare(random, rows, [2, 200, 5, 64], 0.3)
        a["scan_angle_rank"] = rare(random, rows, [-90, -17, 4, 90], 0.3)
    if "gps_time" in names:
        a["gps_time"] = times(random, pulse)
    if "red" in names:
        grey = random.random(rows) < 0.2
        base = np.cumsum(random.integers(-300, 300, rows)) % 65536
        for name in ("red", "green", "blue"):
            a[name] = np.where(grey, base, (base + random.integers(-20, 900, rows)) % 65536)
    if "nir" in names:
        a["nir"] = rare(random, rows, [0, 255, 256, 65535, 40000], 0.5)
    if "constant" in names:
        a["constant"] = 77
        a["drift"] = rare(random, rows, [-2, 500, 70000])
        a["noise"] = random.integers(0, 256, rows)


def plain(seed, point_format, rows, extra, still):
    """A plain LAS file: (the bytes before its records, the records)."""
    header = laspy.LasHeader(version="1.4" if point_format >= 6 else "1.2", point_format=point_format)
    header.creation_date = datetime.date(2020, 1, 1)
    header.scales = [0.01, 0.001, 0.5]
    header.offsets = [1000, -500, 0]
    if extra:
        for name, kind in (("constant", "u1"), ("drift", "i4"), ("noise", "u1")):
            header.add_extra_dim(laspy.ExtraBytesParams(name=name, type=kind))
    points = laspy.ScaleAwarePointRecord.zeros(rows, header=header)
    if rows:
        fill(np.random.default_rng(seed), points)
    if still and rows:
        points.array[:] = points.array[0]
    las = laspy.LasData(header=header, points=points)
    out = io.BytesIO()
    las.write(out)
    data = out.getvalue()
    (offset,) = struct.unpack_from("<I", data, 96)
    return data[:offset], points.array.tobytes(), points.point_size


def compressed(head, body):
    """The bytes before the points of a LAZ file, from those of a plain one and the record "laszip encoded"."""
    vlr = struct.pack("<H16sHH32s", 0, b"laszip encoded", 22204, len(body), b"") + body
    head = bytearray(head + vlr)
    struct.pack_into("<II", head, 96, len(head), struct.unpack_from("<I", head, 100)[0] + 1)
    head[104] |= 0x80
    return head


def compress(head, records, record, point_format, chunk, parts):
    """The LAZ file of a plain one: chunks of `chunk` points, or of variable size, cut at `parts`."""
    base = (20, 28, 26, 34, 0, 0, 30, 36, 38)[point_format]
    body = bytearray(lazrs.LazVlr.new_for_compression(point_format, record - base, chunk == VARIABLE).record_data())
    struct.pack_into("<I", body, CHUNK_SIZE, chunk)
    head = compressed(head, body)
    out = io.BytesIO()
    out.write(head)
    zipper = lazrs.LasZipCompressor(out, lazrs.LazVlr(bytes(body)))
    last = 0
    for part in parts:
        zipper.compress_many(np.frombuffer(records[last * record : part * record], np.uint8))
        zipper.finish_current_chunk()
        last = part
    zipper.compress_many(np.frombuffer(records[last * record :], np.uint8))
    zipper.done()
    return out.getvalue()


def compress_old(program, head, records, record, point_format, chunk):
    """The same by version 1; chunk 0: no chunks."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("records", "vlr", "points")]
        with open(paths[0], "wb") as f:
            f.write(records)
        subprocess.run([program, str(point_format), str(record), str(chunk), *paths], check=True)
        body, points = (open(path, "rb").read() for path in paths[1:])
    head, points = compressed(head, body), bytearray(points)
    if chunk:
        struct.pack_into("<q", points, 0, struct.unpack_from("<q", points)[0] + len(head))
    return bytes(head + points)


def hash_of(data):
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


# name, point format, points, points a chunk, where chunks of variable size end, extra bytes, all points alike
CASES = [(f"format{f}", f, 110, 50, (), False, False) for f in (0, 1, 2, 3, 6, 7, 8)] + [
    ("extra3", 3, 60, 25, (), True, False),
    ("extra7", 7, 60, 25, (), True, False),
    ("variable1", 1, 60, VARIABLE, (1, 30, 32), False, False),
    ("variable8", 8, 60, VARIABLE, (1, 30, 32), True, False),
    ("still0", 0, 40000, 50000, (), False, True),
    ("still8", 8, 40000, 50000, (), True, True),
    ("empty1", 1, 0, 50000, (), False, False),
    ("empty6", 6, 0, 50000, (), False, False),
]
OLD_CASES = [("old3", 3, 60, 25, True), ("old1", 1, 60, 0, False)]  # by version 1
SEED_NAMES = ("format0", "format3", "format7", "extra7", "variable1", "variable8", "empty6")


def check(data, records, backend):
    """Another reader finds the records in the file."""
    assert not records or laspy.read(io.BytesIO(data), laz_backend=backend).points.array.tobytes() == records


def seed_path(name):
    return os.path.join(SEEDS, f"{name}.laz")


def make(seed, name, point_format, rows, chunk, parts, extra, still):
    head, records, record = plain(seed, point_format, rows, extra, still)
    data = compress(head, records, record, point_format, chunk, parts)
    check(data, records, laspy.LazBackend.Lazrs)
    check(data, records, laspy.LazBackend.Laszip)
    if name in SEED_NAMES:
        with open(seed_path(name), "wb") as f:
            f.write(data)
    return name, rows, records, data


def make_old(seed, name, point_format, rows, chunk, extra):
    head, records, record = plain(seed, point_format, rows, extra, False)
    if len(sys.argv) > 1:
        with open(seed_path(name), "wb") as f:
            f.write(compress_old(sys.argv[1], head, records, record, point_format, chunk))
    with open(seed_path(name), "rb") as f:
        data = f.read()
    check(data, records, laspy.LazBackend.Laszip)
    return name, rows, records, data


def main():
    made = [make(seed, *case) for seed, case in enumerate(CASES)]
    made += [make_old(100 + seed, *case) for seed, case in enumerate(OLD_CASES)]
    with open(os.path.join(HERE, "laz_files.h"), "w", encoding="ascii") as f:
        f.write("/* Written by make_laz.py: LAZ files in hexadecimal digits, and the FNV-1a hash of their records. */\n")
        f.write("#ifndef PNET_TESTS_IO_LAZ_FILES_H\n#define PNET_TESTS_IO_LAZ_FILES_H\n\n#include <stdint.h>\n\n")
        f.write("static const struct laz_file {\n    const char *name;\n    int rows, record;\n    uint64_t hash;\n")
        f.write("    const char *digits;\n} laz_files[] = {\n")
        for name, rows, records, data in made:
            record = len(records) // rows if rows else 0
            f.write(f'    {{"{name}", {rows}, {record}, UINT64_C({hash_of(records):#x}),\n')
            digits = data.hex()
            lines = [digits[i : i + 86] for i in range(0, len(digits), 86)]
            f.write("\n".join(f'        "{line}"' for line in lines) + "},\n")
        f.write("};\n\n#endif\n")


if __name__ == "__main__":
    main()
