"""Reads a checkpoint directory the way docs/formats/checkpoint.md describes it, with nothing of the program's own code."""

import functools
import hashlib
import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def _message():
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"-I{ROOT / 'src'}", f"--descriptor_set_out={out.name}", str(ROOT / "src/headrace/runtime/state.proto")], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headrace.runtime.CheckpointState"))


def newest_file(directory):
    found = sorted(path for path in pathlib.Path(directory).glob("chk-*") if "." not in path.name)
    return found[-1] if found else None


def read(path):
    content = pathlib.Path(path).read_bytes()
    assert content[:8] == b"HDRCHKPT"
    assert int.from_bytes(content[8:12], "little") == 1
    length = int.from_bytes(content[12:20], "little")
    payload, checksum = content[20 : 20 + length], content[20 + length :]
    assert len(payload) == length
    assert hashlib.sha256(content[: 20 + length]).digest() == checksum
    return _message().FromString(payload)


def newest(directory):
    """The newest checkpoint, or None."""
    path = newest_file(directory)
    return read(path) if path else None
