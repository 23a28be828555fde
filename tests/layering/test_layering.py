"""A file of src/headrace/FOLDER includes only its own folder and folders below it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Lowest first; docs/architecture.md has the same order with what each folder is for.
ORDER = ["base", "types", "rpc", "avro", "runtime", "files", "bigquery", "catalog", "local", "cli"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]headrace/([^/"<>]+)/([^"<>]+)[>"]', re.MULTILINE)


def is_test(path):
    """Tests may look up: they put layers together."""
    return path.stem.endswith("_test") or path.stem.endswith("_testing")


def violations(source):
    """What is wrong under `source`, which has the layout of src/headrace, as lines of text."""
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cc", ".proto") or is_test(path):
            continue
        folder = path.relative_to(source).parts[0]
        where = path.relative_to(source)
        if folder not in ORDER:
            found.append(f"{where}: the folder {folder} is not in the list of layers")
            continue
        for included, rest in INCLUDE.findall(path.read_text()):
            if included not in ORDER:
                found.append(f"{where} includes headrace/{included}/{rest}, which is in no layer")
            elif ORDER.index(included) > ORDER.index(folder):
                found.append(f"{where} includes headrace/{included}/{rest}: {included} is above {folder}")
            elif is_test(pathlib.Path(rest)):
                found.append(f"{where} includes headrace/{included}/{rest}: only tests may include what is for tests")
    return found


def test_no_file_includes_a_folder_above_its_own():
    assert violations(ROOT / "src" / "headrace") == []


def test_every_folder_of_the_tree_is_in_the_list_and_in_the_build():
    folders = {path.name for path in (ROOT / "src" / "headrace").iterdir() if path.is_dir()}
    assert folders == set(ORDER)
    listed = re.search(r"foreach\(folder ([^)]*)\)", (ROOT / "src" / "headrace" / "CMakeLists.txt").read_text()).group(1).split()
    assert listed == ORDER


def test_the_environment_is_read_where_the_architecture_says():
    """docs/architecture.md: the library for credentials and endpoints, and when a program calls TuneProcess; the program where it likes."""
    source = ROOT / "src" / "headrace"
    reading = {str(path.relative_to(source)) for path in source.rglob("*.cc") if re.search(r"\bgetenv\(", path.read_text()) and not is_test(path)}
    assert {name for name in reading if not name.startswith("cli/")} == {"rpc/credentials.cc", "rpc/endpoint.cc", "bigquery/process.cc"}


def test_a_planted_violation_is_found(tmp_path):
    def plant(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    plant("base/good.h", '#include <arrow/api.h>\n#include "headrace/base/error.h"\n')
    plant("local/good.cc", '#include "headrace/files/manifest.h"\n#include "headrace/base/error.h"\n')
    plant("base/good_test.cc", '#include "headrace/cli/run.h"\n')
    assert violations(tmp_path) == []
    plant("base/sub/bad.h", '  #  include "headrace/runtime/job.h"\n')
    plant("rpc/bad.cc", "#include <headrace/bigquery/table_name.h>\n")
    plant("files/bad.cc", '#include "headrace/base/seam_testing.h"\n')
    plant("types/unknown.cc", '#include "headrace/utils/all.h"\n')
    plant("utils/all.h", "")
    assert violations(tmp_path) == [
        "base/sub/bad.h includes headrace/runtime/job.h: runtime is above base",
        "files/bad.cc includes headrace/base/seam_testing.h: only tests may include what is for tests",
        "rpc/bad.cc includes headrace/bigquery/table_name.h: bigquery is above rpc",
        "types/unknown.cc includes headrace/utils/all.h, which is in no layer",
        "utils/all.h: the folder utils is not in the list of layers",
    ]
