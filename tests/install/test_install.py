"""An installed Headrace serves an outside project: through find_package and through pkg-config, each public header on its own."""

import os
import pathlib
import shlex
import shutil
import subprocess

import pytest

from loader_bindings import bindings, clashes

HERE = pathlib.Path(__file__).resolve().parent
PUBLIC_FOLDERS = ["base", "types", "runtime", "bigquery", "files", "catalog"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=280, **options)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def work(build_dir):
    """The same place each time, so that ccache knows what it compiles."""
    path = build_dir / "install-test"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def prefix(build_dir, work):
    run("cmake", "--install", build_dir, "--prefix", work / "prefix")
    return work / "prefix"


@pytest.fixture(scope="module")
def sanitizer_flags(build_dir):
    """A sanitized library needs its sanitizer in the program that uses it."""
    for line in (build_dir / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("HEADRACE_SANITIZE:"):
            value = line.partition("=")[2]
            return [f"-fsanitize={value}"] if value else []
    return []


def check_output(output):
    assert output.splitlines() == [
        "projects/my-project/datasets/sales/tables/orders",
        "INVALID_ARGUMENT: 1",
        "my-project.sales.orders",
        "4 of 3 rows",
        "OK",
    ]


def test_what_is_installed(prefix):
    include = prefix / "include" / "headrace"
    assert sorted(path.name for path in include.iterdir()) == sorted(PUBLIC_FOLDERS)
    headers = [path.relative_to(include).as_posix() for path in include.rglob("*") if path.is_file()]
    assert "runtime/job.h" in headers and "bigquery/table_name.h" in headers and "bigquery/process.h" in headers
    assert [name for name in headers if "internal" in name or "_test" in name or not name.endswith(".h")] == []
    assert (prefix / "bin" / "headrace").exists()
    run(prefix / "bin" / "headrace", "version")


def test_the_manual_page_and_completions_are_those_of_the_program(prefix):
    program = prefix / "bin" / "headrace"
    share = prefix / "share"
    assert (share / "man" / "man1" / "headrace.1").read_text() == run(program, "man")
    for shell, file in (("bash", "bash-completion/completions/headrace"), ("zsh", "zsh/site-functions/_headrace"), ("fish", "fish/vendor_completions.d/headrace.fish")):
        assert (share / file).read_text() == run(program, "completion", shell)


def test_the_library_exports_only_its_namespace(prefix):
    (library,) = [path for path in (prefix / "lib").rglob("libheadrace.so.*.*.*")]
    names = [line.split(maxsplit=2)[2] for line in run("nm", "-DC", "--defined-only", library).splitlines()]
    assert any("headrace::bigquery::ParseTableName" in name for name in names)
    assert [name for name in names if "headrace::" not in name] == []


def test_find_package(prefix, work, tmp_path, sanitizer_flags):
    units = work / "units"
    units.mkdir()
    include = prefix / "include"
    for header in include.rglob("*.h"):
        name = header.relative_to(include).as_posix()
        (units / (name.replace("/", "__")[:-2] + ".cc")).write_text(f'#include "{name}"\n#include "{name}"\n')
    run("cmake", "-S", HERE, "-B", work / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DHEADER_UNITS={units}",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", f"-DCMAKE_CXX_FLAGS={' '.join(sanitizer_flags)}")
    run("cmake", "--build", work / "build")
    check_output(run(work / "build" / "consumer", cwd=tmp_path))
    if not sanitizer_flags:
        assert clashes(bindings(work / "build" / "consumer", tmp_path)) == []


def test_pkg_config(prefix, tmp_path, sanitizer_flags):
    (directory,) = {path.parent for path in prefix.rglob("headrace.pc")}
    environment = dict(os.environ, PKG_CONFIG_PATH=str(directory))
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "headrace", env=environment))
    program = tmp_path / "consumer"
    (library_dir,) = {path.parent for path in prefix.rglob("libheadrace.so")}
    run("g++", HERE / "consumer.cc", "-o", program, *sanitizer_flags, *flags, f"-Wl,-rpath,{library_dir}")
    check_output(run(program, cwd=tmp_path))
