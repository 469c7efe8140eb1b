"""Thins a run as `larder export` writes it out to what `analysis/golden_runs.rs` reads: six rounds, four digits, no times of day.

    larder export latest:EXPERIMENT | python3 make_runs.py golden/runs

Only the machine's fields that an analysis reads are kept, so that the files name no machine.
"""

import json
import sys
from pathlib import Path

ROUNDS = 6
KEPT_FIELDS = ("build.opt_level", "cache.l1d", "cache.l2", "cache.l3", "thp.enabled")
KEPT_MEASURES = ("proc.max_rss_bytes", "proc.minor_faults")


def digits(number):
    return float(f"{number:.4g}")


def thin(run):
    cells = {}
    for sample in run["samples"]:
        if sample["round"] >= ROUNDS:
            continue
        key = json.dumps([sample["group"], sample["cell"]], sort_keys=True)
        cell = cells.setdefault(key, {"group": sample["group"], "cell": sample["cell"], "measures": {}})
        for name, value in sample["measures"].items():
            if name.startswith("proc.") and name not in KEPT_MEASURES:
                continue
            values = cell["measures"].setdefault(name, [])
            values += [None] * (sample["round"] - len(values))
            values.append(digits(value))
    for cell in cells.values():
        for name in [n for n in KEPT_MEASURES if n in cell["measures"] and len(cell["measures"]) > len(KEPT_MEASURES)]:
            del cell["measures"][name]
    fields = run["machine"]["fields"]
    return {
        "experiment": run["experiment"],
        "depth": run["depth"],
        "seed": run["seed"],
        "fields": {name: fields[name] for name in KEPT_FIELDS if name in fields},
        "groups": run["groups"],
        "skipped": run["skipped"],
        "cells": list(cells.values()),
    }


folder = Path(sys.argv[1])
for line in sys.stdin:
    run = json.loads(line).get("run")
    if run:
        thinned = thin(run)
        cells = thinned.pop("cells")
        lines = ",\n".join(json.dumps(cell, separators=(",", ":"), sort_keys=True) for cell in cells)
        head = json.dumps(thinned, separators=(",", ":"), sort_keys=True)
        text = f'{head[:-1]},"cells":[\n{lines}\n]}}\n'
        (folder / f"{run['experiment']}.json").write_text(text)
