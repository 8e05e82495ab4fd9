"""Start the example: make the accounts and folders that are missing, then become the hub.

Run it as root, on a machine or in a container that you can throw away. Its arguments go to jupyterhub.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent.parent
INSTRUCTOR, STUDENTS = "instructor", ("ada", "bo")
MARK = "fast-pytorch example"  # the full name of the accounts made here
EXCHANGE = Path("/srv/nbgrader/exchange")
STATE = Path("/srv/jupyterhub")
PASSWORDS = {"HUB_PASSWORD": 8, "HUB_INSTRUCTOR_PASSWORD": 32}  # and how long JupyterHub wants them
PROGRAMS = {
    "configurable-http-proxy": "npm install --global configurable-http-proxy@5",
    "useradd": "apt install passwd",
}
# What the students' servers use of the course's folder. The rest of it is closed to them.
OPEN = {".venv", "autograder", "course", "data", "examples"}


def refusals() -> list[str]:
    """Why the example cannot start here."""
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        return ["the hub makes accounts and starts servers in their names: it needs Linux, and root."]
    reasons = [
        f"{name} must hold a password of {length} characters or more."
        for name, length in PASSWORDS.items()
        if len(os.environ.get(name, "")) < length
    ]
    reasons += [
        f"the program {name} was not found: {remedy}"
        for name, remedy in PROGRAMS.items()
        if not shutil.which(name)
    ]
    reasons += [
        f"there is an account {name} already, and this example did not make it."
        for name in (INSTRUCTOR, *STUDENTS)
        if (account := find(name)) and account.pw_gecos != MARK
    ]
    if not usable_by_others():
        reasons.append(
            f"other users cannot run {sys.executable} and the package in {COURSE}. "
            "Put both where everybody can read them, for example into /srv."
        )
    return reasons


def find(name: str) -> pwd.struct_passwd | None:
    """The Unix account of this name, if there is one."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def usable_by_others() -> bool:
    """Whether an account without rights can run what the servers run."""
    trial = [sys.executable, "-c", "import autograder, jupyterhub"]
    try:
        return not subprocess.run(
            trial, cwd="/", user=65534, group=65534, extra_groups=(), stderr=subprocess.DEVNULL
        ).returncode
    except OSError:
        return False


def prepare() -> None:
    """Make accounts, homes and the exchange; what is there from an earlier start stays as it is."""
    os.umask(0o022)
    for path in COURSE.iterdir():
        if path.name not in OPEN:
            path.chmod(path.stat().st_mode & 0o700)
    for name in (INSTRUCTOR, *STUDENTS):
        if not find(name):
            useradd = ["useradd", "--create-home", "--user-group", "--shell", "/bin/bash", "--comment", MARK]
            subprocess.run([*useradd, name], check=True)
            furnish(find(name))
    # The course's folder is made before a student can make it.
    course = EXCHANGE / "fast-pytorch"
    course.mkdir(parents=True, exist_ok=True)
    shutil.chown(course, INSTRUCTOR, INSTRUCTOR)
    # nbgrader wants the exchange writable for everybody. Sticky: nobody can move the course's folder away.
    EXCHANGE.chmod(0o1777)
    STATE.mkdir(mode=0o700, exist_ok=True)


def furnish(account: pwd.struct_passwd) -> None:
    """Put the course into a new home: chapters and data, and for the instructor all that nbgrader needs."""
    home = Path(account.pw_dir)
    home.chmod(0o700)
    folder = home / "fast-pytorch"
    shutil.copytree(COURSE / "course", folder / "course", ignore=shutil.ignore_patterns("*.py", ".*"))
    (folder / "exercises").mkdir()
    (folder / "data").symlink_to(COURSE / "data")
    if account.pw_name == INSTRUCTOR:
        shutil.copytree(COURSE / "solutions", folder / "solutions")
        shutil.copytree(COURSE / "tests/answers", folder / "tests/answers")  # for rehearsals
        for file in ("nbgrader_config.py", "pyproject.toml", HERE / "Makefile"):
            shutil.copy(COURSE / file, folder)
    subprocess.run(["chown", "--recursive", "--no-dereference", f"{account.pw_name}:", folder], check=True)


def main() -> None:
    """Become the hub, or say why not."""
    if reasons := refusals():
        sys.exit("\n".join(f"error: {reason}" for reason in reasons))
    prepare()
    os.chdir(STATE)
    config = HERE / "jupyterhub_config.py"
    os.execv(sys.executable, [sys.executable, "-m", "jupyterhub", f"--config={config}", *sys.argv[1:]])


if __name__ == "__main__":
    main()
