"""The command line itself: help, the man page and README agree; wrong lines are refused."""

import re

import pytest
from conftest import ROOT

COMMANDS = ["bench", "info", "sheet", "plan", "help", "version"]


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def help_options(stoker, name):
    """What the list of options names, without the text around it."""
    text = stoker(name, "--help").stdout.split("\noptions:\n")[1].split("\nexit codes:\n")[0]
    return options_of("\n".join(line[:26] for line in text.splitlines()) + text)


@pytest.fixture(scope="module")
def man():
    return re.sub(r"\\f.", "", (ROOT / "cli/stoker.1").read_text().replace(r"\-", "-"))


def test_help_lists_every_command(stoker):
    for line in (["help"], ["--help"], ["-h"]):
        done = stoker(*line)
        assert done.returncode == 0 and done.stderr == ""
        listed = re.findall(r"^  ([a-z]+) ", done.stdout, re.MULTILINE)
        assert listed == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(stoker, name):
    done = stoker("help", name)
    assert done.returncode == 0
    assert done.stdout == stoker(name, "--help").stdout
    assert done.stdout.startswith(f"usage: stoker {name}")
    assert "exit codes:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_in_the_man_page(stoker, man, name):
    missing = help_options(stoker, name) - options_of(man)
    assert not missing, f"cli/stoker.1 lacks {missing}"
    assert f'.SS "stoker {name}' in man


def test_the_man_page_has_no_other_options(stoker, man):
    known = {"--version", "--name"}.union(*(help_options(stoker, name) for name in COMMANDS))
    assert options_of(man) <= known


def test_defaults_agree_with_the_man_page(stoker, man):
    """Where the help of an option ends with its default, as "(224)", the man page does, too."""
    paragraphs = dict(re.findall(r"\.TP\n\.\w+ \"?--([a-z-]+)[^\n]*\n(.*?)(?=\n\.TP|\n\.S)", man, re.DOTALL))
    for name in ("bench", "sheet"):
        listed = stoker(name, "--help").stdout.split("\noptions:\n")[1].split("\n\n")[0]
        entries = re.findall(r"--([a-z-]+) [^(\n]*\((\w+)\)$", listed.replace("\n   ", ""), re.MULTILINE)
        assert len(entries) >= 6
        for option, default in entries:
            assert f"({default})" in paragraphs[option], option


def test_readme_agrees(stoker):
    readme = (ROOT / "README.md").read_text()
    section = readme.split("## The command", 1)[1].split("\n## ", 1)[0]
    used = re.findall(r"^stoker ([a-z]+)(.*)$", section, re.MULTILINE)
    assert {name for name, _ in used} == {"bench", "info", "sheet", "plan"}
    for name, rest in used:
        assert options_of(rest) <= help_options(stoker, name), f"README: stoker {name}{rest}"
    known = {"--help", "--version"}.union(*(help_options(stoker, name) for name in COMMANDS))
    assert options_of(section) <= known


def test_what_info_knows_agrees(stoker, man):
    """Help, the man page and README name the same kinds of files."""
    readme = (ROOT / "README.md").read_text().split("## The command", 1)[1]
    for name in ("NumPy", "WAV", "tar", "zip", "gzip", "zstd", ".tar.gz", "Arrow", "Parquet", "FFmpeg", "pyarrow", "STOKER_PYTHON"):
        assert name in stoker("help", "info").stdout, name
        assert name in man.split('.SS "stoker info', 1)[1].split(".SS", 1)[0], name
    for name in ("archives", "gzip", "zstd", "Arrow", "Parquet"):
        assert name in readme, name


def test_exit_codes_agree(stoker, man):
    text = stoker("help").stdout.split("exit codes:\n")[1]
    codes = re.findall(r"^  (\d+)", text, re.MULTILINE)
    status = man.split('.SH "EXIT STATUS"')[1].split(".SH")[0]
    assert re.findall(r"^\.B (\d+)", status, re.MULTILINE) == codes == ["0", "1", "2", "3", "130"]


def test_version(stoker):
    text = stoker("version").stdout
    assert re.fullmatch(r"stoker \d+\.\d+\.\d+\n", text)
    assert stoker("--version").stdout == text
    version = text.split()[1]
    assert f"version: '{version}'" in (ROOT / "meson.build").read_text()
    assert f'"stoker {version}"' in (ROOT / "cli/stoker.1").read_text()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ([], "usage: stoker"),
        (["fly"], "no such command: fly"),
        (["help", "fly"], "no such command: fly"),
        (["bench"], "bench needs DIR"),
        (["info"], "info needs FILE"),
        (["sheet", "a"], "sheet needs DIR OUT.png"),
        (["bench", "a", "b"], "too many arguments: b"),
        (["version", "a"], "too many arguments: a"),
        (["bench", "a", "--fast"], "no such option: --fast"),
        (["bench", "a", "-x"], "no such option: -x"),
        (["bench", "a", "--no-json"], "no such option: --no-json"),
        (["bench", "a", "--batch"], "--batch needs a value"),
        (["bench", "a", "--batch", "0"], "--batch takes a number from 1 to"),
        (["bench", "a", "--batch", "1e3"], "--batch takes a number from 1 to"),
        (["bench", "a", "--batch", ""], "--batch takes a number from 1 to"),
        (["bench", "a", "--size=99999999999999999999"], "--size takes a number from 1 to 65500"),
        (["bench", "a", "--threads", "-1"], "--threads takes a number from 0 to"),
        (["bench", "a", "--order", "in"], "--order takes one of input|completion"),
        (["bench", "a", "--json=yes"], "--json takes no value"),
        (["plan", "a", "--json"], "no such option: --json"),
    ],
)
def test_wrong_lines(stoker, line, words):
    done = stoker(*line)
    assert done.returncode == 2
    assert words in done.stderr and done.stdout == ""


def test_two_dashes_end_the_options(stoker, tmp_path):
    folder = tmp_path / "--json"
    folder.mkdir()
    done = stoker("plan", "--size", 8, "--", "--json", cwd=tmp_path)
    assert done.returncode == 0 and "--json" in done.stdout
