# SPDX-License-Identifier: Apache-2.0
"""Chakra execution traces by hand: protobuf's wire format from the numbers of the schema, without podsim's code."""
import struct

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL = range(8)
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BARRIER = range(10)

# kind of an attribute: its field, and how a value is written
KINDS = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15, "sint64": 17,
    "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27, "string": 29, "bytes": 31,
}
FIXED = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, wire, content):
    return varint(number << 3 | wire) + content


def text(number, value):
    value = value.encode() if isinstance(value, str) else value
    return field(number, 2, varint(len(value)) + value)


def scalar(kind, number, value):
    """One value as a field."""
    if kind in ("string", "bytes"):
        return text(number, value)
    if kind in FIXED:
        return field(number, 1 if struct.calcsize(FIXED[kind]) == 8 else 5, struct.pack(FIXED[kind], value))
    if kind in ("sint32", "sint64"):
        value = value << 1 ^ value >> 63
    return field(number, 0, varint(int(value)))


def attr(name, value, kind="int64"):
    """An attribute; kind "bool_list" and the like are lists."""
    content = text(1, name)
    if kind.endswith("_list"):
        inner = kind[:-5]
        values = b"".join(scalar(inner, 1, v) for v in value)
        return text(10, content + text(KINDS[inner] + 1, values))
    return text(10, content + scalar(kind, KINDS[kind], value))


def packed_bools(name, values):
    return text(10, text(1, name) + text(28, text(1, bytes(int(v) for v in values))))


def node(id, kind, attrs=(), ctrl=(), data=(), micros=None, name=None, packed=True, inputs=None, extra=b""):
    out = field(1, 0, varint(id))
    if name is not None:
        out += text(2, name)
    if kind != INVALID:
        out += field(3, 0, varint(kind))
    for number, deps in ((4, ctrl), (5, data)):
        if packed and deps:
            out += text(number, b"".join(varint(d) for d in deps))
        else:
            out += b"".join(field(number, 0, varint(d)) for d in deps)
    if micros is not None:
        out += field(7, 0, varint(micros))
    if inputs is not None:
        out += text(8, text(1, inputs))
    return out + extra + b"".join(attrs)


def comp(id, micros, **more):
    return node(id, COMP, micros=micros, **more)


def coll(id, what, size, attrs=(), **more):
    return node(id, COLL, [attr("comm_type", what), attr("comm_size", size), *attrs], **more)


def message(id, kind, size, other, tag=None, **more):
    attrs = [attr("comm_size", size), attr("comm_dst" if kind == SEND else "comm_src", other, "int32")]
    if tag is not None:
        attrs.append(attr("comm_tag", tag, "int32"))
    return node(id, kind, attrs, **more)


def trace(*nodes, metadata=None):
    metadata = text(1, "1.0.0") if metadata is None else metadata
    return b"".join(varint(len(m)) + m for m in (metadata, *nodes))


def decode(data):
    """The messages of a file: fields as {number: [values]}, varints as numbers, others as bytes."""
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value, at
    at, out = 0, []
    while at < len(data):
        size, at = number(at)
        out.append(fields(data[at:at + size]))
        at += size
    return out


def fields(data):
    at, out = 0, {}
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value, at
    while at < len(data):
        key, at = number(at)
        wire = key & 7
        if wire == 0:
            value, at = number(at)
        elif wire == 2:
            size, at = number(at)
            value, at = data[at:at + size], at + size
        else:
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        out.setdefault(key >> 3, []).append(value)
    return out


def attrs_of(fields_of_node):
    """The attributes of a decoded node: name -> (field, value)."""
    out = {}
    for a in fields_of_node.get(10, []):
        a = fields(a)
        number = max(n for n in a if n > 2)
        out[a[1][0].decode()] = (number, a[number][0])
    return out
