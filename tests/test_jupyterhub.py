"""The JupyterHub example: started by its command, and a class that goes through an assignment on it.

Nothing of it happens to this machine: accounts, homes and the exchange are made in a container (bubblewrap),
in which /etc, /home, /srv, /tmp and the course's folder are copies.
"""

import json
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import unescape
from pathlib import Path

import nbformat
import pytest
import requests
import websocket
from lab_server import mark_installed
from programs import PATIENCE, environment, run, running, until
from repository import ROOT

from autograder.authoring.builder import build
from autograder.roles import solution_cells

STUDENT, INSTRUCTOR = "of all students", "of the instructor, who has another"
PASSWORDS = {"HUB_PASSWORD": STUDENT, "HUB_INSTRUCTOR_PASSWORD": INSTRUCTOR}
NOTEBOOK = "exercises/digits/digits.ipynb"
THIS = {"course_id": "fast-pytorch", "assignment_id": "digits"}
ANSWER = "def darkest(pictures):\n    return pictures.amax((1, 2))"

# Small, and it looks for the course's data as the real assignments do.
SOURCE = """\
# %% id="setup" role="given"
import numpy as np
import torch

from autograder import check

digits = torch.from_numpy(np.load("../../data/digits.npz")["images"])

def darkest_slow(pictures):
    return torch.stack([picture.max() for picture in pictures])

def some_digits(generator, device):
    return digits[torch.randperm(len(digits), generator=generator)[:50]].to(device)

# %% id="darkest" role="answer"
def darkest(pictures):
    ### BEGIN SOLUTION
    return pictures.amax((1, 2))
    ### END SOLUTION

# %% id="darkest_check" role="test"
check(darkest, like=darkest_slow, on=some_digits, points=1)

# %% id="darkest_hidden" role="test"
### BEGIN HIDDEN TESTS
check(darkest, like=darkest_slow, on=some_digits, points=2)
### END HIDDEN TESTS
"""
SLOW_ANSWER = """\
# %% darkest right_slow check=1 hidden=2
def darkest(pictures):
    return torch.stack([picture.max() for picture in pictures])
"""

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap", "useradd", "configurable-http-proxy")]


class Container:
    """A place where root can make accounts that nobody outside sees."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree("/etc", folder / "etc", symlinks=True)
        self.course = folder / "course"
        not_needed = shutil.ignore_patterns(".git", ".venv", ".ready*", "__pycache__", ".*_cache", "build")
        shutil.copytree(ROOT, self.course, ignore=not_needed)
        mark_installed(self.course)
        # What to put before a command; everything in the container ends with it.
        self.prefix = ["bwrap", "--dev-bind", "/", "/", "--bind", folder / "etc", "/etc"]
        for private in ("/home", "/root", "/srv"):
            self.prefix += ["--tmpfs", private]
        self.prefix += ["--perms", "1777", "--tmpfs", "/tmp"]
        # Python and the course may lie in these: put them back, with a way to them that is open to everybody.
        for path in (Path(sys.base_prefix), ROOT, Path(sys.prefix)):
            for parent in reversed(path.parents):
                self.prefix += ["--perms", "0755", "--dir", parent]
            self.prefix += ["--bind", self.course if path == ROOT else path, path]
        self.prefix += ["--unshare-pid", "--die-with-parent", "--cap-add", "ALL", "--chdir", ROOT]
        # Not bubblewrap's own /proc: the sandbox that grades would find it incomplete.
        self.prefix += ["sh", "-c", 'mount -t proc proc /proc && exec "$@"', "sh"]


class Person:
    """Somebody who has logged in through the form; ``get`` and ``post`` go to the server of that name."""

    def __init__(self, hub: str, name: str, password: str) -> None:
        self.hub, self.name = hub, name
        self.base = ""  # the address of the server, once there is one
        self.session = requests.Session()
        self.session.trust_env = False  # this machine needs no proxy to reach itself
        self.session.get(f"{hub}/hub/login", timeout=PATIENCE)
        form = {"username": name, "password": password, "_xsrf": self.cookie("/hub/")}
        self.entry = self.session.post(f"{hub}/hub/login?next=/hub/spawn", data=form, timeout=PATIENCE)

    def cookie(self, path: str) -> str | None:
        return self.session.cookies.get("_xsrf", path=path)

    def arrive(self) -> requests.Response:
        """Wait until the server runs; gives the page that it opens with."""

        def page() -> requests.Response | None:
            answer = self.session.get(f"{self.hub}/hub/spawn", timeout=PATIENCE)
            self.base, there, _ = answer.url.partition("/lab/")
            return answer if answer.ok and there else None

        return until(page)

    def get(self, path: str, **options) -> requests.Response:
        return self.session.get(f"{self.base}/{path}", timeout=PATIENCE, **options)

    def post(self, path: str, /, method: str = "POST", **data: object) -> dict:
        about = {"json": data, "headers": {"X-XSRFToken": self.cookie(f"/user/{self.name}/")}}
        answer = self.session.request(method, f"{self.base}/{path}", timeout=PATIENCE, **about)
        answer.raise_for_status()
        return answer.json()

    def hand_in(self, answer: str) -> None:
        """Write an answer into the notebook that was fetched, and submit it; without one, as it is."""
        if answer:
            notebook = nbformat.from_dict(self.get(f"api/contents/{NOTEBOOK}").json()["content"])
            solution_cells(notebook)["darkest"].source = answer
            self.post(f"api/contents/{NOTEBOOK}", method="PUT", type="notebook", content=notebook)
        assert self.post("assignments/submit", **THIS)["success"]

    def points(self) -> dict[str, float]:
        grades = self.get("formgrader/api/submissions/digits").json()
        return {one["student"]: one["score"] for one in grades}

    def terminal(self, command: str) -> tuple[int, str]:
        """Run a command in a terminal of the server; gives its exit status and what it showed."""
        name = self.post("api/terminals")["name"]
        token = self.cookie(f"/user/{self.name}/")
        address = f"{self.base}/terminals/websocket/{name}?_xsrf={token}".replace("http", "ws", 1)
        cookies = self.get("api/status").request.headers["Cookie"]
        origin = self.base.removesuffix(f"/user/{self.name}")
        wire = websocket.create_connection(address, cookie=cookies, origin=origin, timeout=PATIENCE)
        shown = ""
        try:
            wire.send(json.dumps(["stdin", f"{command}; echo end=$?=end\r"]))
            while not (end := re.search(r"end=(\d+)=end", shown)):
                kind, *rest = json.loads(wire.recv())
                shown += rest[0] if kind == "stdout" else ""
        finally:
            wire.close()
        return int(end[1]), shown

    def does(self, command: str) -> str:
        """Run a command that must succeed; gives what it showed."""
        status, shown = self.terminal(command)
        assert status == 0, shown
        return shown


@contextmanager
def a_container() -> Iterator[Container]:
    """A container that goes away again, or a skip that says what is missing for one."""
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        pytest.skip("the hub needs Linux and root")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        container = Container(Path(folder))
        trial = run(*container.prefix, "configurable-http-proxy", "--version")
        if trial.returncode:
            pytest.skip(f"bubblewrap makes no container for the hub here: {trial.stderr.strip()}")
        yield container


@pytest.fixture(scope="module", autouse=True)
def names_of_servers() -> Iterator[None]:
    """ada.localhost and the like are this machine: browsers know that, the system may not."""
    ask = socket.getaddrinfo

    def answer(host: str, *rest: object, **more: object) -> list:
        return ask("127.0.0.1" if str(host).endswith(".localhost") else host, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", answer)
        yield


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the example, started by its command."""
    log = tmp_path_factory.mktemp("hub") / "hub.log"
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        front, inside, routes, queue = (one.getsockname()[1] for one in sockets)
    options = f"--JupyterHub.hub_bind_url=http://127.0.0.1:{inside}"
    options += f" --ConfigurableHTTPProxy.api_url=http://127.0.0.1:{routes}"
    with a_container() as container:
        settings = container.course / "examples/jupyterhub/jupyterhub_config.py"
        settings.write_text(settings.read_text().replace(":8000", f":{front}").replace(":8099", f":{queue}"))
        source = container.course / "solutions/digits/digits.py"
        source.parent.mkdir()
        source.write_text(SOURCE)
        nbformat.write(build(source), source.with_suffix(".ipynb"))
        (container.course / "tests/answers/digits.py").write_text(SLOW_ANSWER)
        words = (*container.prefix, "make", "hub", f"PYTHON={sys.executable}", f"ARGS={options}")
        runs = lambda: "JupyterHub is now running" in log.read_text()
        with running(log, runs, *words, env=environment(**PASSWORDS)):
            yield f"http://localhost:{front}"


@pytest.fixture(scope="module")
def people(hub: str) -> dict[str, Person]:
    """The three, logged in, with their servers running."""
    passwords = {"ada": STUDENT, "bo": STUDENT, "instructor": INSTRUCTOR}
    people = {name: Person(hub, name, password) for name, password in passwords.items()}
    for person in people.values():
        person.arrive()
    return people


@pytest.fixture(scope="module")
def graded(people: dict[str, Person]) -> dict[str, Person]:
    """The three, after an assignment went to the students and back, and its feedback to them."""
    ada, bo, instructor = people.values()

    def formgrader(step: str) -> None:
        answer = instructor.post(f"formgrader/api/assignment/digits/{step}")
        assert answer["success"], answer

    assert ada.get("assignments?course_id=fast-pytorch").json() == {"success": True, "value": []}
    formgrader("assign")
    formgrader("release")
    for student in (ada, bo):
        seen = student.get("assignments?course_id=fast-pytorch").json()["value"]
        assert [(one["assignment_id"], one["status"]) for one in seen] == [("digits", "released")]
        student.post("assignments/fetch", **THIS)
    ada.hand_in(ANSWER)
    bo.hand_in("")
    formgrader("collect")
    grade = "make grade ASSIGNMENT=digits ARGS='--workers 1'"
    assert "2 graded" in instructor.does(f"cd ~/fast-pytorch && {grade}")
    formgrader("generate_feedback")
    formgrader("release_feedback")
    for student in (ada, bo):
        student.post("assignments/fetch_feedback", **THIS)
    return people


def test_the_front_page_opens_its_chapters_are_there_and_only_the_instructor_has_the_formgrader(people):
    for person in people.values():
        assert person.arrive().url.endswith("/lab/tree/course/index.ipynb")
        chapters = {one["name"] for one in person.get("api/contents/course").json()["content"]}
        assert {"index.ipynb", "00_measuring.ipynb", "14_capstone.ipynb"} <= chapters
        assert person.get("api/contents/data/digits.npz?content=0").ok
    found = {name: person.get("formgrader/api/status").status_code for name, person in people.items()}
    assert found == {"ada": 404, "bo": 404, "instructor": 200}
    disabled = json.loads(re.search(r'"disabledExtensions": (\[.*?\])', people["ada"].get("lab").text)[1])
    assert "@jupyter/nbgrader:formgrader" in disabled
    assert "@jupyter/nbgrader:assignment-list" not in disabled


def test_each_gets_what_the_answer_is_worth_and_the_feedback_on_it(graded):
    assert graded["instructor"].points() == {"ada": 3, "bo": 0}
    answer = graded["ada"].post("assignments/validate", path=NOTEBOOK)
    assert answer == {"success": True, "value": {}}, "it finds the data, and the answer right"
    for name, score in {"ada": "3.0", "bo": "0.0"}.items():
        listed = graded[name].get("assignments?course_id=fast-pytorch").json()["value"]
        (sent,) = next(one for one in listed if one["status"] == "submitted")["submissions"]
        page = graded[name].get(f"files/{sent['local_feedback_path']}/digits.html").text
        assert f"(Score: {score} / 3.0)" in " ".join(page.split())


def test_the_instructor_mends_a_test_on_the_hub(graded):
    mend = "sed -i 's/:50/:60/' solutions/digits/digits.py && make notebooks ARGS=digits"
    look = "make rehearsal ARGS='--assignment digits --students 2' && make report ASSIGNMENT=digits"
    shown = graded["instructor"].does(f"cd ~/fast-pytorch && {mend} && {look}")
    assert "All points are as expected." in shown and "reports/digits.html" in shown
    built = graded["instructor"].get("api/contents/solutions/digits/digits.ipynb").json()["content"]
    assert any(":60]]" in cell["source"] for cell in built["cells"])
    # The rehearsal's students are not among the real ones.
    assert graded["instructor"].points() == {"ada": 3, "bo": 0}


def test_who_waits_sees_that_and_nothing_of_others(graded, hub):
    ada, bo, instructor = graded.values()
    address = f"{hub.replace('localhost', 'queue--service.localhost')}/services/queue/"

    def page(person: Person) -> str:
        answer = person.session.get(address, timeout=PATIENCE)
        assert answer.ok and answer.url == address, answer.text
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        return " ".join(unescape(answer.text).split())

    assert "/hub/login" in requests.get(address, timeout=PATIENCE).url
    assert "Nothing is graded at the moment." in page(ada)
    watch = "python -m autograder watch --release --workers 1 > ~/watch.log 2>&1"
    instructor.does(f"cd ~/fast-pytorch && ({watch} & echo $! > ~/pid)")
    until(lambda: "You have handed in nothing since grading began." in page(ada))
    bo.arrive()  # for a token that is not from before the page
    bo.hand_in(ANSWER)
    until(lambda: ": 3 of 3 points. Nbgrader's Assignment List fetches the feedback." in page(bo))
    ada.arrive()
    ada.hand_in("def darkest(pictures):\n    return 0")
    words = ": 0 of 3 points. Your earlier submission has more points and still counts, with 3."
    until(lambda: words in page(ada))
    assert [page(person).count("<tr><td>") for person in (ada, bo, instructor)] == [1, 1, 0]
    assert instructor.points() == {"ada": 3, "bo": 3}
    bo.arrive()
    bo.post("assignments/fetch_feedback", **THIS)
    instructor.arrive()
    assert "digits  bo  3 of 3 points" in instructor.does("kill $(cat ~/pid); cat ~/watch.log")
    until(lambda: "Nothing is graded at the moment." in page(bo))


def test_a_student_reads_nothing_of_the_others(graded):
    closed = [
        "/home/bo",
        "/home/bo/fast-pytorch/exercises/digits/digits.ipynb",
        "/home/instructor/fast-pytorch/gradebook.db",
        "/home/instructor/fast-pytorch/solutions/digits/digits.ipynb",
        "/srv/nbgrader/exchange/fast-pytorch/inbound",
        "/srv/nbgrader/exchange/fast-pytorch/feedback",
        "/srv/jupyterhub/jupyterhub.sqlite",
        f"{ROOT}/solutions/digits/digits.ipynb",
        f"{ROOT}/tests/answers",
    ]
    ada = graded["ada"]
    shown = {path: ada.terminal(f"ls {shlex.quote(path)}")[1] for path in closed}
    assert [path for path, said in shown.items() if "Permission denied" not in said] == []
    ada.does("ls ~/fast-pytorch/exercises/digits")  # what is hers
    assert ada.terminal("grep -r amax /srv/nbgrader/exchange/fast-pytorch/outbound")[0] == 1
    status, shown = ada.terminal("mv /srv/nbgrader/exchange/fast-pytorch /srv/nbgrader/exchange/mine")
    assert status and "Operation not permitted" in shown, shown
    shown = ada.does("env")
    assert not any(password in shown for password in PASSWORDS.values())


def test_a_student_enters_no_other_server(people, hub):
    answers = [people["ada"].session.get(f"{people[other].base}/lab") for other in ("bo", "instructor")]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert "Invalid username or password" in Person(hub, "instructor", STUDENT).entry.text
    assert Person(hub, "root", STUDENT).entry.status_code == 403


# Opens the server of whoever reads it in a window, under all names that it may have, and lists its files.
ATTACK = """\
<script>
const pause = () => new Promise(go => setTimeout(go, 100));
const name = location.search.slice(1), parts = location.host.split(".");
async function enter(host) {
    const other = window.open(`http://${host}/user/${name}/lab`);
    try {
        for (let turn = 0; turn < 100 && !other.document.title.includes("JupyterLab"); turn++) await pause();
        const [, token] = other.document.cookie.match(/_xsrf=([^;]*)/);
        const answer = await other.fetch(`/user/${name}/api/contents`, {headers: {"X-XSRFToken": token}});
        return answer.ok;
    } catch (refused) {
        return false;
    } finally {
        other.close();
    }
}
async function attack() {
    const found = [];
    for (const host of new Set([location.host, parts.at(-1), `${name}.${parts.at(-1)}`]))
        if (await enter(host)) found.push(host);
    document.title = `entered: ${found.join(" ")}`;
}
attack();
</script>
"""
# Asks the reader's own server for its files.
FILES = """async () => {
    const [, token] = document.cookie.match(/_xsrf=([^;]*)/);
    const address = location.pathname.replace(/lab.*/, "api/contents");
    return (await fetch(address, {headers: {"X-XSRFToken": token}})).ok;
}"""


@pytest.mark.parametrize(("reader", "password"), [("instructor", INSTRUCTOR), ("bo", STUDENT)])
def test_a_page_on_a_students_server_reaches_no_other_server(people, hub, browser, reader, password):
    folder = "~/.local/share/jupyter/labextensions/look/static"
    write = f"mkdir -p {folder} && base64 -d > {folder}/look.html <<< {b64encode(ATTACK.encode()).decode()}"
    people["ada"].arrive()  # for a token that is not from before the other tests
    people["ada"].does(write)
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{hub}/hub/login?next=/hub/spawn")
        page.get_by_label("Username").fill(reader)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/lab/**")
        page.goto(f"{people['ada'].base}/lab/extensions/look/static/look.html?{reader}")
        page.wait_for_function("document.title.startsWith('entered:')", timeout=1000 * PATIENCE)
        assert page.title() == "entered:"
        page.goto(f"{people[reader].base}/lab")
        assert page.evaluate(FILES)  # the reader can do what the page could not


# What the command says before it touches anything.

PYTHON = shlex.quote(sys.executable)
EXAMPLE = shlex.quote(f"{ROOT}/examples/jupyterhub")


def test_the_command_says_why_it_does_not_start():
    check = "getent passwd instructor bo; ls /home /srv"
    for before, reason in [
        ("setpriv --reuid=nobody --regid=nogroup --clear-groups", "needs Linux, and root"),
        ("env HUB_PASSWORD=short", "HUB_PASSWORD must hold a password of 8 characters or more"),
        ("env PATH=/usr/sbin", "configurable-http-proxy was not found: npm install"),
        ("useradd ada;", "there is an account ada already"),
        (f"chmod 700 {shlex.quote(str(ROOT))}/autograder;", f"other users cannot run {sys.executable}"),
    ]:
        said = said_in_a_container(f"{before} {PYTHON} {EXAMPLE}/start.py; echo status $?; {check}")
        (error,) = (line for line in said.splitlines() if line.startswith("error: "))
        assert reason in error
        assert said.endswith("status 1\n/home:\n\n/srv:\n"), said  # and no account was made


def test_a_second_start_keeps_everybodys_work():
    code = "import start; print(start.refusals()); start.prepare()"
    prepare = f"cd {EXAMPLE}; {PYTHON} -c '{code}'"
    page = "/home/ada/fast-pytorch/course/index.ipynb"
    said = said_in_a_container(f"{prepare}; echo hers > {page}; {prepare}; cat {page}")
    assert said == "[]\n[]\nhers\n"


def said_in_a_container(script: str) -> str:
    """What a shell script prints in a container where the example could start."""
    with a_container() as container:
        words = (*container.prefix, "sh", "-c", f"exec 2>&1; {script}")
        return run(*words, env=environment(**PASSWORDS)).stdout
