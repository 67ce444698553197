"""Safetensors files, read and written without the package of that name."""

import json
import math
import struct


def read(path):
    """@returns metadata, and the tensors: name -> (dtype, shape, bytes)."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    head = json.loads(content[8:8 + length])
    metadata = head.pop("__metadata__", {})
    data = content[8 + length:]
    return metadata, {name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])]) for name, one in head.items()}


def write(path, tensors, metadata=None):
    """The reverse."""
    head, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def floats(tensor):
    """The numbers of an F32 tensor."""
    dtype, shape, content = tensor
    assert dtype == "F32", dtype
    return struct.unpack(f"<{math.prod(shape)}f", content)
