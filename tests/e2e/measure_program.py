#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that launches kernels and switches recording; measure_test.py runs
it under heddle, on the host device or a GPU.

usage: measure_program.py IMAGE SCENARIO

IMAGE is the launch_cost kernel; the fifth parameter of each launch is a number
of its own, so that a trace tells which launches were recorded. Prints one JSON
object.
"""

import ctypes
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] /
                       "benchmarks"))
import interleave

MODES = interleave.MODES


class Device:
    """The few calls of the driver that the scenarios need."""

    def __init__(self, image):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module),
                  pathlib.Path(image).read_bytes())
        self.kernel = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module,
                  b"launch_cost_ten")
        self.memory = self.allocate()
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(self.event), 0)
        pointers = [ctypes.c_uint64(self.memory.value + 256 * i)
                    for i in range(4)]
        self.number = ctypes.c_longlong(0)
        rest = [ctypes.c_int(2), ctypes.c_int(3), ctypes.c_float(4),
                ctypes.c_float(5), ctypes.c_uint(6)]
        self.values = pointers + [self.number] + rest
        self.params = (ctypes.c_void_p * 10)(
            *[ctypes.cast(ctypes.byref(v), ctypes.c_void_p)
              for v in self.values])
        self.launched = 0

    def call(self, name, *args):
        result = getattr(self.cuda, name)(*args)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def allocate(self, size=4096):
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def launch(self):
        """Returns the launch's number, from 1."""
        self.launched += 1
        self.number.value = self.launched
        self.call("cuLaunchKernel", self.kernel, 1, 1, 1, 32, 1, 1, 0,
                  self.stream, self.params, None)
        return self.launched

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


class Measure:
    """heddle_measure(), as it is: the scenarios look at its results."""

    def __init__(self):
        self.function = ctypes.CDLL(None).heddle_measure

    def __call__(self, mode):
        return self.function(MODES.get(mode, mode))


def switching(image):
    """Work and state in every mode, between every two modes."""
    measure = Measure()
    results = {"before_cuda": measure("detached")}
    device = Device(image)
    results["bad_modes"] = [measure(-1), measure(3)]
    blocks = []
    for mode in ("attached", "detached", "writing", "detached", "attached",
                 "writing", "attached", "detached", "detached", "attached"):
        block = {"mode": mode, "result": measure(mode), "numbers": []}
        # State: known in every mode.
        memory = device.allocate(8192)
        for _ in range(3):
            block["numbers"].append(device.launch())
            device.call("cuMemsetD8Async", memory, 1, ctypes.c_size_t(64),
                        device.stream)
            device.call("cuEventRecord", device.event, device.stream)
            device.call("cuStreamWaitEvent", device.stream, device.event, 0)
        device.wait()
        device.call("cuMemFree_v2", memory)
        blocks.append(block)
    return results | {"blocks": blocks}


def refused(image):
    """While a step is recorded and while a stream captures."""
    device = Device(image)
    measure = Measure()

    def step():
        for _ in range(10):
            device.launch()
        device.wait()

    step()  # afterwards HEDDLE_STEP=1 begins
    results = {"in_step": measure("detached"), "still": measure("writing")}
    step()
    results["after_step"] = measure("detached")
    results["back"] = measure("attached")
    device.call("cuStreamBeginCapture_v2", device.stream, 1)
    results["in_capture"] = measure("detached")
    device.launch()
    graph = ctypes.c_void_p()
    device.call("cuStreamEndCapture", device.stream, ctypes.byref(graph))
    results["after_capture"] = measure("detached")
    return results | {"launched": device.launched}


def off(image):
    """Nothing is recorded."""
    device = Device(image)
    measure = Measure()
    results = {"results": [measure(mode) for mode in MODES]}
    device.launch()
    device.wait()
    return results


def compared(image):
    """The benchmarks' own way, with a step of 10 launches."""
    device = Device(image)

    def step():
        for _ in range(10):
            device.launch()
        device.wait()

    return interleave.interleave(device.wait, step, lambda: device.number.value
                                 % 10, rounds=12, block_steps=4)


if __name__ == "__main__":
    scenario = {f.__name__: f for f in (switching, refused, off, compared)}
    json.dump(scenario[sys.argv[2]](sys.argv[1]), sys.stdout)
