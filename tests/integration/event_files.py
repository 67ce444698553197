"""TensorBoard event files, read with neither TensorBoard's nor dlrun's code."""

import pathlib
import struct

from protobuf_wire import fields

START = 1  # SessionLog.START


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """The records of a TFRecord file, up to the first that is cut off or damaged."""
    content, at = pathlib.Path(path).read_bytes(), 0
    while at + 12 <= len(content):
        length, check = struct.unpack_from("<QI", content, at)
        record = content[at + 12:at + 12 + length]
        tail = content[at + 12 + length:at + 16 + length]
        if check != masked_crc32c(content[at:at + 8]) or tail != struct.pack("<I", masked_crc32c(record)):
            return
        yield record
        at += 16 + length


def events(path):
    """What each event of a file says: step, and file_version, restart or scalars {tag: value}."""
    for record in records(path):
        event = fields(record)
        scalars = {}
        for summary in event.get(5, []):
            for value in map(fields, fields(summary).get(1, [])):
                scalars[value[1][0].decode()] = struct.unpack("<f", value[2][0])[0]
        status = [fields(log).get(1) for log in event.get(7, [])]
        yield {"step": event.get(2, [0])[0], "file_version": event.get(3, [b""])[0].decode(),
               "restart": status == [[START]], "scalars": scalars}


def files(folder):
    return sorted(pathlib.Path(folder).glob("events.out.tfevents.*"))


def series(folder):
    """tag -> [(step, value)] of all files by name: a restart voids what was written before of its step and beyond."""
    shown = {}
    for path in files(folder):
        for event in events(path):
            if event["restart"]:
                shown = {tag: [point for point in points if point[0] < event["step"]] for tag, points in shown.items()}
            for tag, value in event["scalars"].items():
                shown.setdefault(tag, []).append((event["step"], value))
    return shown


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]
