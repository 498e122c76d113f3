#!/usr/bin/env python3
"""The rules of the house that no compiler checks.  One line per group of rules.

    scripts/check.py                      text rules, headers alone, layout
    scripts/check.py --library FILE       the shared library exports only stk_*
    scripts/check.py --extension FILE     the extension exports only PyInit__stoker

A line that must break a rule says so at its end, and why; an exception that nothing needs fails:

    /* check: allow RULE: reason */       # check: allow RULE: reason
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A folder may include itself, the public headers, and these.
LAYERS = {
    "base": set(),
    "exec": {"base"},
    "data": {"base"},
    "graph": {"base", "exec", "data"},
    "codec": {"base", "data"},
    "transform": {"base", "data"},
    "source": {"base", "exec", "data", "codec"},
    "av": {"base", "data"},
    "ops": {"av", "base", "exec", "data", "graph", "codec", "transform", "source"},
    "helper": {"ops"},
}

HEAP = "malloc calloc realloc free strdup strndup asprintf vasprintf aligned_alloc posix_memalign"
# rule: (functions, why, files that may: a pattern of their paths)
BANNED = {
    "heap": (HEAP, "all heap use goes through base/alloc.h",
             r"src/base/(alloc|failpoint)\.c|.*_test\.c|(tests|cli|examples|bench)/.*"),
    "string": ("strcpy strcat sprintf vsprintf gets strncpy strtok", "no bound, or no terminator", r""),
    "parse": ("atoi atol atoll atof sscanf strtol strtoul strtoll strtoull strtod",
              "errors go unnoticed", r"cli/.*|bench/.*|src/base/failpoint\.c|tests/.*|.*_test\.c"),
    "rand": ("rand srand random srandom drand48 rand_r", "randomness is base/rng.h", r""),
    "sleep": ("sleep usleep nanosleep clock_nanosleep", "wait on a condition", r""),
}  # fmt: skip
C_SUFFIXES = {".c", ".h"}
TEXT_SUFFIXES = C_SUFFIXES | {".py", ".pyi", ".md", ".build", ".txt", ".toml", ".sh", ".1"}
QUOTES = {"scripts/check.py", "tests/house/test_check.py"}  # name what they look for
ALLOW = re.compile(r"check: allow ([a-z]+): \S")
WORDLESS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
EFFECT = re.compile(r"\bassert\((?:[^;]*?)(?:\+\+|--|[^=!<>]=[^=])")


class Checker:
    """Collects what is wrong, and which exceptions were of use."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.used: set[tuple[str, int]] = set()
        self.allowed: dict[tuple[str, int], str] = {}

    def bad(self, path: str, line: int, rule: str, text: str) -> None:
        if self.allowed.get((path, line)) == rule:
            self.used.add((path, line))
        else:
            self.problems.append(f"{path}:{line}: {rule}: {text}")

    def report(self, group: str, count: str, since: int) -> None:
        found = self.problems[since:]
        print(f"{group:<12} {f'{len(found)} problems' if found else 'ok'} ({count})")
        for problem in found:
            print(f"    {problem}")


def tracked() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(names.split("\n")) if name and (ROOT / name).is_file())


def without_words(text: str) -> str:
    """C code with comments and literals blanked, line for line; the names of includes stay."""

    def blank(match: re.Match[str]) -> str:
        start = text.rfind("\n", 0, match.start()) + 1
        if text.startswith("#include", start) and match[0][0] == '"':
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return WORDLESS.sub(blank, text)


def check_layers(checker: Checker, path: str, code: list[str]) -> None:
    parts = path.split("/")
    test = path.endswith("_test.c")
    for number, line in enumerate(code, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        system, name = match[1] == "<", match[2]
        public = name.startswith("stoker/")
        if public and not system:
            checker.bad(path, number, "layers", f"a public header is <{name}>")
        if parts[0] == "include" and not system:
            checker.bad(path, number, "layers", f"a public header includes {name}")
        if system or public:
            if name == "Python.h" and not path.startswith("python/ext/"):
                checker.bad(path, number, "layers", "Python.h belongs to python/ext")
            continue
        if parts[0] == "src":
            folder = name.split("/")[0]
            known = "/" in name and (folder == parts[1] or folder in LAYERS.get(parts[1], set()))
            if not known and not (test and folder in ("tests", *LAYERS)):
                checker.bad(path, number, "layers", f"src/{parts[1]} may not include {name}")
        elif parts[0] in ("cli", "examples") and not (ROOT / path).parent.joinpath(name).is_file():
            checker.bad(path, number, "layers", f"{name}: only public headers here")
        elif path.startswith("python/ext/") and not (ROOT / path).parent.joinpath(name).is_file():
            checker.bad(path, number, "layers", f"{name}: the extension includes public headers only")


def check_lengths(checker: Checker, path: str, code: list[str]) -> None:
    limit = 500 if not path.endswith(".h") else 200 if path.startswith("include/") else 150
    if path in ("LICENSE", "CHANGES.md"):
        return
    if len(code) > limit:
        checker.bad(path, 1, "length", f"{len(code)} lines, at most {limit}")
    if path.endswith("meson.build") and "/" not in path and len(code) > 100:
        checker.bad(path, 1, "length", f"{len(code)} lines, at most 100")
    if Path(path).suffix not in C_SUFFIXES:
        return
    start = 0
    for number, line in enumerate(code, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > 50:
                checker.bad(path, start, "length", f"a function of {number - start - 1} lines, at most 50")
            start = 0


def check_banned(checker: Checker, path: str, code: list[str]) -> None:
    for rule, (names, why, exempt) in BANNED.items():
        if re.fullmatch(exempt, path):
            continue
        pattern = re.compile(rf"(?<![\w.>])({names.replace(' ', '|')})\s*\(")
        for number, line in enumerate(code, 1):
            for match in pattern.finditer(line):
                checker.bad(path, number, rule, f"{match[1]}: {why}")
    for number, line in enumerate(code, 1):
        if EFFECT.search(line):
            checker.bad(path, number, "assert", "an assert with an effect")


def check_guard(checker: Checker, path: str, code: list[str]) -> None:
    if not path.endswith(".h"):
        return
    inner = re.sub(r"^(include/stoker/|src/|python/|bench/c/)", "", path).replace("ext/ext.h", "ext.h")
    guard = "STK_" + re.sub(r"\W", "_", inner).upper()
    if f"#ifndef {guard}" not in code or f"#define {guard}" not in code:
        checker.bad(path, 1, "guard", f"the guard is {guard}")


def check_text(checker: Checker, path: str, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            checker.bad(path, number, "blanks", "blanks at the end")
        if "\t" in line and path != "Makefile":
            checker.bad(path, number, "tabs", "a tab")
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\([a-z]+\))", line) and path not in QUOTES:
            checker.bad(path, number, "todo", "nobody owns it: TODO(name)")
        if path.endswith(".py") and path not in QUOTES and re.search(r"\btime\.sleep\(", line):
            checker.bad(path, number, "sleep", "time.sleep: wait on a condition")
    if lines and not lines[-1]:
        checker.bad(path, len(lines), "blanks", "an empty line at the end")


def run(checker: Checker, path: str, rule: str, command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.split("\n") if "error:" in line]
        checker.bad(path, 1, rule, f"{command[0]}: {errors[0] if errors else done.stderr.strip()}")


def check_headers(checker: Checker, names: list[str]) -> int:
    """Each public header compiles alone, in C and in C++, with each compiler that is there."""
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude"]
    tools = {"gcc": ["c", "c17"], "clang-14": ["c", "c17"], "clang": ["c", "c17"], "g++": ["c++", "c++17"]}
    found = [tool for tool in tools if shutil.which(tool)]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            alone = Path(folder) / "alone.c"
            alone.write_text(f"#include <{name.removeprefix('include/')}>\nextern int alone;\n")
            for tool in found:
                language, standard = tools[tool]
                command = [tool, *strict, f"-std={standard}", "-x", language, str(alone)]
                run(checker, name, "headers", command)
    return len(found)


def check_layout(checker: Checker, names: list[str]) -> str:
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        return "no clang-format here: not checked"
    for name in names:
        done = subprocess.run([tool, "--dry-run", "-Werror", name], cwd=ROOT, capture_output=True, text=True)
        for match in list(re.finditer(r":(\d+):\d+: error", done.stderr))[:3]:
            checker.bad(name, int(match[1]), "layout", "clang-format -i would change it")
    return f"{len(names)} files"


def check_symbols(checker: Checker, file: str, pattern: str) -> int:
    output = subprocess.run(["nm", "-D", "--defined-only", file], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in output.splitlines() if " A " not in line]
    if not names:
        checker.bad(file, 1, "symbols", "exports nothing")
    for name in names:
        if not re.fullmatch(pattern, name.split("@")[0]):
            checker.bad(file, 1, "symbols", f"exports {name}")
    return len(names)


def check_sources(checker: Checker) -> None:
    names = tracked()
    files = {
        name: (ROOT / name).read_text(encoding="utf-8", errors="surrogateescape")
        for name in names
        if Path(name).suffix in TEXT_SUFFIXES or name.startswith(("scripts/", ".ci/"))
    }
    lines = {name: text.removesuffix("\n").split("\n") for name, text in files.items()}
    c_names = [name for name in files if Path(name).suffix in C_SUFFIXES]
    code = {name: without_words(files[name]).removesuffix("\n").split("\n") for name in c_names}
    for name, rows in lines.items():
        for number, row in enumerate(rows, 1):
            match = ALLOW.search(row)
            if match and name not in QUOTES:
                checker.allowed[name, number] = match[1]

    def group(title: str, check, over: dict[str, list[str]]) -> None:
        since = len(checker.problems)
        for name, rows in over.items():
            check(checker, name, rows)
        checker.report(title, f"{len(over)} files", since)

    measured = {n: r for n, r in lines.items() if Path(n).suffix in C_SUFFIXES | {".py"} or n == "meson.build"}
    group("layers", check_layers, code)
    group("lengths", check_lengths, {n: code.get(n, r) for n, r in measured.items()})
    group("functions", check_banned, code)
    group("guards", check_guard, code)
    group("text", check_text, lines)

    since = len(checker.problems)
    public = [name for name in c_names if name.startswith("include/")]
    tools = check_headers(checker, public)
    checker.report("headers", f"{len(public)} alone, {tools} compilers, C and C++", since)
    since = len(checker.problems)
    count = check_layout(checker, c_names)
    checker.report("layout", count, since)
    since = len(checker.problems)
    for (path, line), rule in checker.allowed.items():
        if (path, line) not in checker.used:
            checker.problems.append(f"{path}:{line}: exceptions: nothing here breaks '{rule}'")
    checker.report("exceptions", f"{len(checker.allowed)} in all", since)


def symbol_groups(args: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    if args.library:
        yield "library", args.library, r"stk_\w+"
    if args.extension:
        yield "extension", args.extension, r"PyInit__stoker"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", help="shared library whose exports are checked")
    parser.add_argument("--extension", help="extension module whose exports are checked")
    args = parser.parse_args()
    checker = Checker()
    if not (args.library or args.extension):
        check_sources(checker)
    for title, file, pattern in symbol_groups(args):
        since = len(checker.problems)
        count = check_symbols(checker, file, pattern)
        checker.report(title, f"{count} exported", since)
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
