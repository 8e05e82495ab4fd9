"""Make the archive from which Gradescope builds an autograder for one assignment.

It holds no solutions: what students must not change, and the hidden tests, are in a gradebook with this
assignment and nothing else. In the container ``in_container.py`` grades; it also says what
Gradescope publishes about such archives.
"""

import io
import shlex
import subprocess
import tempfile
import zipfile
from pathlib import Path

from traitlets.config import PyFileConfigLoader

from ...authoring.scratch_course import ScratchCourse
from ...class_grading.course import SETTINGS
from ...command_line import CommandError
from ...files import write_whole
from .in_container import GRADEBOOK

# Of the files that git tracks: what grades, and the data that exercises read.
CONTENTS = ("LICENSE", "LICENSE-text", "autograder", "constraints.txt", "data", "pyproject.toml")
SCRIPTS = ("setup.sh", "run_autograder")


def make_archive(root: Path, assignment: str, *, without_sandbox: bool = False) -> Path:
    """Write build/gradescope-ASSIGNMENT.zip; gives its path.

    ``without_sandbox``: it grades where bubblewrap does not work, too. Raises OSError for an assignment that
    is not there, and without git; CommandError where its notebook cannot be made.
    """
    source, here = root / "solutions" / assignment / f"{assignment}.py", Path(__file__).parent
    arguments = shlex.join([assignment, *(["--without-sandbox"] if without_sandbox else [])])
    # The other settings stay here: an address of a database may have a password.
    limits = PyFileConfigLoader(SETTINGS, path=str(root)).load_config().RunEveryCell
    lines = [f"c.RunEveryCell.{name} = {value!r}" for name, value in limits.items()]
    form = (here / "nbgrader_config.txt").read_text(encoding="utf-8")
    inside = {name: (root / name).read_bytes() for name in course_files(root)}
    inside |= {
        "setup.sh": (here / "setup.sh").read_bytes(),
        "run_autograder": (here / "run_autograder.sh").read_bytes().replace(b"ARGUMENTS", arguments.encode()),
        SETTINGS: form.format(limits="\n".join(lines)).encode(),
    }
    with tempfile.TemporaryDirectory(prefix="gradescope-") as folder:
        course = ScratchCourse(Path(folder), root)
        file = course.folder / GRADEBOOK
        course.nbgrader("generate_assignment", course.add_assignment(source), f"--db=sqlite:///{file}")
        inside[GRADEBOOK] = file.read_bytes()
    archive = root / "build" / f"gradescope-{assignment}.zip"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, data in sorted(inside.items()):
            about = zipfile.ZipInfo(name)  # which says not when or by whom
            about.create_system, about.compress_type = 3, zipfile.ZIP_DEFLATED
            about.external_attr = (0o755 if name in SCRIPTS else 0o644) << 16
            packed.writestr(about, data)
    write_whole(archive, content.getvalue())
    return archive


def course_files(root: Path) -> list[str]:
    """The files of an archive, as paths below `root`. Raises CommandError outside a git checkout."""
    command = ["git", "ls-files", "-z", *CONTENTS]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        raise CommandError(f"git does not tell which files belong to the course: {error.stderr}") from None
    return [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]
