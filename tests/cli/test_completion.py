"""The completion scripts: bash's is used by a real bash as it is used at a prompt; those of zsh and fish are checked where these shells are."""

import shutil
import subprocess

import pytest

VERBS = ["copy", "resume", "plan", "schema", "bench", "serve", "completion", "man", "version"]
FORMATS = ["parquet", "arrow", "arrows", "csv", "ndjson", "avro"]


@pytest.fixture(scope="module")
def script(headrace, tmp_path_factory):
    """script(shell): the path of the shell's script."""
    directory = tmp_path_factory.mktemp("completion")

    def path(shell):
        file = directory / shell
        if not file.exists():
            done = subprocess.run([headrace, "completion", shell], capture_output=True, text=True, timeout=60, check=True)
            assert done.stderr == ""
            file.write_text(done.stdout)
        return file

    return path


@pytest.fixture
def complete(script, tmp_path):
    """complete(word...): what bash would offer for the last word, in a directory with three files and a directory."""
    here = tmp_path / "here"
    (here / "jobs").mkdir(parents=True)
    for name in ("orders.csv", "other file.csv", "nightly.toml"):
        (here / name).touch()

    def offered(*words, breaks=None):
        text = f'source "$1" || exit; shift; {"" if breaks is None else f"COMP_WORDBREAKS={breaks};"} COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _headrace; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "--norc", "-c", text, "bash", script("bash"), "headrace", *words], cwd=here, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return sorted(line for line in done.stdout.split("\n") if line)

    return offered


def options_of(run, verb):
    return sorted(word for line in run(verb, "--help-all")[0].splitlines() if line.startswith("  --") for word in line.split()[:1])


def test_verbs_are_completed(complete):
    assert complete("") == sorted([*VERBS, "help", "--help", "--help-all", "--version"])
    assert complete("co") == ["completion", "copy"]
    assert complete("help", "s") == ["schema", "serve"]


@pytest.mark.parametrize("verb", VERBS)
def test_options_are_those_of_the_verb(complete, run, verb):
    assert complete(verb, "x", "--") == sorted([*options_of(run, verb), "--help", "--help-all"])


def test_options_by_their_beginning(complete):
    assert complete("copy", "--max-str") == ["--max-stream-count"]
    assert complete("resume", "--over") == []


@pytest.mark.parametrize("words, offered", [
    (["copy", "a", "b", "--format", ""], sorted(FORMATS)),
    (["copy", "a", "b", "--format", "arr"], ["arrow", "arrows"]),
    (["copy", "a", "b", "--format", "=", "cs"], ["csv"]),
    (["copy", "a", "b", "--format", "="], sorted(FORMATS)),
    (["copy", "a", "b", "--csv-header", "f"], ["false"]),
    (["copy", "a", "b", "--quiet", "=", ""], ["false", "true"]),
    (["copy", "a", "b", "--quiet", "--json"], ["--json"]),
    (["copy", "a", "b", "--readers", ""], []),
    (["copy", "a", "b", "--readers", "=", ""], []),
    (["copy", "a", "b", "--checkpoint", ""], ["jobs"]),
    (["copy", "a", "b", "--config", "ni"], ["nightly.toml"]),
    (["copy", "a", "b", "--credentials", "n"], ["nightly.toml", "none"]),
    (["copy", "o"], ["orders.csv", "other file.csv"]),
    (["copy", "orders.csv", "j"], ["jobs"]),
    (["resume", ""], ["jobs"]),
    (["serve", ""], []),
    (["version", ""], []),
    (["completion", ""], ["bash", "fish", "zsh"]),
    (["nonsense", ""], []),
])
def test_values_and_paths(complete, words, offered):
    assert complete(*words) == offered


def test_where_bash_does_not_take_words_apart_at_equals(complete):
    assert complete("copy", "a", "b", "--format=cs", breaks="' '") == ["--format=csv"]
    assert complete("copy", "a", "b", "--config=ni", breaks="' '") == ["--config=nightly.toml"]


def test_bash_offers_it_for_the_program(script):
    done = subprocess.run(["bash", "--norc", "-c", 'source "$1" && complete -p headrace', "bash", script("bash")], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "complete -F _headrace headrace\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_the_script(script, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n", script(shell)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_fish_completes(script, tmp_path):
    if shutil.which("fish") is None:
        pytest.skip("there is no fish here")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "orders.csv").touch()

    def offered(line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script('fish')}; complete -C '{line}'"], cwd=tmp_path, capture_output=True, text=True,
                              timeout=60, check=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        return [text.split("\t")[0] for text in done.stdout.splitlines()]

    assert offered("headrace co") == ["completion", "copy"]
    assert sorted(offered("headrace copy a b --format ")) == sorted(FORMATS)
    assert offered("headrace copy a b --max-str") == ["--max-stream-count"]
    assert offered("headrace copy a b --checkpoint ") == ["jobs/"]
    assert offered("headrace copy or") == ["orders.csv"]
    assert offered("headrace serve ") == []


def test_an_unknown_shell_is_a_matter_of_usage(run):
    assert "did you mean bash?" in run("completion", "bsh", code=2)[1]
