"""What WireProxy can do to a call or to its connection, and where.

A Fault is a place and an action. An action's `fire(connection, call)` runs on the proxy's loop, between two bytes of the stream.
"""

import asyncio
import dataclasses
import random
import struct
from typing import Callable

import wire_frames as h2


@dataclasses.dataclass(frozen=True)
class Fault:
    """`action`, once in each call that gets to the place: of `method`, the `call`-th through the proxy (from 1; None = any), of the session's stream `stream`.

    The place (`when`): "request" (complete, before it is passed on), "headers" (before those of the answer), "trailers" (before them), or "data": after `messages` whole
    messages and `bytes` more, or `share` of the message that follows, or after `frames` DATA frames. `times` bounds the calls; 0 = no bound.
    """

    action: object
    method: str = "ReadRows"
    call: int | None = None
    stream: int | None = None
    times: int = 1
    when: str = "data"
    messages: int = 0
    bytes: int = 0
    share: float | None = None
    frames: int | None = None

    def fits(self, call):
        return self.method == call.method and self.call in (None, call.number) and self.stream in (None, call.stream_index)

    def offset_in_message(self, size):
        """Bytes of the message after `messages` at which to fire; None while its size is not known."""
        if self.share is None:
            return self.bytes
        return None if size is None else max(h2.MESSAGE_PREFIX, int(size * self.share))


@dataclasses.dataclass(frozen=True)
class AcceptFault:
    """What happens to a new connection: the `connection`-th (from 1; None = any), at most `times`; 0 = no bound.

    `how`: "reset" and "close" (at once), "silent" (accepted, never a byte), "http1" (an answer of another protocol), "refuse" (reset, and nobody listens for `seconds`),
    "no_window" (the peer is told that no byte may be sent, and no WINDOW_UPDATE passes).
    """

    how: str
    connection: int | None = None
    times: int = 1
    seconds: float = 0.5


@dataclasses.dataclass(frozen=True)
class Reset:
    """RST_STREAM to both sides."""

    code: int

    async def fire(self, connection, call):
        await connection.send(h2.rst_stream(call.id, self.code))
        await connection.abandon(call, f"RST_STREAM {self.code}")


@dataclasses.dataclass(frozen=True)
class GoAway:
    """`last`: "current" (the call may end), "before" (the call is disowned), "all" (the first step of a graceful end), or a number. `close`: the connection ends with it."""

    last: str | int = "current"
    code: int = h2.NO_ERROR
    text: bytes = b""
    close: bool = False

    async def fire(self, connection, call):
        last = {"current": call.id, "before": call.id - 2 if call.id > 1 else 0, "all": h2.MOST_STREAM_ID}.get(self.last, self.last)
        await connection.send(h2.goaway(last, self.code, self.text))
        if self.last == "before":
            await connection.abandon(call, "GOAWAY")
        if self.close:
            await connection.end("close")


@dataclasses.dataclass(frozen=True)
class Close:
    """The connection ends: "close" (FIN), "reset" (TCP RST), or "half" (FIN of our side only; what the client sends is still taken)."""

    how: str = "close"

    async def fire(self, connection, call):
        await connection.end(self.how)


@dataclasses.dataclass(frozen=True)
class Stall:
    """Nothing more of this call; the connection lives."""

    async def fire(self, connection, call):
        call.hold()


@dataclasses.dataclass(frozen=True)
class Freeze:
    """Nothing more on this connection, either way, not even the answer to a PING; and nobody closes it."""

    async def fire(self, connection, call):
        connection.frozen = True


@dataclasses.dataclass(frozen=True)
class Deaf:
    """PINGs of the client are lost from here on; everything else passes."""

    async def fire(self, connection, call):
        connection.deaf = True


@dataclasses.dataclass(frozen=True)
class Trickle:
    """The rest of the call by `bytes` each `seconds`."""

    bytes: int
    seconds: float

    async def fire(self, connection, call):
        call.hold()
        connection.start(self._pump(connection, call))

    async def _pump(self, connection, call):
        while call.held():
            await asyncio.sleep(self.seconds)
            await connection.release(call, self.bytes)


@dataclasses.dataclass(frozen=True)
class Delay:
    seconds: float

    async def fire(self, connection, call):
        await asyncio.sleep(self.seconds)


@dataclasses.dataclass(frozen=True)
class Mangle:
    """What comes next is lost ("drop"), comes twice ("duplicate"), changes places with what follows ("swap"), or gets a first byte that means nothing ("flag"). `unit`:
    "message", or a number of bytes."""

    how: str
    unit: str | int = "message"
    later = True  # has fired once the bytes were there

    async def fire(self, connection, call):
        call.mangle = self

    def apply(self, held):
        """(bytes to pass on, the rest), or None while `held` is too short."""
        first = self._end(held, 0)
        second = self._end(held, first) if first is not None and self.how == "swap" else first
        if second is None:
            return None
        if self.how == "swap":
            return held[first:second] + held[:first], held[second:]
        if self.how == "flag":
            return b"\x7e" + held[1:first], held[first:]
        return (held[:first] * 2 if self.how == "duplicate" else b""), held[first:]

    def _end(self, held, start):
        if self.unit != "message":
            end = start + self.unit
        elif len(held) < start + h2.MESSAGE_PREFIX:
            return None
        else:
            end = start + h2.MESSAGE_PREFIX + int.from_bytes(held[start + 1:start + 5], "big")
        return end if len(held) >= end else None


@dataclasses.dataclass(frozen=True)
class Starve:
    """No WINDOW_UPDATE of the client passes any more: what it may be sent runs out."""

    async def fire(self, connection, call):
        connection.no_window = True


@dataclasses.dataclass(frozen=True)
class Noise:
    """In the rest of the call about one byte in `distance` is another one, prefixes of messages included; where and which, `seed` says."""

    seed: int
    distance: int

    async def fire(self, connection, call):
        generator = random.Random(self.seed)

        def noisy(data):
            changed = bytearray(data)
            at = int(generator.expovariate(1 / self.distance))
            while at < len(changed):
                changed[at] ^= 1 << generator.randrange(8)
                at += 1 + int(generator.expovariate(1 / self.distance))
            return bytes(changed)

        call.change = noisy


@dataclasses.dataclass(frozen=True)
class Storm:
    """Many small frames at once: "settings" (each with another window), "ping", "window" or "unknown"."""

    kind: str
    frames: int

    async def fire(self, connection, call):
        for number in range(self.frames):
            if self.kind == "settings":
                await connection.send_settings([(h2.SETTINGS_INITIAL_WINDOW_SIZE, 65_535 + number)])
            elif self.kind == "ping":
                await connection.send_ping()
            elif self.kind == "window":
                await connection.send(h2.window_update(0, 1))
            else:
                await connection.send(h2.frame(0xF0 + number % 16, number % 256, number % 3, b"x" * (number % 50)))


@dataclasses.dataclass(frozen=True)
class EndStream:
    """The stream ends in good order, without trailers."""

    async def fire(self, connection, call):
        await connection.send(h2.frame(h2.DATA, h2.END_STREAM, call.id))
        await connection.abandon(call, "END_STREAM")


@dataclasses.dataclass(frozen=True)
class Trailers:
    """These instead of the rest."""

    headers: tuple

    async def fire(self, connection, call):
        await connection.send(h2.header_frames(call.id, self.headers, True))
        await connection.abandon(call, "trailers of the proxy")


@dataclasses.dataclass(frozen=True)
class Raw:
    """The bytes that `build(stream id)` makes, into the connection; `over`: the call is over with them."""

    build: Callable
    over: bool = True

    async def fire(self, connection, call):
        await connection.send(self.build(call.id))
        if self.over:
            await connection.abandon(call, "raw bytes")


def status_trailers(code, message):
    return Trailers(((b"grpc-status", str(code).encode()), (b"grpc-message", message.encode())))


def http_answer(status, content_type=b"text/html"):
    """What a front end that speaks no gRPC says instead of an answer."""
    return Trailers(((b":status", str(status).encode()), (b"content-type", content_type)))


# One frame that breaks the protocol each, by what is wrong with it: f(stream id).
MALFORMED = {
    "data of stream 0": lambda stream: h2.frame(h2.DATA, 0, 0, b"lost"),
    "a header block that cannot be decoded": lambda stream: h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, b"\xff\xff\xff\xff\xff\xff"),
    "a header block without an end": lambda stream: h2.frame(h2.HEADERS, 0, stream, b"\x88") + h2.frame(h2.DATA, 0, stream, b"?"),
    "continuation of nothing": lambda stream: h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream, b"\x88"),
    "a push that nobody allowed": lambda stream: h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, stream, struct.pack("!I", 2) + b"\x88"),
    "a ping of seven bytes": lambda stream: h2.frame(h2.PING, 0, 0, b"seven by"[:7]),
    "settings of five bytes": lambda stream: h2.frame(h2.SETTINGS, 0, 0, b"12345"),
    "a window of 2^32 - 1": lambda stream: h2.settings([(h2.SETTINGS_INITIAL_WINDOW_SIZE, 2**32 - 1)]),
    "a window update of 0": lambda stream: h2.window_update(stream, 0),
    "a window that overflows": lambda stream: h2.window_update(0, 2**31 - 1) * 2,
    "a reset of three bytes": lambda stream: h2.frame(h2.RST_STREAM, 0, stream, b"abc"),
    "a goaway of four bytes": lambda stream: h2.frame(h2.GOAWAY, 0, 0, b"abcd"),
    "a frame longer than allowed": lambda stream: b"\xff\xff\xff" + bytes([h2.DATA, 0]) + struct.pack("!I", stream) + bytes(1 << 20),
    "another protocol": lambda stream: b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    "random bytes": lambda stream: random.Random(stream).randbytes(4096),
    "padding longer than the frame": lambda stream: h2.frame(h2.DATA, h2.PADDED, stream, b"\xff12"),
    "a message that says it is compressed": lambda stream: h2.frame(h2.DATA, 0, stream, b"\x01\x00\x00\x00\x04abcd"),
    "a message flag that does not exist": lambda stream: h2.frame(h2.DATA, 0, stream, b"\x7e\x00\x00\x00\x04abcd"),
}

# Mended by another attempt, wherever they strike.
MENDABLE = (
    *(Reset(code) for code in range(14)), Close("close"), Close("reset"), Close("half"), GoAway("before"), GoAway("current"), GoAway("all"),
    GoAway("current", h2.INTERNAL_ERROR, b"dying", close=True), EndStream(), Stall(), Freeze(), Delay(0.05), Storm("settings", 50), Storm("ping", 50), Trickle(20_000, 0.01),
    http_answer(503),
)


def random_faults(seed, calls, most_messages, actions=MENDABLE, probability=0.7):
    """A fault for most of the first `calls` calls of ReadRows, chosen by the seed alone."""
    generator = random.Random(seed)
    faults = []
    for call in range(1, calls + 1):
        place = {"messages": generator.randrange(most_messages)}
        kind = generator.randrange(4)
        place |= [{}, {"bytes": generator.randrange(1, 400)}, {"share": generator.random()}, {"when": generator.choice(["request", "headers", "trailers"])}][kind]
        action = generator.choice(actions)
        if isinstance(action, Trailers) and place.get("when") != "request":
            action = Reset(generator.randrange(14))
        if generator.random() < probability:
            faults.append(Fault(action, call=call, **place))
    return faults
