"""Errors of backends have a text and fields, and pickling keeps both.

The tested code is in `dmlconf/backends/errors.py`, `dmlconf/backends/options.py`,
`dmlconf/backends/protocol.py` and `dmlconf/backends/recording/file.py`.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from dmlconf.backends import errors
from dmlconf.backends.errors import (
    AmbiguousBackendError,
    LibraryError,
    OptionError,
    ProcessError,
    RecordingError,
    StaleRecordingError,
    UnknownChoiceError,
)
from dmlconf.backends.protocol import BackendError
from dmlconf.backends.recording.file import read_recording
from dmlconf.backends.registry import create, parse

ERRORS = [
    AmbiguousBackendError("fast", ["acme-dml 1.2 (acme:create)", "other-dml 1.0 (other:create)"]),
    BackendError("it is away"),
    BackendError("it is away", "call it back"),
    LibraryError("DirectML was not found", "Install it."),
    OptionError("numpy takes no argument"),
    ProcessError("no process could be started"),
    RecordingError(Path("x.dmlrec"), "not a recording"),
    StaleRecordingError(Path("x.dmlrec"), ["tile/a", "tile/b"], 7, "Record again: dmlconf record"),
    UnknownChoiceError("fault", "zeroes", ["zeros", "crash"]),
]


def test_errors_of_every_class_are_listed_here() -> None:
    public = (getattr(errors, name) for name in errors.__all__)
    classes = {each for each in public if isinstance(each, type)}
    assert {type(error) for error in ERRORS} == {BackendError, *classes}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickling_keeps_the_text_and_fields_of_an_error(error: BackendError) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied)) == (type(error), str(error))
    assert vars(copied) == vars(error)


def test_a_hint_stands_on_a_line_of_its_own() -> None:
    assert str(BackendError("it is away", "call it back")) == "it is away\ncall it back"


def test_unknown_choice_suggests_one_name_or_lists_all() -> None:
    with pytest.raises(UnknownChoiceError, match="did you mean zeros") as caught:
        create(parse("faulty:zeroes"))
    assert (caught.value.what, caught.value.name) == ("fault", "zeroes")
    assert str(UnknownChoiceError("fault", "x", ["zeros", "crash"])).endswith(
        "'x': use one of zeros, crash"
    )


def test_error_for_no_recording_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(b"no recording")
    with pytest.raises(RecordingError) as caught:
        read_recording(path)
    assert caught.value.path == path
    assert caught.value.reason.startswith("not a recording")
    assert str(caught.value) == f"{path}: {caught.value.reason}"
