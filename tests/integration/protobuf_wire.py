"""Messages of protobuf, read without their description."""


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message):
    """field number -> values, of a protobuf message; those of fixed size as bytes."""
    found, at = {}, 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            size, at = {1: lambda: (8, at), 5: lambda: (4, at), 2: lambda: varint(message, at)}[key & 7]()
            value, at = message[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def without(message, numbers):
    """The message less the fields of these numbers, which have a length each."""
    kept, at = b"", 0
    while at < len(message):
        begin = at
        key, at = varint(message, at)
        if key & 7 == 0:
            _, at = varint(message, at)
        else:
            size, at = {1: lambda: (8, at), 5: lambda: (4, at), 2: lambda: varint(message, at)}[key & 7]()
            at += size
        if key >> 3 not in numbers:
            kept += message[begin:at]
    return kept
