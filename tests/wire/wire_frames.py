"""HTTP/2 frames and header blocks (RFC 9113, RFC 7541), as far as a proxy needs them, and the gRPC messages inside of DATA."""

import struct

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, HAS_PRIORITY = 0x4, 0x8, 0x20
SETTINGS_HEADER_TABLE_SIZE, SETTINGS_INITIAL_WINDOW_SIZE = 1, 4
(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR,
 CONNECT_ERROR, ENHANCE_YOUR_CALM, INADEQUATE_SECURITY, HTTP_1_1_REQUIRED) = range(14)
MOST_STREAM_ID = 2**31 - 1
# gRPC announces 16 MiB - 1; what is longer cannot come from a peer that keeps to the protocol.
LONGEST_FRAME = 1 << 24
# Header blocks are cut so that every receiver takes them.
HEADER_FRAGMENT = 16_384
MESSAGE_PREFIX = 5  # gRPC: one byte of flags, four of length


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def rst_stream(stream, code):
    return frame(RST_STREAM, 0, stream, struct.pack("!I", code))


def goaway(last_stream, code, text=b""):
    return frame(GOAWAY, 0, 0, struct.pack("!II", last_stream, code) + text)


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack("!I", increment))


def settings(pairs=()):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack("!HI", key, value) for key, value in pairs))


async def read_frame(reader):
    """(type, flags, stream, payload)"""
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    return head[3], head[4], int.from_bytes(head[5:], "big") & MOST_STREAM_ID, await reader.readexactly(length)


def settings_pairs(payload):
    return [struct.unpack_from("!HI", payload, at) for at in range(0, len(payload) - 5, 6)]


def without_padding(flags, payload):
    """The payload of DATA or HEADERS without padding and priority."""
    if flags & PADDED:
        payload = payload[1:len(payload) - payload[0]]
    return payload[5:] if flags & HAS_PRIORITY else payload


class HeaderDecoder:
    """The header blocks of one direction of a connection."""

    def __init__(self):
        self._decoder = hpack.Decoder(max_header_list_size=1 << 20)

    def allow_table(self, size):
        self._decoder.max_allowed_table_size = size

    def decode(self, block):
        return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]


def header_frames(stream, headers, end_stream):
    """HEADERS, and CONTINUATION where needed. Literals without a dynamic table: a block can be left out without harm to the next one."""
    block = b"".join(b"\x00" + _literal(name) + _literal(value) for name, value in headers)
    parts = [block[at:at + HEADER_FRAGMENT] for at in range(0, len(block), HEADER_FRAGMENT)] or [b""]
    frames = b""
    for number, part in enumerate(parts):
        flags = (END_HEADERS if number == len(parts) - 1 else 0) | (END_STREAM if end_stream and number == 0 else 0)
        frames += frame(CONTINUATION if number else HEADERS, flags, stream, part)
    return frames


def _literal(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, length = len(text) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + text


class MessageCursor:
    """Where in a sequence of gRPC messages the bytes of a stream's DATA are."""

    def __init__(self):
        self.done = 0      # whole messages behind
        self.position = 0  # bytes of the current message behind, prefix included
        self._prefix = b""

    @property
    def size(self):
        """Bytes of the current message with its prefix; None while the prefix is not complete."""
        return MESSAGE_PREFIX + int.from_bytes(self._prefix[1:], "big") if len(self._prefix) == MESSAGE_PREFIX else None

    def left(self):
        """Bytes to the next point where something is learnt: the end of the prefix or of the message."""
        return (MESSAGE_PREFIX if self.size is None else self.size) - self.position

    def advance(self, piece):
        """At most left() bytes."""
        if self.size is None:
            self._prefix += piece
        self.position += len(piece)
        if self.position == self.size:
            self.done, self.position, self._prefix = self.done + 1, 0, b""


def read_rows_request(message):
    """The stream's name and offset of a serialized ReadRowsRequest: fields 1 (string) and 2 (int64)."""
    name, offset, at = "", 0, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value = varint()
            offset = value if key >> 3 == 2 else offset
        elif key & 7 == 2:
            size = varint()
            name = message[at:at + size].decode() if key >> 3 == 1 else name
            at += size
        else:
            raise ValueError(f"wire type {key & 7} in a ReadRowsRequest")
    return name, offset
