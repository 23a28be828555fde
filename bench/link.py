"""link.py HOST:PORT MEGABYTES_PER_SECOND DELAY_MS: a link with a rate and a delay in front of a server, for either direction, without rights of an
administrator: a relay over loopback. Prints its address, serves until it is ended by a signal or its standard input closes."""

import collections
import socket
import sys
import threading
import time

CHUNK = 64 << 10


class Line:
    """One direction: bytes leave at the rate, and arrive the delay later, in order. What waits for its turn is bounded, then the sender waits."""

    def __init__(self, source, target, rate, delay):
        self.source, self.target, self.rate, self.delay = source, target, rate, delay
        self.most = int(2 * rate * delay) + (1 << 20)
        self.waiting = collections.deque()  # (when it arrives, bytes); b"" = the end
        self.held = 0
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.take, self.give)]
        for thread in self.threads:
            thread.start()

    def take(self):
        free_at = 0.0  # when the line has sent all that it was given
        data = b"-"
        while data:
            try:
                data = self.source.recv(CHUNK)
            except OSError:
                data = b""
            free_at = max(free_at, time.monotonic()) + len(data) / self.rate
            with self.changed:
                self.changed.wait_for(lambda: self.held < self.most)
                self.waiting.append((free_at + self.delay, data))
                self.held += len(data)
                self.changed.notify_all()

    def give(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting)
                arrives, data = self.waiting.popleft()
            time.sleep(max(arrives - time.monotonic(), 0))
            try:
                if not data:
                    self.target.shutdown(socket.SHUT_WR)
                    return
                self.target.sendall(data)
            except OSError:
                self.source.close()
                data = b""
            with self.changed:
                self.held -= len(data)
                self.changed.notify_all()
            if not data:
                return


def serve(listening, address, rate, delay):
    while True:
        client, _ = listening.accept()
        server = socket.create_connection(address)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Line(client, server, rate, delay)
        Line(server, client, rate, delay)


def main(address, megabytes_per_second, delay_ms):
    host, port = address.rsplit(":", 1)
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"127.0.0.1:{listening.getsockname()[1]}", flush=True)
    rate, delay = float(megabytes_per_second) * 1e6, float(delay_ms) / 1e3
    threading.Thread(target=serve, args=(listening, (host, int(port)), rate, delay), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
