#!/usr/bin/env bash
# Gradescope runs this once, as root, when it makes the image.
set -euo pipefail
cd "${AUTOGRADER_ROOT:-/autograder}/source"

# A compiler and Python's headers are for torch.compile.
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    bubblewrap g++ python3-dev python3-venv

# The versions are for Python 3.11 and newer.
constraints=()
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    constraints=(--constraint constraints.txt)
fi
python3 -m venv ../environment
../environment/bin/python -m pip install "${constraints[@]}" uv
../environment/bin/uv pip install --python ../environment/bin/python --compile-bytecode --torch-backend cpu \
    "${constraints[@]}" --requirements pyproject.toml --extra course
