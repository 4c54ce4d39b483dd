# SPDX-License-Identifier: Apache-2.0
"""Compares a program's own CUDA graph with its rewritten form, in one process.

The program runs under libheddle_preload.so with HEDDLE_OPT set and launches its
graph until the rewriter has settled. Then, with inputs that change every time
and from the same memory, the graph runs twice in its own form (is the program
repeatable at all?) and once rewritten, and what it leaves is compared bit for
bit; both forms are timed in turn, between two events.
"""

import ctypes
import json
import os
import statistics


class Forms:
    """heddle_measure_own_graphs() of the preload library."""

    def __init__(self):
        try:
            self._own = ctypes.CDLL(None).heddle_measure_own_graphs
        except AttributeError:
            # Without the library both forms are the program's own: the control.
            self._own = lambda own: -1
            return
        self._own.argtypes = [ctypes.c_int]
        self._own.restype = ctypes.c_int

    def own(self):
        return self._own(1)

    def rewritten(self):
        return self._own(0)


def add_arguments(parser):
    parser.add_argument("--compare-graphs", type=int, default=0, metavar="N",
                        help="N replays in both forms with changed inputs, "
                        "compared and timed; needs libheddle_preload.so and "
                        "HEDDLE_OPT")


def spread(values):
    """Half the range of the middle half, relative to the median."""
    values = sorted(values)
    quarter = len(values) // 4
    return ((values[-1 - quarter] - values[quarter]) / 2
            / statistics.median(values))


def compare(change_inputs, launch, state, wait, measure, count, settle=8):
    """Returns a dictionary that JSON can hold.

    change_inputs(i) sets the inputs of replay i; launch() replays the graph;
    state() lists the tensors that it reads and writes; wait() waits for the
    device; measure(f) returns the microseconds of f() on the device.
    """
    forms = Forms()
    for i in range(settle):
        change_inputs(i)
        launch()
        wait()
    rewritten = forms.rewritten()
    tensors = state()
    mismatches = unrepeatable = 0

    def run(saved):
        for tensor, value in zip(tensors, saved):
            tensor.copy_(value)
        wait()
        launch()
        wait()
        return [tensor.clone() for tensor in tensors]

    def differing(a, b):
        """Positions of the tensors that differ. Bytes are compared, so that NaN
        equals itself and -0 does not equal 0."""
        return [k for k, (x, y) in enumerate(zip(a, b))
                if not bool((x.contiguous().view(-1).view(torch.uint8) ==
                             y.contiguous().view(-1).view(torch.uint8)).all())]

    import torch  # the caller has it
    differences = []
    for i in range(count):
        change_inputs(settle + i)
        wait()
        saved = [tensor.clone() for tensor in tensors]
        forms.own()
        first = run(saved)
        second = run(saved)
        forms.rewritten()
        third = run(saved)
        own, other = differing(first, second), differing(first, third)
        if own:
            unrepeatable += 1
            differences.append({"replay": i, "form": "own", "tensors": own})
        elif other:
            mismatches += 1
            differences.append({"replay": i, "form": "rewritten",
                                "tensors": other})
    own_us, rewritten_us = [], []
    change_inputs(0)
    wait()
    saved = [tensor.clone() for tensor in tensors]

    def restore():
        for tensor, value in zip(tensors, saved):
            tensor.copy_(value)
        wait()

    for _ in range(max(count, 20)):
        forms.own()
        restore()
        own_us.append(measure(launch))
        forms.rewritten()
        restore()
        rewritten_us.append(measure(launch))
    baseline = statistics.median(own_us)
    value = statistics.median(rewritten_us)
    ratios = [a / b for a, b in zip(own_us, rewritten_us)]
    return {"graphs_rewritten": rewritten, "baseline_us": baseline,
            "value_us": value, "ratio": baseline / value,
            "spread": spread(ratios), "replays": count,
            "mismatches": mismatches, "unrepeatable": unrepeatable,
            "bit_identical": mismatches == 0,
            "serial_repeatable": unrepeatable == 0,
            "differences": differences,
            "reports": reports()}


def reports():
    """What the rewriter says of each graph (HEDDLE_REPORT), if anything."""
    path = os.environ.get("HEDDLE_REPORT", "").replace("%p", str(os.getpid()))
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
