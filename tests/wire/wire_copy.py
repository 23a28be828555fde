"""A copy through a WireProxy, and what is asserted about its end."""

import json
import os
import time

import harness
from wire_faults import random_faults

ROWS = 2_900
PER_MESSAGE = 500  # about 100 KiB, more than HTTP/2's first window
# Programs under a sanitizer get more time, in their limits and in ours.
SLOW = 4 if "SANITIZED" in os.environ.get("HEADRACE_TEST_BUILD", "") else 1


class Wire:
    """A table behind a proxy."""

    def __init__(self, headrace, table, server, proxy, directory):
        self.headrace, self.table, self.server, self.proxy, self.directory = headrace, table, server, proxy, directory
        self.per_message = PER_MESSAGE
        self.target = directory / "out"

    def copy(self, *options, streams=1, seconds=40, **how):
        """`headrace copy` through the proxy, each stream in one reader's hands: faults are counted by calls. Every limit is short enough for a test, and long enough for a loaded machine; they are given in milliseconds."""
        given = {"--idle-limit": 10_000, "--connect-limit": 10_000, "--retry-max-attempts": 6, "--work-sharing": "false", **dict(zip(options[::2], options[1::2]))}
        options = [word for name, value in given.items() for word in (name, f"{value * SLOW}ms" if name.endswith("-limit") and name != "--memory-limit" else value)]
        return harness.run_headrace(self.headrace, "copy", f"bq:{harness.TABLE}", f"{self.target}/", "--json", "--bigquery-storage-endpoint", self.proxy.endpoint,
                                    "--max-stream-count", streams, *options, seconds=seconds * SLOW, **how)

    def assert_mended(self, *options, streams=1, **how):
        """The copy ends well, with exactly the table's rows, and every fault has fired; streams are opened again behind whole messages."""
        self.copy(*options, streams=streams, **how)
        harness.assert_same_rows(harness.read_result(self.target), self.table)
        counters = self.proxy.counters()
        assert all(fault["fired"] > 0 for fault in counters["faults"]), counters["faults"]
        for offsets in self.proxy.opens().values():
            assert offsets[0] == 0 and offsets == sorted(offsets), offsets
            assert all(offset % self.per_message == 0 or offset in (ROWS // streams, -(-ROWS // streams)) for offset in offsets), offsets
        return counters

    def assert_reopened_once(self, received, least=0):
        """The only stream was opened at 0 and then once more: where the rows ended that had come through. What was on the way when the fault struck may not have, but `least`."""
        (offsets,) = self.proxy.opens().values()
        assert len(offsets) == 2 and least <= offsets[1] <= received, offsets

    def clear_error(self, *options, within, **how):
        """The copy fails in `within` seconds, leaves nothing behind, and says why: the error's words, and all of it."""
        started = time.monotonic()
        out, _ = self.copy(*options, code=1, **how)
        assert time.monotonic() - started < within * SLOW
        assert not self.target.exists() or list(self.target.iterdir()) == []
        counters = self.proxy.counters()
        assert all(fault["fired"] > 0 for fault in counters["faults"]), counters["faults"]
        error = json.loads(out)["error"]
        return error["message"], error

    def run_seed(self, seed):
        """A copy with the random faults of `seed`, and how many of them fired."""
        self.proxy.set_faults(*random_faults(seed, calls=8, most_messages=4))
        self.copy("--idle-limit", 800, "--retry-max-attempts", "12", streams=1 + seed % 3, seconds=50)
        harness.assert_same_rows(harness.read_result(self.target), self.table)
        for offsets in self.proxy.opens().values():
            assert offsets[0] == 0 and offsets == sorted(offsets), (seed, offsets)
        return sum(self.proxy.fired())
