"""A proxy between a gRPC client and its server that knows HTTP/2's frames and breaks them as told.

    with WireProxy("127.0.0.1:41234") as proxy:
        proxy.set_faults(Fault(Reset(h2.INTERNAL_ERROR), call=1, messages=2, share=0.5))
        ... a client of proxy.endpoint ...
        proxy.counters()

One thread with an event loop of its own. Each connection of the client gets one to the server; streams keep their ids, WINDOW_UPDATEs pass through, so that memory is
bounded by the windows of the two ends. Header blocks are decoded and written anew, so one can be left out. Connections are cut after `limit_seconds`.
"""

import asyncio
import collections
import contextlib
import json
import socket
import struct
import threading

import wire_frames as h2
from wire_faults import AcceptFault

# Before a fault strikes, what went before it gets this time to reach the program behind the client's socket.
SETTLE_SECONDS = 0.05
MOST_CALLS = 20_000  # of which details are kept


class Call:
    """One stream of a connection."""

    def __init__(self, stream, connection, method):
        self.id, self.connection, self.method = stream, connection, method
        self.number = self.stream_index = None
        self.read_stream, self.offset = "", None
        self.request = b""
        self.cursor = h2.MessageCursor()
        self.bytes = self.frames = 0
        self.answer_begun = False
        self.ended = None
        self.mangle, self.mangled, self.on_mangled = None, b"", None
        self.change = None  # a function of the bytes, for what is passed on
        self.queue = None  # what is held back; None = nothing is
        self.fired = set()

    def hold(self):
        if self.queue is None:
            self.queue = collections.deque()

    def held(self):
        return self.queue is not None and self.ended is None

    def take_request(self, data):
        """Of a complete ReadRows request: which stream, from which row on."""
        self.request += data[:65_536 - len(self.request)]
        if self.method == "ReadRows" and len(self.request) > h2.MESSAGE_PREFIX:
            with contextlib.suppress(IndexError, ValueError):
                self.read_stream, self.offset = h2.read_rows_request(self.request[h2.MESSAGE_PREFIX:])
                index = self.read_stream.rsplit("/", 1)[-1]
                self.stream_index = int(index) if index.isdigit() else None

    def record(self):
        return {"call": self.number, "connection": self.connection, "stream": self.read_stream, "index": self.stream_index, "offset": self.offset,
                "messages": self.cursor.done, "bytes": self.bytes, "ended": self.ended or "open"}


class Connection:
    def __init__(self, proxy, number, client_reader, client, server_reader, server, no_window):
        self.proxy, self.number, self.no_window = proxy, number, no_window
        self.client_reader, self.client, self.server_reader, self.server = client_reader, client, server_reader, server
        self.frozen = self.deaf = self.half_closed = False
        self.calls = {}
        self.request_headers, self.answer_headers = h2.HeaderDecoder(), h2.HeaderDecoder()
        self.block = {}
        self.settings_sent_by = collections.deque()  # SETTINGS to the client that wait for their ACK: "server" or "proxy"
        self.pings = 0
        self.tasks = set()
        self.lock = asyncio.Lock()

    async def run(self):
        pumps = [asyncio.ensure_future(self._from_client()), asyncio.ensure_future(self._from_server())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in [*pumps, *self.tasks]:
                task.cancel()
            results = await asyncio.gather(*pumps, *self.tasks, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception) and not isinstance(result, (asyncio.IncompleteReadError, OSError)):
                    self.proxy.errors.append(repr(result))
            for call in self.calls.values():
                call.ended = call.ended or "connection closed"
            await _close(self.client)
            await _close(self.server)

    def start(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # What actions use.

    async def send(self, data):
        """To the client."""
        async with self.lock:
            self.client.write(data)
            await self.client.drain()

    async def send_settings(self, pairs):
        self.settings_sent_by.append("proxy")
        await self.send(h2.settings(pairs))

    async def send_ping(self):
        self.pings += 1
        await self.send(h2.frame(h2.PING, 0, 0, b"headrace"))

    async def abandon(self, call, why):
        """The client's side of the call is over: the server is told, and what still comes of it is dropped."""
        call.ended = call.ended or why
        self._drop_held(call)
        self.server.write(h2.rst_stream(call.id, h2.CANCEL))

    async def end(self, how):
        self.proxy.counts["connections ended: " + how] += 1
        if how == "half":
            self.half_closed = True
            self.client.write_eof()
            return
        if how == "reset":
            _abort(self.client)
        raise ConnectionAbortedError(how)

    async def release(self, call, most_bytes):
        """Passes on the next `most_bytes` of a held call."""
        while call.queue and most_bytes > 0:
            kind, item = call.queue.popleft()
            if kind == "headers":
                await self._send_trailers(call, item)
                return
            if len(item) > most_bytes:
                call.queue.appendleft(("data", item[most_bytes:]))
                item = item[:most_bytes]
            most_bytes -= len(item)
            await self._send_data(call, item)

    def _drop_held(self, call):
        held = sum(len(item) for kind, item in call.queue or () if kind == "data")
        call.queue = None
        self._give_back(held)

    def _give_back(self, size):
        """The client will never give back the room that bytes which it does not get took in the connection's window."""
        if size > 0 and not self.no_window:
            self.server.write(h2.window_update(0, size))

    # Client to server.

    async def _from_client(self):
        self.server.write(await self.client_reader.readexactly(len(h2.PREFACE)))
        while True:
            kind, flags, stream, payload = await h2.read_frame(self.client_reader)
            self.proxy.counts[f"from client: {kind}"] += 1
            if self.frozen or self.half_closed or (self.deaf and kind == h2.PING):
                self.proxy.counts["frames lost"] += 1
                continue
            if kind in (h2.HEADERS, h2.CONTINUATION):
                await self._request_headers(kind, flags, stream, payload)
            elif kind == h2.DATA and stream in self.calls:
                await self._request_data(flags, self.calls[stream], payload)
            elif kind == h2.SETTINGS:
                self._client_settings(flags, payload)
            elif kind == h2.WINDOW_UPDATE and self.no_window:
                self.proxy.counts["window updates lost"] += 1
            elif kind == h2.PING and flags & h2.ACK and payload == b"headrace" and self.pings > 0:
                self.pings -= 1
                self.proxy.counts["own pings answered"] += 1
            else:
                if kind == h2.RST_STREAM and stream in self.calls:
                    call = self.calls[stream]
                    call.ended = call.ended or "reset by the client"
                    self._drop_held(call)
                self.server.write(h2.frame(kind, flags, stream, payload))
            await self.server.drain()

    def _whole_block(self, direction, kind, flags, stream, payload):
        """(header block, END_STREAM) once it is complete."""
        if kind == h2.HEADERS:
            self.block[direction] = (h2.without_padding(flags, payload), flags & h2.END_STREAM)
        else:
            block, end = self.block[direction]
            self.block[direction] = (block + payload, end)
        return self.block.pop(direction) if flags & h2.END_HEADERS else None

    async def _request_headers(self, kind, flags, stream, payload):
        whole = self._whole_block("request", kind, flags, stream, payload)
        if whole is None:
            return
        headers = self.request_headers.decode(whole[0])
        path = dict(headers).get(b":path", b"").decode()
        call = self.calls[stream] = Call(stream, self.number, path.rsplit("/", 1)[-1])
        self.proxy.note_call(call)
        self.server.write(h2.header_frames(stream, headers, bool(whole[1])))

    async def _request_data(self, flags, call, payload):
        call.take_request(h2.without_padding(flags & h2.PADDED, payload))
        if flags & h2.END_STREAM:
            await self._fire(call, "request")
        if call.ended is None and not self.frozen:
            self.server.write(h2.frame(h2.DATA, flags, call.id, payload))

    def _client_settings(self, flags, payload):
        if flags & h2.ACK:
            if self.settings_sent_by and self.settings_sent_by.popleft() == "proxy":
                self.proxy.counts["own settings acknowledged"] += 1
                return
        pairs = h2.settings_pairs(payload)
        for key, value in pairs:
            if key == h2.SETTINGS_HEADER_TABLE_SIZE:
                self.answer_headers.allow_table(value)
        if self.no_window and not flags & h2.ACK:
            pairs = [pair for pair in pairs if pair[0] != h2.SETTINGS_INITIAL_WINDOW_SIZE] + [(h2.SETTINGS_INITIAL_WINDOW_SIZE, 0)]
            payload = h2.settings(pairs)[9:]
        self.server.write(h2.frame(h2.SETTINGS, flags, 0, payload))

    # Server to client.

    async def _from_server(self):
        while True:
            kind, flags, stream, payload = await h2.read_frame(self.server_reader)
            self.proxy.counts[f"from server: {kind}"] += 1
            if self.frozen or self.half_closed:
                continue
            call = self.calls.get(stream)
            if kind in (h2.HEADERS, h2.CONTINUATION):
                await self._answer_headers(kind, flags, stream, payload)
            elif kind == h2.DATA and call is not None:
                await self._answer_data(flags, call, h2.without_padding(flags & h2.PADDED, payload))
            elif call is None or call.ended is None or kind == h2.WINDOW_UPDATE:
                if kind == h2.SETTINGS and not flags & h2.ACK:
                    self.settings_sent_by.append("server")
                    for key, value in h2.settings_pairs(payload):
                        if key == h2.SETTINGS_HEADER_TABLE_SIZE:
                            self.request_headers.allow_table(value)
                if kind == h2.RST_STREAM:
                    call.ended = f"reset by the server ({int.from_bytes(payload, 'big')})"
                await self.send(h2.frame(kind, flags, stream, payload))

    async def _answer_headers(self, kind, flags, stream, payload):
        whole = self._whole_block("answer", kind, flags, stream, payload)
        if whole is None:
            return
        headers, call = self.answer_headers.decode(whole[0]), self.calls.get(stream)
        if call is None or call.ended is not None:
            return
        await self._fire(call, "trailers" if whole[1] else "headers")
        if call.ended is not None or self.frozen or self.half_closed:
            return
        if not whole[1]:
            await self.send(h2.header_frames(stream, headers, False))
            call.answer_begun = True
            await self._fire(call, "data")
            return
        if call.mangle is not None:  # too little came for it to strike
            call.mangle = None
            await self._pass_on(call, call.mangled)
        if call.queue is not None:
            call.queue.append(("headers", headers))
        else:
            await self._send_trailers(call, headers)

    async def _send_trailers(self, call, headers):
        await self.send(h2.header_frames(call.id, headers, True))
        call.ended, call.queue = "status " + dict(headers).get(b"grpc-status", b"?").decode(), None

    async def _answer_data(self, flags, call, payload):
        view, ready, taken = memoryview(payload), bytearray(), 0
        call.frames += 1
        while view and call.ended is None and not self.frozen and not self.half_closed:
            piece = view[:min(len(view), call.cursor.left(), self.proxy.distance(call))]
            call.cursor.advance(bytes(piece) if call.cursor.size is None else piece)
            call.bytes += len(piece)
            ready += piece
            view, taken = view[len(piece):], taken + len(piece)
            if self.proxy.due(call, "data", at_frame_end=not view):
                await self._pass_on(call, bytes(ready))
                ready.clear()
                await self._fire(call, "data", at_frame_end=not view)
        if self.frozen or self.half_closed:
            return
        if call.ended is not None:
            self._give_back(len(payload) - taken)
            return
        await self._pass_on(call, bytes(ready))
        if flags & h2.END_STREAM:
            await self.send(h2.frame(h2.DATA, h2.END_STREAM, call.id))
            call.ended = "END_STREAM of the server"

    async def _pass_on(self, call, data):
        if call.mangle is not None:
            call.mangled += data
            done = call.mangle.apply(call.mangled)
            if done is None:
                return
            call.mangle, call.mangled = None, b""
            call.on_mangled()
            data = b"".join(done)
        if not data:
            return
        if call.change is not None:
            data = call.change(data)
        if call.queue is not None:
            call.queue.append(("data", data))
        else:
            await self._send_data(call, data)

    async def _send_data(self, call, data):
        fragment = self.proxy.fragment or len(data)
        for at in range(0, len(data), max(fragment, 1)):
            await self.send(h2.frame(h2.DATA, 0, call.id, data[at:at + fragment]))

    async def _fire(self, call, when, at_frame_end=False):
        for rule in self.proxy.due(call, when, at_frame_end):
            if call.ended is not None:
                return
            call.fired.add(rule)
            state = self.proxy.rules[rule]
            note = {**call.record(), "into_message": call.cursor.position}
            await asyncio.sleep(SETTLE_SECONDS)
            if getattr(state["fault"].action, "later", False):
                call.on_mangled = lambda state=state, note=note: _count(state, note)
            else:
                _count(state, note)
            await state["fault"].action.fire(self, call)


def _count(state, note):
    state["fired"] += 1
    state["at"].append(note)


def _abort(writer):
    """A TCP RST."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _close(writer):
    writer.close()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(writer.wait_closed(), 1)


class WireProxy:
    def __init__(self, upstream, fragment=0, limit_seconds=290):
        self.upstream_host, port = upstream.rsplit(":", 1)
        self.upstream_port, self.fragment, self.limit_seconds = int(port), fragment, limit_seconds
        self.port = 0
        self.rules, self.accept_rules, self.errors = [], [], []
        self.counts, self.connections = collections.Counter(), 0
        self.calls, self.call_numbers = [], collections.Counter()
        self.open_connections = set()
        self._tasks, self._ready = set(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="wire proxy", daemon=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self._thread.start()
        assert self._ready.wait(10) and self.port, "the proxy does not start"

    def stop(self):
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the proxy does not stop"
        assert not self.errors, self.errors

    def set_faults(self, *faults):
        """Replaces all faults, and forgets what was counted."""

        def replace():
            self.rules = [{"fault": fault, "fired": 0, "at": []} for fault in faults if not isinstance(fault, AcceptFault)]
            self.accept_rules = [{"fault": fault, "fired": 0, "at": []} for fault in faults if isinstance(fault, AcceptFault)]
            self.counts.clear()
            self.call_numbers.clear()
            self.calls, self.connections = [], 0

        self._on_loop(replace)

    def counters(self):
        """All of it as JSON has it: {"connections", "calls": {method: [..]}, "faults": [{"fault", "fired", "at"}], "counts"}."""

        def read():
            calls = {method: [] for method in self.call_numbers}
            for call in self.calls:
                calls[call.method].append(call.record())
            faults = [{"fault": repr(rule["fault"]), "fired": rule["fired"], "at": rule["at"]} for rule in self.rules + self.accept_rules]
            return json.loads(json.dumps({"connections": self.connections, "calls": calls, "faults": faults, "counts": dict(self.counts)}))

        return self._on_loop(read)

    def fired(self):
        return [rule["fired"] for rule in self.counters()["faults"]]

    def opens(self):
        """{index of the stream: [offset of each ReadRows call]}"""
        opens = collections.defaultdict(list)
        for call in self.counters()["calls"].get("ReadRows", []):
            opens[call["index"]].append(call["offset"])
        return dict(opens)

    def freeze_all(self):
        """Every connection that is open now is dead from here on: nothing passes, and nobody is told."""

        def freeze():
            for connection in self.open_connections:
                connection.frozen = True

        self._on_loop(freeze)

    # On the loop's thread from here on.

    def note_call(self, call):
        self.call_numbers[call.method] += 1
        call.number = self.call_numbers[call.method]
        if len(self.calls) < MOST_CALLS:
            self.calls.append(call)

    def distance(self, call):
        """Bytes to the next place in the current message where a fault strikes."""
        nearest = 1 << 30
        for number, rule in enumerate(self.rules):
            fault = rule["fault"]
            if number in call.fired or fault.when != "data" or fault.frames is not None or fault.messages != call.cursor.done or not fault.fits(call):
                continue
            offset = fault.offset_in_message(call.cursor.size)
            if offset is not None and offset > call.cursor.position:
                nearest = min(nearest, offset - call.cursor.position)
        return nearest

    def due(self, call, when, at_frame_end=False):
        """The rules that strike here."""
        due = []
        for number, rule in enumerate(self.rules):
            fault = rule["fault"]
            if number in call.fired or fault.when != when or not fault.fits(call) or 0 < fault.times <= rule["fired"]:
                continue
            cursor = call.cursor
            if when != "data" or (fault.frames is not None and at_frame_end and fault.frames <= call.frames) or (
                    fault.frames is None and (cursor.done, cursor.position) == (fault.messages, fault.offset_in_message(cursor.size))):
                due.append(number)
        return due

    def _on_loop(self, function):
        async def run():
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _serve(self):
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()
        self._ready.set()
        await self._stopped.wait()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            async with asyncio.timeout(self.limit_seconds):
                await self._connection(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a connection may end in every way
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _connection(self, reader, writer):
        self.connections += 1
        number, how = self.connections, None
        for rule in self.accept_rules:
            fault = rule["fault"]
            if fault.connection in (None, number) and (fault.times == 0 or rule["fired"] < fault.times):
                _count(rule, {"connection": number})
                how = fault
                break
        if how is not None and how.how != "no_window":
            await self._turn_away(how, reader, writer)
            return
        server_reader, server = await asyncio.open_connection(self.upstream_host, self.upstream_port)
        connection = Connection(self, number, reader, writer, server_reader, server, how is not None)
        self.open_connections.add(connection)
        try:
            await connection.run()
        finally:
            self.open_connections.discard(connection)

    async def _turn_away(self, fault, reader, writer):
        if fault.how == "silent":
            while await reader.read(65_536):
                pass
        elif fault.how == "http1":
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>no gRPC here</html>\r\n")
            await writer.drain()
        elif fault.how != "close":
            _abort(writer)
        if fault.how == "refuse":
            self._server.close()
            await asyncio.sleep(fault.seconds)
            await self._listen()
