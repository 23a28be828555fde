"""A page of the documentation as a program: its blocks run one after the other in one bash, and a `text` block is what the block before it printed."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

RUN = ("sh", "python")
# A block that begins with a comment which is a file's name is that file.
FILE = re.compile(r"# (\S+\.[a-z]+)\n")
PORT = re.compile(r"--(?:grpc-|metrics-)?port (\d+)")
PAGE_SECONDS = 100
ENDPOINT = "BIGQUERY_STORAGE_EMULATOR_HOST"
# Of the service that docs/first-steps.md starts, for the pages that go on with it.
ADDRESS = "localhost:9060"


def blocks(text):
    """[(language, content)] of the fenced blocks; the language of one that names none is ''."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def of_language(page, language):
    return [content for kind, content in blocks(page.read_text()) if kind == language]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def with_free_ports(text):
    """A page's ports are the reader's; here they are whichever are free."""
    for port in set(PORT.findall("".join(content for kind, content in blocks(text) if kind == "sh"))):
        text = text.replace(port, str(free_port()))
    return text


def without(block, excused):
    """The block without the lines that call one of the commands `excused`."""
    return "".join(line for line in block.splitlines(keepends=True) if "".join(line.split()[:1]) not in excused)


def is_printed(shown, printed):
    """`...` stands for anything on its line, a line of it for any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n|\.\.\.", shown, flags=re.MULTILINE)]
    dots = [r"(?:.*\n)*" if found.endswith("\n") else ".*" for found in re.findall(r"^\.\.\.\n|\.\.\.", shown, re.MULTILINE)]
    return re.fullmatch("".join(part + dot for part, dot in zip(parts, [*dots, ""])), printed) is not None


def run(page, directory, environment, excused=()):
    """Runs the page in `directory` and checks each text that it shows.

    What is shown is what the block printed on standard output, or on standard error, or first there and then here. The page's last processes end with it.
    """
    text = with_free_ports(page.read_text())
    if endpoint := environment.get(ENDPOINT):
        text = text.replace(ADDRESS, endpoint)
    streams = directory.parent / f"{directory.name}.streams"
    streams.mkdir()
    script = ["set -euo pipefail"]
    shown = []
    last = None
    for number, (language, content) in enumerate(blocks(text)):
        if file := FILE.match(content):
            (directory / file[1]).write_text(content)
        elif language in RUN:
            script.append(f"exec >'{streams}/{number}.out' 2>'{streams}/{number}.err'")
            if language == "python":
                (streams / f"{number}.py").write_text(content)
                content = f"python '{streams}/{number}.py'"
            script.append(without(content, excused))
            last = number
        elif language == "text":
            assert last is not None, f"{page.name}: no block has printed\n{content}"
            shown.append((last, content))
    process = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)

    def told():
        return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(streams.iterdir(), key=lambda path: int(path.stem)) if path.suffix != ".py")

    try:
        code = process.wait(PAGE_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{page.name} did not end within {PAGE_SECONDS} s\n{told()}") from None
    finally:
        # A page that fails half way leaves its server.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
    assert code == 0, f"{page.name} ends with {code}\n{told()}"
    for number, content in shown:
        out, err = ((streams / f"{number}.{kind}").read_text() for kind in ("out", "err"))
        assert any(is_printed(content, printed) for printed in (out, err, err + out)), f"{page.name} shows\n{content}\nprinted was\n{out}\nand\n{err}"


def environment(program, home, endpoint):
    """Of a reader who has the program and Python in the path and, when `endpoint` is one, a local BigQuery. Nothing leaves the machine."""
    home.mkdir()
    python = pathlib.Path(sys.executable).parent
    return {**os.environ, "HOME": str(home), "PATH": f"{pathlib.Path(program).parent}:{python}:{os.environ['PATH']}", "https_proxy": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9", "no_proxy": "localhost,127.0.0.1", **({ENDPOINT: endpoint} if endpoint else {})}
