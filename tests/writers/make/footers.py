# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Parquet footers (Thrift's compact protocol) as {field id: (kind, value)}, for files that no library writes."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self):
        n = shift = 0
        while True:
            b = self.byte()
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    def signed(self):
        n = self.unsigned()
        return (n >> 1) ^ -(n & 1)

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind in (TRUE, FALSE, BYTE):
            return self.byte()
        if kind in (I16, I32, I64):
            return self.signed()
        if kind == DOUBLE:
            return self.take(8)
        if kind == BINARY:
            return self.take(self.unsigned())
        if kind in (LIST, SET):
            head = self.byte()
            n = head >> 4 if head >> 4 < 15 else self.unsigned()
            return head & 15, [self.value(head & 15) for _ in range(n)]
        assert kind == STRUCT, kind
        fields, id = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            id = id + (head >> 4) if head >> 4 else self.signed()
            kind = head & 15
            fields[id] = (kind, None if kind in (TRUE, FALSE) else self.value(kind))


def unsigned(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def signed(n):
    return unsigned(n << 1 if n >= 0 else (-n << 1) - 1)


def write(kind, v):
    if kind in (TRUE, FALSE, BYTE):
        return bytes([v])
    if kind in (I16, I32, I64):
        return signed(v)
    if kind == DOUBLE:
        return v
    if kind == BINARY:
        return unsigned(len(v)) + v
    if kind in (LIST, SET):
        of, items = v
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + unsigned(len(items))
        return head + b"".join(write(of, i) for i in items)
    out = b""
    for id in sorted(v):
        kind, value = v[id]
        out += bytes([kind]) + signed(id)
        if kind not in (TRUE, FALSE):
            out += write(kind, value)
    return out + b"\0"


def edit(data, change):
    """The file with a footer that change(footer) changed in place."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = Reader(data[-8 - size:-8]).value(STRUCT)
    change(footer)
    new = write(STRUCT, footer)
    return data[:-8 - size] + new + len(new).to_bytes(4, "little") + b"PAR1"


# Fields of FileMetaData and of SchemaElement.
def elements(footer):
    return footer[2][1][1]


def set_elements(footer, to):
    footer[2] = (LIST, (STRUCT, to))


def chunks(footer):
    """The ColumnMetaData of every column chunk, row group by row group."""
    for group in footer[4][1][1]:
        yield [chunk[3][1] for chunk in group[1][1][1]]


def name(element):
    return element[4][1].decode()


def set_name(element, to):
    element[4] = (BINARY, to.encode())


def path(chunk):
    return [p.decode() for p in chunk[3][1][1]]


def set_path(chunk, to):
    chunk[3] = (LIST, (BINARY, [p.encode() for p in to]))


def set_converted(element, to):
    """The older annotation alone."""
    element[6] = (I32, to)
    element.pop(10, None)


def set_repetition(element, to):
    element[3] = (I32, to)
