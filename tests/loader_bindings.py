"""What the dynamic loader binds to what in a program, and whether Arrow's libraries took what belongs to the system's."""

import os
import re
import subprocess

BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `([^']+)'")
ARROW = re.compile(r"/lib(arrow|parquet)[^/]*\.so")
SYSTEM = re.compile(r"/lib(ssl|crypto|re2|curl)\.so")


def bindings(program, tmp_path, *arguments):
    output = tmp_path / "bindings"
    environment = dict(os.environ, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(output), LD_BIND_NOW="1")
    # What the program leaves stays in the test.
    subprocess.run([program, *arguments], cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)
    found = []
    for path in tmp_path.glob("bindings.*"):
        found += BINDING.findall(path.read_text(errors="replace"))
    assert len(found) > 1000, "the loader's report was not understood"
    return found


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def clashes(found):
    """Bindings from outside Arrow's libraries into them, of a symbol that a system library exports as well."""
    system = {target for _, target, _ in found if SYSTEM.search(target)} | {source for source, _, _ in found if SYSTEM.search(source)}
    names = set().union(*(exported(library) for library in system)) if system else set()
    return [(source, target, symbol) for source, target, symbol in found
            if symbol in names and ARROW.search(target) and not ARROW.search(source)]
