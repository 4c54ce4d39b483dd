#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training a small multi-layer perceptron in JAX: one jitted step, many times.

The task is made up (a fixed random network is to be imitated), so nothing is
downloaded. Every step draws a new batch and updates the weights, so an error
anywhere changes every digest after it.

Examples:
  jax_mlp.py --steps 20
  jax_mlp.py --width 1024 --layers 8 --json result.json
  jax_mlp.py --interleave 60                     (what recording costs)
"""

import argparse
import hashlib
import json
import os
import pathlib
import statistics
import sys
import time

# Before JAX starts: the same bits every time (which turns autotuning off, too),
# and memory as it is needed instead of most of the device.
os.environ["XLA_FLAGS"] = " ".join([
    os.environ.get("XLA_FLAGS", ""), "--xla_gpu_deterministic_ops=true"
]).strip()
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import interleave

WARMUP_STEPS = 2


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--json", metavar="FILE",
                        help="write the result there; - is standard output")
    interleave.add_arguments(parser)
    args = parser.parse_args(argv)
    interleave.check_arguments(parser, args)
    for name in ("width", "layers", "batch", "steps"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    try:
        args.jax_device = jax.devices(args.device)[0]
    except RuntimeError as error:
        parser.error(f"JAX finds no {args.device}: {error}")
    return args


def make_network(key, width, layers):
    scale = (2.0 / width) ** 0.5
    keys = jax.random.split(key, layers)
    return [(scale * jax.random.normal(k, (width, width)), jnp.zeros(width))
            for k in keys]


def forward(network, x):
    for weight, bias in network[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = network[-1]
    return x @ weight + bias


def make_step(batch, width):
    """A jitted step: (network, teacher, key) -> the next, and a loss."""

    def loss(network, x, y):
        return jnp.mean((forward(network, x) - y) ** 2)

    @jax.jit
    def step(network, teacher, key):
        key, batch_key = jax.random.split(key)
        x = jax.random.normal(batch_key, (batch, width))
        value, gradients = jax.value_and_grad(loss)(network, x,
                                                    forward(teacher, x))
        network = jax.tree.map(lambda p, g: p - 0.01 * g, network, gradients)
        return network, key, value

    return step


def digest(network):
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(network):
        sha.update(numpy.asarray(leaf).tobytes())
    return sha.hexdigest()


def train(args):
    with jax.default_device(args.jax_device):
        key = jax.random.key(args.seed)
        key, network_key, teacher_key = jax.random.split(key, 3)
        network = make_network(network_key, args.width, args.layers)
        teacher = make_network(teacher_key, args.width, args.layers)
        step = make_step(args.batch, args.width)
        for _ in range(WARMUP_STEPS):
            jax.block_until_ready(step(network, teacher, key))
        if args.interleave:
            return describe(args) | compare_modes(args, step, network, teacher,
                                                  key)
        times, digests, losses = [], [], []
        for _ in range(args.steps):
            start = time.perf_counter()
            network, key, loss = step(network, teacher, key)
            jax.block_until_ready(network)
            times.append((time.perf_counter() - start) * 1e6)
            digests.append(digest(network))
            losses.append(float(loss))
    return describe(args) | {
        "digest": hashlib.sha256("".join(digests).encode()).hexdigest(),
        "step_digests": digests,
        "losses": losses,
        "median_us": statistics.median(times),
        "step_us": times,
    }


def describe(args):
    return {
        "program": "jax-mlp",
        "mode": "jit",
        "width": args.width,
        "layers": args.layers,
        "batch": args.batch,
        "steps": args.steps,
        "seed": args.seed,
        "device": args.jax_device.device_kind,
        "versions": {"jax": jax.__version__},
    }


def compare_modes(args, jitted_step, network, teacher, key):
    """--interleave: each block trains the same network on the same batches."""
    # What a step returns; the start is kept, as the step does not change it.
    state = {}

    def begin():
        state["network"], state["key"] = network, key

    def step():
        state["network"], state["key"], state["loss"] = jitted_step(
            state["network"], teacher, state["key"])
        jax.block_until_ready(state["network"])

    compared = interleave.interleave(begin, step,
                                     lambda: digest(state["network"]),
                                     args.interleave, args.block_steps)
    return {"digest": digest(state["network"]),
            "median_us": compared["modes"][compared["baseline"]]["median_us"],
            "interleave": compared}


def main(argv):
    args = parse_args(argv)
    result = train(args)
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
    print(f"loss {result['losses'][0]:.4f} -> {result['losses'][-1]:.4f}")
    print(f"digest {result['digest']}")
    print(f"{result['median_us']:.1f} us a step (median of {args.steps})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
