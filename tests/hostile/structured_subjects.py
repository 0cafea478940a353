"""Kinds of file whose mutants are mostly well-formed, but too deep, too long or wrongly typed."""

from __future__ import annotations

import json
import struct
import zipfile
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import yaml

from tests.certification import forging
from tests.cli.process import TILE
from tests.hostile.feeding import (
    Subject,
    complaint,
    small_files,
    small_recordings,
    suite_of,
    tree_of,
)
from tests.hostile.mutant import Mutant
from tests.hostile.mutation import mutated_bytes, mutated_lines, mutated_value
from tests.hostile.structure import (
    archived,
    expression,
    keywords,
    node_graph,
    structured_json,
    toml,
    with_other_kinds,
)
from tests.reports.logs import log_lines

__all__ = ["STRUCTURED"]

_WRONG: Final = TILE.replace("[1, 2, 1, 2]", "[1, 2, 1, 3]")


def _written(folder: Path, text: str = TILE, name: str = "tile.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def _log_mutant(random: Random) -> Mutant:
    lines = list(log_lines())
    place = random.randrange(len(lines))
    record = json.loads(lines[place])
    if random.random() < 0.6 and "facts" in record:
        with_other_kinds(random, record["facts"], 1)
    else:
        with_other_kinds(random, record, random.choice((0, 1)))
    text = structured_json(random, record) if random.random() < 0.5 else json.dumps(record).encode()
    lines[place] = text + b"\n"
    return Mutant(b"".join(lines), Path("everything.jsonl"))


def _feed_log(random: Random, path: Path, base: Path) -> str:
    folder, log = path.parent, path.name
    right = "right.jsonl"
    (folder / right).write_bytes(b"".join(log_lines()))
    report = {random.choice(("html", "json", "junit", "markdown")): folder / "report"}
    commands: tuple[tuple[tuple[str, ...], dict[str, Path]], ...] = (
        (("report", log, "-v"), report),
        (("compare", log, right), {}),
        (("compare", right, log), {}),
        (("merge", log, "-o", "merged.jsonl"), {}),
        (("waive", log), {}),
        (("run", _written(folder), "--resume", log, "-q"), {}),
        (("list", f"--failed={log}"), {}),
        (("run", _written(folder), "--slower-than", log, "-q", "--log", "new.jsonl"), {}),
        (("run", _written(folder), "--shard", "1/2", "--shard-by", log, "-q"), {}),
    )
    arguments, reports = random.choice(commands)
    return complaint(folder, *arguments, reports=reports)


def _recording_mutant(random: Random) -> Mutant:
    base = random.choice(small_recordings())
    members = forging.members(base)
    kind = random.random()
    if kind < 0.6:
        manifest = json.loads(members["recording.json"])
        cases = list(manifest["cases"].items())
        manifest["cases"] = dict(random.sample(cases, min(4, len(cases))))
        with_other_kinds(random, manifest, random.choice((0, 1, 1)))
        members["recording.json"] = structured_json(random, manifest)
        if kind < 0.3:
            stream = BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                for name, content in members.items():
                    archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
            return Mutant(stream.getvalue(), base)
    return Mutant(archived(random, members), base)


def _feed_recording(random: Random, path: Path, base: Path) -> str:
    how = random.choice(("-b", "--against"))
    return complaint(
        path.parent,
        "run",
        suite_of(base),
        "-q",
        "--log",
        "run.jsonl",
        how,
        f"recording:{path}",
        reports={},
    )


def _configuration_mutant(random: Random) -> Mutant:
    settings = {"tag": ["x"], "timeout": 30, "quiet": True, "report": "json:out.json"}
    text = toml(random, dict(random.sample(list(settings.items()), random.randrange(5))))
    content = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.2:
        content = mutated_lines(random, content)
    return Mutant(content, Path("dmlconf.toml"))


def _feed_configuration(random: Random, path: Path, base: Path) -> str:
    content = path.read_bytes()
    _written(path.parent)
    if random.random() < 0.5:
        (path.parent / "dmlconf.toml").write_bytes(content)
    else:
        own = b"[tool.dmlconf]\n" if random.random() < 0.7 else b"[tool]\ndmlconf.quiet = true\n"
        (path.parent / "pyproject.toml").write_bytes(own + content)
    command = random.choice(
        (("list", "tile.yaml"), ("config",), ("config", "run"), ("config", "allow"))
    )
    return complaint(path.parent, *command, reports={})


def _text_mutant(kind: str) -> Any:
    def mutant(random: Random) -> Mutant:
        text = (
            keywords(random)
            if kind == "keywords"
            else expression(random, random.choice((1, 2, 3, 4)))
        )
        return Mutant(text.encode("utf-8", "surrogatepass"), Path(kind))

    return mutant


def _feed_text(random: Random, path: Path, base: Path) -> str:
    text = path.read_bytes().decode("utf-8", "surrogatepass")
    option = "-k" if base.name == "keywords" else "--where"
    if option == "-k" or random.random() < 0.5:
        return complaint(path.parent, "list", _written(path.parent), option, text, reports={})
    return complaint(path.parent, "list", "-o", "TILE", "--quick", option, text, reports={})


def _matrix_mutant(random: Random) -> Mutant:
    parameters = {
        name: "=" + expression(random, random.choice((1, 2, 3)))
        for name in random.sample(("a", "b", "c"), random.choice((1, 1, 2)))
    }
    if random.random() < 0.4:
        parameters["d"] = "=range(" + random.choice(("9", "300", "4096")) + ")"
    entry: dict[str, Any] = {
        "name": "x",
        "matrix": parameters,
        "desc": {
            "InputTensor": {"Sizes": [2], "DataType": "FLOAT32", "values": [1, 2]},
            "OutputTensor": {"Sizes": [4], "DataType": "FLOAT32"},
            "Repeats": random.choice(([2], "=(2,)", "=" + expression(random, 2))),
        },
        "expect": {"OutputTensor": [1, 2, 1, 2]},
    }
    if random.random() < 0.5:
        entry["where"] = "=" + expression(random, random.choice((1, 2, 3)))
    if random.random() < 0.3:
        entry["let"] = {"e": "=" + expression(random, 3)}
    data = {"operator": "TILE", "cases": [entry]}
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return Mutant(text.encode("utf-8", "surrogatepass"), Path("matrix.yaml"))


def _feed_cases(random: Random, path: Path, base: Path) -> str:
    command = random.choice(
        (("validate",), ("list",), ("run", "--quick", "-q", "--log", "r.jsonl"))
    )
    return complaint(path.parent, command[0], path.name, *command[1:], reports={})


def _graph_mutant(random: Random) -> Mutant:
    if random.random() < 0.5:
        content = node_graph(random).encode()
        if random.random() < 0.3:
            content = mutated_lines(random, content)
        return Mutant(content, Path("graph.yaml"))
    base = random.choice(small_files("graphs/*.yaml"))
    tree = tree_of(base)
    tree = {**tree, "cases": random.sample(tree["cases"], 1)}
    changed = mutated_value(random, tree, random.choice((1, 2)))
    if random.random() < 0.5:
        changed = with_other_kinds(random, changed, 1)
    text = yaml.safe_dump(changed, sort_keys=False, allow_unicode=True)
    return Mutant(text.encode("utf-8", "surrogatepass"), base)


def _waivers_mutant(random: Random) -> Mutant:
    waiver = {
        "name": "a-fault",
        "reason": "It fails.",
        "link": "none yet",
        "until": "2099-01-01",
        "cases": ["tile/*"],
        "where": "Rank > 0 and DataType == FLOAT32",
        "failure": "wrong values",
        "bound": {"elements": 12, "ulp": 2000},
        "devices": {"adapters": ["*"], "directml": {"first": "1.13.0", "last": "1.15"}},
    }
    data: Any = {"format": 1, "waivers": [waiver]}
    if random.random() < 0.3:
        waiver["where"] = expression(random, 3)
    data = (
        with_other_kinds(random, data, 1)
        if random.random() < 0.4
        else mutated_value(random, data, 1)
    )
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return Mutant(text.encode("utf-8", "surrogatepass"), Path("waivers.yaml"))


def _feed_waivers(random: Random, path: Path, base: Path) -> str:
    case = _written(path.parent, _WRONG)
    return complaint(
        path.parent, "run", case, "-q", "--log", "run.jsonl", "--waivers", path.name, reports={}
    )


def _list_mutant(random: Random) -> Mutant:
    lines = ["tile/tile/stated", "stated", "tile/*", "# no", "", "*" * 3000, "?*" * 500, "[" * 999]
    text = "\n".join(random.choice(lines) for _ in range(random.choice((1, 5, 3000))))
    content = text.encode()
    return Mutant(
        mutated_bytes(random, content) if random.random() < 0.5 else content, Path("list")
    )


def _feed_list(random: Random, path: Path, base: Path) -> str:
    return complaint(path.parent, "list", _written(path.parent), "--cases", path.name, reports={})


def _array_mutant(random: Random) -> Mutant:
    stream = BytesIO()
    kind = random.choice((np.float32, np.float64, np.int64, np.dtype("O"), np.dtype("i4,f4")))
    values = np.zeros(random.choice((0, 2, 4, 1000)), kind)
    np.save(stream, values, allow_pickle=True)
    content = stream.getvalue()
    if random.random() < 0.5:
        header = random.choice(
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999,), }",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "2, " * 900 + "), }",
                "{'descr': '" + "<f4" * 999 + "', 'fortran_order': False, 'shape': (2,), }",
                "(" * 900 + ")" * 900,
                "{" * 90,
                "9" * 5000,
                "{'descr': ['<f4'], 'fortran_order': 1, 'shape': (-2,), }",
                "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
            )
        ).encode()
        content = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(8)
    return Mutant(mutated_bytes(random, content) if random.random() < 0.5 else content, Path("npy"))


def _feed_array(random: Random, path: Path, base: Path) -> str:
    case = _written(path.parent, TILE.replace("values: [1, 2]", f"file: {path.name}"))
    return complaint(path.parent, "run", case, "-q", "--log", "run.jsonl", reports={})


STRUCTURED: Final = {
    "log-kinds": Subject(".jsonl", _log_mutant, _feed_log),
    "recording-kinds": Subject(".dmlrec", _recording_mutant, _feed_recording),
    "configuration": Subject(".txt", _configuration_mutant, _feed_configuration),
    "keywords": Subject(".txt", _text_mutant("keywords"), _feed_text),
    "where": Subject(".txt", _text_mutant("where"), _feed_text),
    "matrix": Subject(".yaml", _matrix_mutant, _feed_cases),
    "graph": Subject(".yaml", _graph_mutant, _feed_cases),
    "waivers": Subject(".yaml", _waivers_mutant, _feed_waivers),
    "list": Subject(".list", _list_mutant, _feed_list),
    "array": Subject(".npy", _array_mutant, _feed_array),
}
