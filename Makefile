# The course's commands. `make help-all` lists them.
#
# Without PYTHON=…, everything is installed into .venv, in the versions of constraints.txt (Python 3.10 is
# older than some of them, and takes the newest versions that support it).
# As root on Debian and Ubuntu, `make test` installs the programs that tests use; PROGRAMS=no keeps it from that.
# With PYTHON=/path/to/python, that interpreter's environment is used as it is: only what is missing is
# installed, and its torch and torchvision stay.
# In an unpacked bundle (`make bundle`), pip takes everything from the bundle's wheels, without a network.

PYTHON =
ARGS =
AUTHOR =
PROGRAMS ?= yes
BASE = python3

# Some shells switch Python's bytecode cache off; every start then compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
# Jupyter takes the kernel of the environment it runs in, not one that the user has elsewhere.
export JUPYTER_PREFER_ENV_PATH = 1

# nbgrader calls alembic by name, so the environment's programs come first.
ifeq ($(PYTHON),)
RUN = PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python
READY = .venv/ready
else
BASE = $(PYTHON)
space := $() $()
BIN = $(shell dirname "$$(command -v "$(PYTHON)")")
RUN = PATH="$(BIN):$$PATH" "$(PYTHON)"
READY = .ready-$(patsubst -%,%,$(subst $(space),-,$(subst /,-,$(PYTHON))))
endif

# What the wheels of a bundle are for is written beside them.
BUNDLE = $(wildcard wheels/made-for.txt)
COURSE = $(if $(BUNDLE),--no-index --find-links wheels --editable '.[course]',--editable '.[dev]')

# It opens on the front page, does not ask whether it may fetch news, and lists no scripts beside the notebooks.
LAB_FLAGS = --LabApp.default_url=/lab/tree/course/index.ipynb --LabApp.app_settings_dir='$(CURDIR)/.jupyter' \
	--ContentsManager.hide_globs="['__pycache__', '*.py', '*~', '.DS_Store']"
# A reader's notebook is saved alone. Authors have it paired with its script: make lab AUTHOR=1
LAB_FLAGS += $(if $(AUTHOR),,--ServerApp.jpserver_extensions=jupyterlab_jupytext=False)
# A browser needs a display; without one, JupyterLab prints its address.
LAB_FLAGS += $(if $(filter Linux,$(shell uname -s)),$(if $(DISPLAY)$(WAYLAND_DISPLAY),,--no-browser))
LAB_FLAGS += $(if $(filter 0,$(shell id -u)),--allow-root)

# Test processes, each with whole files, the longest first (conftest.py). Some tests wait, so there is one process
# more than most machines have cores.
SHARED = --dist loadfile --no-loadscope-reorder --numprocesses
# How many of the longest steps are shown; 0 shows all.
DURATIONS = 15

define check-python
@command -v "$(BASE)" >/dev/null || { echo "error: $(BASE) was not found; Python 3.10 to 3.13 is needed." >&2; exit 1; }
@"$(BASE)" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
{ echo "error: Python 3.10 to 3.13 is needed, and $(BASE) is $$("$(BASE)" --version 2>&1). With another one:" \
"make $(MAKECMDGOALS) BASE=/path/to/python3.12" >&2; exit 1; }
endef

define check-venv
@"$(BASE)" -c 'import ensurepip, venv' 2>/dev/null || \
{ echo "error: $(BASE) has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

# After the words of pip, which in most cases are many.
define or-say
|| { echo "error: not everything could be installed, for the reason above. $(if $(BUNDLE),These wheels are for \
$$(cat $(BUNDLE)). Another Python is used with: make lab BASE=/path/to/python,It takes a network (or the archive of \
make bundle) and 7 GB on the disk. Then call make again.)" >&2; exit 1; }
endef

.PHONY: help help-all lab programs test test-all test-on test-gpu check notebooks new-chapter rehearsal grade watch report similar term gradescope hub bench fuzz screens record gpu gpu-wheels site bundle constraints clean

# What a reader needs is marked with ##, the rest with ##+.
define list-commands
@awk -F ':.*$(1)' '/^[a-z-]+:.*$(1)/ {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST) | sed \
"$$(sed -n 's/^  "\([a-z-]*\)": "\([^"]*\)",*$$/s|@\1@|\2|/p' data/times.json)"
endef

help: ##+ list what readers and instructors need
	$(call list-commands,## )

help-all: ## list all commands
	$(call list-commands,##\+? )

lab: $(READY) ## install what is needed and open the course in JupyterLab
	@$(RUN) .ci/ready_for_lab.py; case $$? in 0) $(RUN) -m jupyterlab $(LAB_FLAGS) $(ARGS) ;; 3) ;; *) exit 1 ;; esac

# In notebooks, comparisons and races are short: the tests look at what the cells say, and not at their figures.
SLOW = AUTOGRADER_SECONDS=0.1 $(RUN) -m pytest --nbval-lax -m "slow and not machine" --durations=$(DURATIONS)

test: programs check ## install what is needed; run all fast tests, and slow ones of each kind (@test@)
	$(SLOW) $(SHARED) 3 --of-each-kind tests course solutions

# Known answers race most of the time, which takes three times as long beside other tests. Status 5 is pytest's
# for no tests: grading needs Linux.
test-all: programs check ##+ the same with all slow tests
	$(SLOW) -k test_all_answers tests || [ $$? = 5 ]; answers=$$?; \
	$(SLOW) $(SHARED) 3 -k 'not test_all_answers' tests course solutions && exit $$answers

test-on: $(READY) ##+ run all notebooks on other versions: make test-on VERSIONS=colab (or oldest)
	AUTOGRADER_SECONDS=0.1 $(RUN) -m pytest -m versions -k "$(VERSIONS)" --durations=$(DURATIONS) --numprocesses 2 tests/test_versions.py

test-gpu: $(READY) ##+ run exercises and chapters on a GPU that is pretended, to find what lies on two devices
	$(RUN) -m pytest -v -m pretended --durations=$(DURATIONS) --numprocesses 2 tests/test_pretended_gpu.py

programs: ##+ install the programs that some tests use, on Debian and Ubuntu as root
	@$(if $(filter no,$(PROGRAMS)),:,BASE="$(BASE)" .ci/programs)

# The types are looked at beside the tests: the first time that takes a minute.
check: $(READY) ##+ style, types, imports, drift, leaks, fast tests (@check@)
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache --no-logo
	@mkdir -p build; $(RUN) -m mypy >build/mypy.txt 2>&1 & \
	$(RUN) -m pytest -m "not slow and not machine and not versions and not pretended" --durations=$(DURATIONS) $(SHARED) 2 tests; \
	tests=$$?; wait $$!; types=$$?; cat build/mypy.txt; exit $$((tests + types))

notebooks: $(READY) ##+ build the notebooks whose scripts changed (ARGS=01 or ARGS=--all for more)
	@$(RUN) -m autograder notebooks $(ARGS)

new-chapter: $(READY) ##+ start a chapter with its exercises: make new-chapter NAME=30_topic
	@$(RUN) -m autograder new-chapter '$(NAME)'

rehearsal: $(READY) ## grade a pretend class (ARGS=--help lists the options)
	@$(RUN) -m autograder rehearsal $(ARGS)

grade: $(READY) ## grade a class in parallel: make grade ASSIGNMENT=01_tensor_creation (more: ARGS=--help)
	@$(RUN) -m autograder grade $(ASSIGNMENT) $(ARGS)

watch: $(READY) ##+ grade what is handed in, as soon as it is there (ARGS=--release hands back feedback, too)
	@$(RUN) -m autograder watch $(ASSIGNMENT) $(ARGS)

report: $(READY) ## write a page about a graded class: make report ASSIGNMENT=01_tensor_creation
	@$(RUN) -m autograder report $(ASSIGNMENT) $(ARGS)

term: $(READY) ##+ write a page about the whole term, and one for each student
	@$(RUN) -m autograder term $(ARGS)

similar: $(READY) ##+ write a page about answers that look alike: make similar ASSIGNMENT=01_tensor_creation
	@$(RUN) -m autograder similar $(ASSIGNMENT) $(ARGS)

gradescope: $(READY) ##+ make an archive that grades on Gradescope: make gradescope ASSIGNMENT=01_tensor_creation
	@$(RUN) -m autograder gradescope $(ASSIGNMENT) $(ARGS)

hub: $(READY) ##+ start a JupyterHub with two students and an instructor (docs/jupyterhub.md)
	@$(RUN) examples/jupyterhub/start.py $(ARGS)

bench: $(READY) ##+ measure the speed judge's errors, and a class's grading (ARGS=--quick for a look)
	@$(RUN) benchmarks/judge.py $(ARGS)
	@$(RUN) benchmarks/grading.py $(ARGS)
	$(RUN) -m pytest -m machine tests

fuzz: $(READY) ##+ try made-up submissions and messages for a while (ARGS="--minutes 30")
	@$(RUN) benchmarks/fuzz.py $(ARGS)

screens: $(READY) ##+ take the README's pictures anew (needs Chromium)
	$(RUN) -m pytest tests/browser --screenshots docs/screens

record: $(READY) ##+ run the chapters, five times each, and record this machine's timings in data/timings
	@$(RUN) -m autograder record $(ARGS)

bundle: $(READY) ## make one archive in build/ from which `make lab` works without a network
	@.ci/bundle "$(or $(PYTHON),.venv/bin/python)" $(CONSTRAINTS)

# Warnings count as errors: a link that leads nowhere is one. The network is not needed.
# A machine with a GPU may have no network: what its own Python lacks comes from the folder of `make gpu-wheels`.
WHEELS = build/gpu-wheels
OUT = build
GPU_PYTHON = $(or $(PYTHON),$(if $(wildcard .venv/ready),.venv/bin/python,$(BASE)))

gpu: ##+ measure all that waits for a GPU, on one, without a network (OUT=folder, ARGS=--only=ratios, PYTHON=…)
	@if ls $(WHEELS)/*.whl >/dev/null 2>&1; then "$(GPU_PYTHON)" -m pip install -q --no-index --no-deps \
	--no-compile --upgrade --target build/gpu-site $(WHEELS)/*.whl; fi
	@PYTHONPATH="$(CURDIR):$(CURDIR)/build/gpu-site$${PYTHONPATH:+:$$PYTHONPATH}" \
	"$(GPU_PYTHON)" benchmarks/gpu/gpu_run.py --out '$(OUT)' $(ARGS)

gpu-wheels: $(READY) ##+ collect what such a machine lacks beside torch: Jupyter's parts, for Python 3.12 on Linux
	@$(RUN) benchmarks/gpu/wheels.py $(WHEELS)

site: $(READY) ## build the website from the notebooks as they are, into build/site
	@$(RUN) -m sphinx -q -j auto -n -W --keep-going -d build/doctrees -c docs . build/site $(ARGS)
	@echo "To look at it: python3 -m http.server --directory build/site"

# Since 4.25, jsonschema's formats compile a grammar at every import: two seconds for every Jupyter command.
constraints: ##+ install the newest versions into a new .venv and write constraints.txt
	$(check-python)
	$(check-venv)
	"$(BASE)" -m venv --clear .venv
	.venv/bin/python -m pip install --editable '.[dev]' 'jsonschema<4.25' uv
	.venv/bin/python .ci/constraints.py > constraints.txt
	@touch .venv/ready

clean: ##+ remove .venv, caches and build leftovers
	rm -rf .venv .ready-* build ./*.egg-info .pytest_cache .ruff_cache
	find . -path ./.venv -prune -o -name __pycache__ -prune -exec rm -rf {} +

CONSTRAINTS = $(shell "$(BASE)" -c 'import sys; print("--constraint constraints.txt" * (sys.version_info >= (3, 11)))')

# uv takes a third of pip's time. Where it cannot be had or finds no packages, pip does the work. Compiled at once:
# sandboxes cannot write what they compile, and would do it again and again. What an installation left that stopped
# half way is not trusted.
WITH_UV = .venv/bin/python -m pip install --quiet $(CONSTRAINTS) uv && \
	.venv/bin/uv pip install --compile-bytecode --python .venv/bin/python $(CONSTRAINTS) $(COURSE)

.venv/ready: pyproject.toml constraints.txt $(BUNDLE)
	$(check-python)
	$(check-venv)
	"$(BASE)" -m venv .venv $(if $(wildcard .venv/unfinished),--clear) $(or-say)
	@touch .venv/unfinished $(or-say)
	$(if $(BUNDLE),,$(WITH_UV) ||) .venv/bin/python -m pip install $(CONSTRAINTS) $(COURSE) $(or-say)
	@touch $@
	@rm .venv/unfinished

ifneq ($(PYTHON),)
# The environment's own marker file makes a new environment at the same place count as new.
$(READY): pyproject.toml $(BUNDLE) $(subst $(space),\ ,$(shell ls "$(BIN)/../pyvenv.cfg" 2>/dev/null))
	$(check-python)
	@"$(PYTHON)" -m pip --version >/dev/null || { echo "error: the environment of $(PYTHON) has no pip." >&2; exit 1; }
	@"$(PYTHON)" .ci/keep_torch.py > $@.txt
	"$(PYTHON)" -m pip install --constraint $@.txt $(COURSE) $(or-say)
	@mv $@.txt $@
endif
