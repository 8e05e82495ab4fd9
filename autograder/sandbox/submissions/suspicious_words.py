"""Words in a student's code that are worth a look, because by them it could reach what grades it.

They are signs, not proofs, and only what no exercise has a use for is among them: where there is such a word,
points that rest on what the answer's process says of itself wait for the instructor.
"""

import ast
import re

from ...roles import python_in

PACKAGES = {"judging", "measuring", "nbgrader_plugin", "sandbox"}  # of the course's own
UNUSUAL = {
    *("_C", "_disable_current_modes", "_getframe", "_impls", "_python_dispatch", "ctypes", "get_objects"),
    *("setprofile", "settrace"),
}

# Not what tells about the machine.
PROCESSES = re.compile(r"/proc/(?!(?:cpuinfo|loadavg|meminfo|stat|uptime|version)\b)")
NAME = re.compile(r"[A-Za-z_]\w*")


def unusual_words(source: str) -> list[str]:
    """The names in a student's code, and folders of the system in its texts, that are worth a look.

    Of what is no Python, all words are looked at.
    """
    tree, others = python_in(source)
    texts, names = [others], set(NAME.findall(others))
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                names.update(NAME.findall(ast.unparse(node)))
            case ast.Attribute(attr=name) | ast.Name(id=name):
                names.add(name)
            case ast.Constant(value=str(text)):
                texts.append(text)
                if text.startswith("_"):  # by such texts, `getattr` and dicts give what stands behind a name
                    names.add(text)
    found = names & UNUSUAL
    if "autograder" in names:
        found |= {f"autograder.{name}" for name in names & PACKAGES}
    if any(map(PROCESSES.search, texts)):
        found.add("/proc/")
    return sorted(found)
