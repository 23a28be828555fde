"""What all suites share: where the build is. scripts/test.sh says it in HEADRACE_BUILD_DIR; the default is the release preset's."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def source_dir():
    return ROOT


@pytest.fixture(scope="session")
def build_dir():
    path = pathlib.Path(os.environ.get("HEADRACE_BUILD_DIR", ROOT / "build" / "release")).resolve()
    if not (path / "CMakeCache.txt").exists():
        pytest.fail(f"{path} is not a build directory: run scripts/build.sh, or set HEADRACE_BUILD_DIR")
    return path


@pytest.fixture(scope="session")
def headrace(build_dir):
    """The path of the program `headrace`."""
    path = build_dir / "bin" / "headrace"
    if not path.exists():
        pytest.fail(f"{path} is missing: run scripts/build.sh")
    return path
