#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small simulation in CuPy: many short kernels that depend on each other.

Heat spreads over a square plate and is renormalized after every time step:
elementwise kernels, reductions, a kernel of its own (RawKernel, compiled at run
time) and a matrix product by cuBLAS. The field of a step is the input of the
next, so an error anywhere changes every digest after it.

Examples:
  cupy_chain.py --steps 20
  cupy_chain.py --graph --json result.json
  cupy_chain.py --interleave 60                  (what recording costs)
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import sys

import cupy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import interleave

STENCIL = r"""
extern "C" __global__ void heat_step(const float* in, float* out, int n,
                                     float rate) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  const float center = in[y * n + x];
  const float left = x > 0 ? in[y * n + x - 1] : center;
  const float right = x + 1 < n ? in[y * n + x + 1] : center;
  const float up = y > 0 ? in[(y - 1) * n + x] : center;
  const float down = y + 1 < n ? in[(y + 1) * n + x] : center;
  out[y * n + x] = center + rate * (left + right + up + down - 4.0f * center);
}
"""

WARMUP_STEPS = 2


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, metavar="N",
                        help="cells along a side [256]")
    parser.add_argument("--substeps", type=int, default=20, metavar="N",
                        help="stencil applications a step, even [20]")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--graph", action="store_true",
                        help="capture all but the product as CUDA graphs")
    parser.add_argument("--json", metavar="FILE",
                        help="write the result there; - is standard output")
    interleave.add_arguments(parser)
    args = parser.parse_args(argv)
    interleave.check_arguments(parser, args)
    for name in ("size", "substeps", "steps"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        parser.error(f"CuPy cannot use a CUDA device: {error}")
    if count == 0:
        parser.error("CuPy finds no CUDA device")
    return args


class Plate:
    """The field, and what one step does to it.

    Every array is allocated once, so that a captured step can be replayed.
    """

    def __init__(self, args):
        self.n = args.size
        random = cupy.random.RandomState(args.seed)
        self.field = random.random_sample((self.n, self.n), dtype=cupy.float32)
        # A smoothing matrix: rows that add up to one.
        mixer = random.random_sample((self.n, self.n), dtype=cupy.float32)
        self.mixer = mixer / mixer.sum(axis=1, keepdims=True)
        self.other = cupy.empty_like(self.field)
        self.mixed = cupy.empty_like(self.field)
        self.low = cupy.empty((), dtype=cupy.float32)
        self.span = cupy.empty((), dtype=cupy.float32)
        self.kernel = cupy.RawKernel(STENCIL, "heat_step")
        # An even number of exchanges ends in self.field.
        self.rounds = 2 * ((args.substeps + 1) // 2)

    def spread(self):
        block = (32, 8)
        grid = ((self.n + 31) // 32, (self.n + 7) // 8)
        source, target = self.field, self.other
        for _ in range(self.rounds):
            self.kernel(grid, block, (source, target, cupy.int32(self.n),
                                      cupy.float32(0.2)))
            source, target = target, source

    def mix(self):
        cupy.matmul(self.mixer, self.field, out=self.mixed)

    def stretch(self):
        """Back to [0, 1], and into the field, where the next step begins."""
        cupy.copyto(self.low, self.mixed.min())
        cupy.copyto(self.span, self.mixed.max())
        cupy.subtract(self.span, self.low, out=self.span)
        cupy.subtract(self.mixed, self.low, out=self.mixed)
        cupy.divide(self.mixed, self.span, out=self.mixed)
        cupy.sqrt(self.mixed, out=self.field)


def make_step(plate, stream, use_graph):
    """A function that issues one step."""
    if not use_graph:
        return lambda: (plate.spread(), plate.mix(), plate.stretch())
    # CuPy refuses to capture cuBLAS calls: the product stays between two
    # graphs.
    graphs = []
    for part in (plate.spread, plate.stretch):
        stream.begin_capture()
        part()
        graphs.append(stream.end_capture())
    before, after = graphs
    return lambda: (before.launch(stream), plate.mix(), after.launch(stream))


def digest(array):
    return hashlib.sha256(cupy.asnumpy(array).tobytes()).hexdigest()


def simulate(args):
    stream = cupy.cuda.Stream(non_blocking=True)
    times, digests = [], []
    with stream:
        plate = Plate(args)
        start_field = plate.field.copy()
        warm_up = make_step(plate, stream, use_graph=False)
        for _ in range(WARMUP_STEPS):
            warm_up()
        stream.synchronize()
        step = make_step(plate, stream, args.graph)
        if args.interleave:
            return describe(args) | compare_modes(args, plate, start_field,
                                                  stream, step)
        plate.field[...] = start_field
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(args.steps):
            begin.record(stream)
            step()
            end.record(stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e3)
            digests.append(digest(plate.field))
    return describe(args) | {
        "digest": hashlib.sha256("".join(digests).encode()).hexdigest(),
        "step_digests": digests,
        "median_us": statistics.median(times),
        "step_us": times,
    }


def describe(args):
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "program": "cupy-chain",
        "mode": "graph" if args.graph else "eager",
        "size": args.size,
        "steps": args.steps,
        "seed": args.seed,
        "device": properties["name"].decode(),
        "versions": {"cupy": cupy.__version__},
    }


def compare_modes(args, plate, start_field, stream, step):
    """--interleave: each block begins with the same field."""

    def begin():
        plate.field[...] = start_field
        stream.synchronize()

    def step_and_wait():
        step()
        stream.synchronize()

    compared = interleave.interleave(begin, step_and_wait,
                                     lambda: digest(plate.field),
                                     args.interleave, args.block_steps)
    return {"digest": digest(plate.field),
            "median_us": compared["modes"][compared["baseline"]]["median_us"],
            "interleave": compared}


def main(argv):
    args = parse_args(argv)
    result = simulate(args)
    if args.json:
        text = json.dumps(result, indent=2) + "\n"
        if args.json == "-":
            sys.stdout.write(text)
            return 0
        with open(args.json, "w", encoding="utf-8") as file:
            file.write(text)
    if args.interleave:
        print(interleave.report(result["interleave"]))
        return 0
    print(f"digest {result['digest']}")
    print(f"{result['median_us']:.1f} us a step (median of {args.steps})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
