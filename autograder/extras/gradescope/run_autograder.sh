#!/usr/bin/env bash
# Gradescope runs this for each submission, as root. What it prints, instructors see, and students do not.
root="${AUTOGRADER_ROOT:-/autograder}"
cd "$root/source" || exit 1
PATH="$root/environment/bin:$PATH" exec python -m autograder gradescope ARGUMENTS --grade "$root"
