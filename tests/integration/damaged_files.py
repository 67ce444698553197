"""Files of several formats, as far as wrong ones need them."""

import struct
import zlib

import small_data
from bad_input_case import RECORDS


def png(depth=8, content=bytes(5)):
    """A gray picture of 4 pixels: a filter byte, then one row."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">2I5B", 4, 1, depth, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")


def npy(descr="<f4", shape=(RECORDS, 2), fortran=False, size=None):
    return small_data.npy(shape, bytes(4 * 2 * RECORDS if size is None else size), descr, fortran)


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(content):
    length = struct.pack("<Q", len(content))
    return length + masked_crc32c(length) + content + masked_crc32c(content)


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1:]
