"""python -m pnet.convert: files that pnetc does not read as files that it reads.

FILE.pth -o FILE.safetensors: the tensors of a PyTorch checkpoint, for pnetc import. Needs PyTorch, which reads the checkpoint.
docs/weights.md shows it at work.
FILE.e57 or FILE.ptx -o OUT.ply, OUT.npy or FOLDER: the scans of a file, each in its place (docs/formats.md). E57 needs pye57.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import struct
import sys
import tempfile

from pnet import scans

# The keys under which checkpoints keep their tensors, the first one that is there counts.
WRAPPERS = ("state_dict", "model_state_dict", "model")
# What pnetc reads at most: dimensions of a tensor, bytes of a header.
DIMENSIONS, HEADER = 8, 100_000_000


class Refused(Exception):
    """A checkpoint that cannot be converted; the text says why."""


def _dtypes(torch):
    names = {
        "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
        "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    }
    return {getattr(torch, name): text for name, text in names.items() if hasattr(torch, name)}


def unwrap(checkpoint):
    """The dictionary with the tensors of a checkpoint, and the keys that lead to it."""
    path, passed = [], set()
    while isinstance(checkpoint, dict):
        if id(checkpoint) in passed:
            raise Refused(f"the checkpoint{_place(path)} holds itself: it has no end")
        passed.add(id(checkpoint))
        key = next((k for k in WRAPPERS if isinstance(checkpoint.get(k), dict)), None)
        if key is None:
            return checkpoint, path
        path.append(key)
        checkpoint = checkpoint[key]
    raise Refused(f"holds a {type(checkpoint).__name__}, not a dictionary of tensors")


def _place(path):
    return "".join(f"[{key!r}]" for key in path)


def _shown(name):
    """A name for a message of one line."""
    return name if name.isprintable() else ascii(name)


def without_prefix(names, prefix="module."):
    """The names without the prefix of torch.nn.DataParallel, if all of them have it."""
    return [name[len(prefix):] for name in names] if names and all(name.startswith(prefix) for name in names) else names


def collect(checkpoint, torch):
    """{name: tensor} in the order of the checkpoint, and the keys of what is no tensor."""
    found, path = unwrap(checkpoint)
    tensors = {k: v for k, v in found.items() if isinstance(v, torch.Tensor)}
    others = [k for k in found if k not in tensors]
    if not tensors:
        keys = ", ".join(repr(k) for k in list(found)[:8]) or "none"
        raise Refused(f"no tensors in the checkpoint{_place(path)}; its keys: {keys}")
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise Refused(f"the tensor of key {name!r} has no name")
        _check_tensor(_shown(name), tensor, torch)
    names = without_prefix(list(tensors))
    for name in names:
        _check_name(name)
    return dict(zip(names, tensors.values())), others


def _check_name(name):
    """Names that a safetensors file cannot hold, or that pnetc does not read."""
    if not name:
        raise Refused("a tensor has an empty name: give it another one")
    if name == "__metadata__":
        raise Refused("a tensor is called __metadata__, which is no tensor in a safetensors file: give it another name")
    if "\0" in name:
        raise Refused(f"the name {ascii(name)} has a zero byte: give the tensor another one")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Refused(f"the name {ascii(name)} has half a surrogate pair, and is no text: give the tensor another one") from None


def _check_tensor(name, tensor, torch):
    """Tensors that a safetensors file cannot hold, or that pnetc does not read."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise Refused(f"{name} is sparse, quantised or nested: make it a plain tensor, by to_dense() or dequantize()")
    if tensor.device.type != "cpu":
        raise Refused(f"{name} is on the device {tensor.device}, where it has no numbers")
    if tensor.dtype not in _dtypes(torch):
        raise Refused(f"{name} is of type {tensor.dtype}, which safetensors files do not have")
    if tensor.dim() > DIMENSIONS:
        raise Refused(f"{name} has {tensor.dim()} dimensions, and pnetc reads {DIMENSIONS} at most")


def encode(tensors, torch):
    """The parts of a safetensors file: its header, then the bytes of each tensor. Wider types come first, as the alignment of the
    format wants; within a type the order stays, from which `pnetc import --propose` concludes."""
    names = _dtypes(torch)
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in order:
        begin, end = end, end + tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": names[tensors[name].dtype], "shape": list(tensors[name].shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER:
        raise Refused(f"its names take {len(text)} bytes, and pnetc reads {HEADER} at most")
    yield struct.pack("<Q", len(text)) + text
    for name in order:
        flat = tensors[name].detach().resolve_neg().contiguous().reshape(-1)
        yield flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def write(path, parts):
    """Replaces the file as a whole."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path), dir=folder)
    try:
        with os.fdopen(handle, "wb") as out:
            for part in parts:
                out.write(part)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path, torch, allow=()):
    """The checkpoint, of which nothing but tensors and plain values is loaded, and the classes that the caller names."""
    classes = []
    for name in allow:
        module, _, attribute = name.rpartition(".")
        try:
            classes.append(getattr(importlib.import_module(module), attribute))
        except (ImportError, AttributeError, ValueError) as e:
            raise Refused(f"--allow {name}: {e}") from None
    if classes and not hasattr(torch.serialization, "add_safe_globals"):
        raise Refused("--allow needs PyTorch 2.4 or later")
    if classes:
        torch.serialization.add_safe_globals(classes)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as e:  # torch raises what its unpickler meets
        reason = str(e).strip().split("\n")[0] or type(e).__name__
        raise Refused(f"not a checkpoint of tensors and plain values alone: {reason} (--allow MODULE.CLASS admits a class that "
                      "you trust, such as argparse.Namespace)") from None


def _complain(path, text, code):
    print(f"pnet.convert: {path}: {text}", file=sys.stderr)
    return code


def convert_scans(o):
    """Writes the scans of an E57 or PTX file. The exit code."""
    try:
        files = scans.convert(o.input, o.output, o.scans)
    except scans.Absent as e:
        print(f"pnet.convert: {e}", file=sys.stderr)
        return 1
    except scans.Refused as e:
        return _complain(o.input, e, 4)
    for path, scan in files:
        write(path, scans.encode(scan, path))
        lost = f"; left out, without a return: {scan.lost} points" if scan.lost else ""
        left = f"; left out, fields: {', '.join(map(_shown, scan.left))}" if scan.left else ""
        if not o.quiet:
            print(f"{_shown(path)}: {len(scan)} points{lost}{left}")
    return 0


def convert_checkpoint(o):
    """Writes the tensors of a checkpoint. The exit code."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        print("pnet.convert: needs PyTorch, and this Python has none: pip install torch", file=sys.stderr)
        return 1
    try:
        tensors, others = collect(read(o.input, torch, o.allow), torch)
        write(o.output, encode(tensors, torch))
    except Refused as e:
        return _complain(o.input, e, 4)
    if not o.quiet:
        left = f"; left out, no tensors: {', '.join(map(repr, others))}" if others else ""
        print(f"{_shown(o.output)}: {len(tensors)} tensors{left}")
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m pnet.convert",
        description="Writes files that pnetc does not read as files that it reads. The tensors of a PyTorch checkpoint become a "
        "safetensors file, for pnetc import: of wrappers (state_dict, model_state_dict, model) it takes what is inside; a prefix "
        "module. of all names is left out. The scans of an E57 or PTX file become a cloud, .ply or .npy, or a file for each scan "
        "in a folder, each moved by its pose; points without a return are left out.")
    parser.add_argument("input", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="OUT", required=True,
                        help="FILE.safetensors; of scans OUT.ply, OUT.npy or FOLDER")
    parser.add_argument("--allow", metavar="MODULE.CLASS", action="append", default=[],
                        help="of a checkpoint: load objects of this class, too; may be repeated")
    parser.add_argument("--scans", choices=("one", "each"),
                        help="one cloud of all scans, which -o names, or a file for each in the folder -o (default: as -o says)")
    parser.add_argument("-q", "--quiet", action="store_true")
    o = parser.parse_args(arguments)
    try:
        found = os.path.isfile(o.input) and scans.kind(o.input)
        return convert_scans(o) if found else convert_checkpoint(o)
    except MemoryError:
        print("pnet.convert: out of memory", file=sys.stderr)
        return 5
    except OSError as e:
        return _complain(e.filename or o.output, e.strerror, 1)


if __name__ == "__main__":
    sys.exit(main())
