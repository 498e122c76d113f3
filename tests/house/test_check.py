"""scripts/check.py finds each kind of broken rule, and nothing in a tree that keeps them."""

import pathlib
import shutil
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check.py"
GUARDED = "#ifndef STK_BASE_X_H\n#define STK_BASE_X_H\n#endif\n"


@pytest.fixture
def tree(tmp_path):
    """A repository with one header that is in order."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    write(tmp_path, "src/base/x.h", GUARDED)
    return tmp_path


def write(tree, name, text):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(tree):
    command = [sys.executable, tree / "scripts" / "check.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    assert (done.returncode != 0) == bool(found), done.stdout + done.stderr
    return [line for line in found if ": layout: " not in line]


def test_a_tree_in_order(tree):
    write(tree, "src/graph/y.c", '#include "base/x.h"\n#include <stoker/base.h>\n')
    assert check(tree) == []


BROKEN = [
    ("src/base/y.c", '#include "graph/plan.h"\n', "layers"),
    ("src/codec/y.c", '#include "exec/pool.h"\n', "layers"),
    ("src/base/y.c", '#include "stoker/base.h"\n', "layers"),
    ("src/base/y.c", "#include <Python.h>\n", "layers"),
    ("cli/y.c", '#include "base/x.h"\n', "layers"),
    ("python/ext/y.c", '#include "base/x.h"\n', "layers"),
    ("src/base/y.c", "int x;\n" * 501, "length"),
    ("src/base/y.c", "int f(void)\n{\n" + "    x();\n" * 51 + "}\n", "length"),
    ("python/stoker/y.py", "x = 1\n" * 501, "length"),
    ("src/base/y.c", "void *p = malloc(1);\n", "heap"),
    ("src/base/y.c", "int x = f(a, strcpy(b, c));\n", "string"),
    ("src/base/y.c", "int x = atoi(b);\n", "parse"),
    ("src/base/y.c", "int x = rand();\n", "rand"),
    ("src/base/y_test.c", "int x = usleep(1);\n", "sleep"),
    ("python/tests/y.py", "time.sleep(1)\n", "sleep"),
    ("src/base/y.c", "    assert(x++ < 3);\n", "assert"),
    ("src/base/y.h", GUARDED, "guard"),
    ("src/base/y.c", "int x; \n", "blanks"),
    ("src/base/y.c", "\tint x;\n", "tabs"),
    ("src/base/y.c", "int x; /* TODO: more */\n", "todo"),
    ("include/stoker/y.h", "#ifndef STK_Y_H\n#define STK_Y_H\nint f(size_t n);\n#endif\n", "headers"),
    ("include/stoker/y.h", "#ifndef STK_Y_H\n#define STK_Y_H\nint f(int class);\n#endif\n", "headers"),
    ("src/base/y.c", "int x; /* check: allow heap: a reason */\n", "exceptions"),
]


@pytest.mark.parametrize(("name", "text", "rule"), BROKEN)
def test_a_broken_rule(tree, name, text, rule):
    write(tree, name, text)
    found = check(tree)
    assert found, "nothing was found"
    assert all(line.startswith(name) and f": {rule}: " in line for line in found), found


ALLOWED = [
    "void *p = malloc(1); /* check: allow heap: handed to a library that frees it */\n",
    "/* malloc(1), and rand() */\n",
    'const char *s = "malloc(1) /* " "strcpy(a, b)";\n',
    "int x = own.free(p) + p->free(p) + my_malloc(1);\n",
    "    assert(x == 3 && y <= 4 && z != 5);\n",
    "int x; /* TODO(ann): more */\n",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_only_looks_broken(tree, text):
    write(tree, "src/base/y.c", text)
    assert check(tree) == []
