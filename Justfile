# What contributors run most; `just` lists it. CONTRIBUTING.md says more, and .ci/run runs everything.
# Installed by the extra `dev`: .venv/bin/just, or your system's own.

bin := ".venv/bin"

# List the targets.
[private]
default:
    @just --list --unsorted

# Make the environment.
setup:
    python3 -m venv .venv
    {{bin}}/pip install --quiet -e '.[dev]'
    {{bin}}/pre-commit install

# Lint, and check the layout of code.
lint:
    {{bin}}/ruff check .
    {{bin}}/ruff format --check .

# Lay out code, and mend what can be mended.
format:
    {{bin}}/ruff check --fix .
    {{bin}}/ruff format .

# Check types.
types:
    {{bin}}/mypy

# Run the unit tests, or those given: just test tests/cases/loading/test_shared.py -k digest
[positional-arguments]
test *ARGUMENTS:
    {{bin}}/pytest {{ if ARGUMENTS == "" { "-n auto" } else { '"$@"' } }}

# Check case files, the catalogue and coverage.
validate:
    {{bin}}/dmlconf validate cases/
    {{bin}}/dmlconf coverage cases/ --quiet --fail-under 100
    {{bin}}/dmlconf coverage cases/ --questions --quiet --fail-under 100

# Run the suite on the reference, against the recordings.
suite:
    {{bin}}/dmlconf run cases/ --quiet

# Write the pages that are made from the program, or those given: just pages formats.md
[positional-arguments]
pages *NAMES:
    {{bin}}/python -m tests.docs "$@"

# Build the documentation site into site/.
docs:
    NO_MKDOCS_2_WARNING=1 {{bin}}/mkdocs build --strict

# Run what CI runs: half an hour on two cores, as root.
ci:
    bash .ci/run
