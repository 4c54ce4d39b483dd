#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding with a Llama of random weights, in Hugging Face transformers.

The weights are random, so nothing is downloaded and the text means nothing;
shapes, kernels and launches are those of the real model. Every step feeds the
token that the step before chose, at the next position of a static key/value
cache. The program prints a SHA-256 digest of the logits of every step, so two
runs can be compared bit by bit.

Modes:
  eager          one kernel after the other, as PyTorch launches them
  graph          the step captured once as a CUDA graph, then replayed
  compile        torch.compile, launched one after the other
  compile-graph  torch.compile, then captured as a CUDA graph
  prefill-graph  the pass over the whole prompt, captured as a CUDA graph

Examples:
  llama.py --model 1b --mode graph --steps 32
  llama.py --model 8b --mode eager --batch 4 --json result.json
  llama.py --model 1b --interleave 30            (what recording costs)
  llama.py --model tiny --device cpu --steps 4       (a check without a GPU)
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import statistics
import sys
import time

# Must be set before CUDA starts: cuBLAS is repeatable only with this.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import graph_forms
import interleave

SHAPES = {
    # Small enough for a CPU.
    "tiny": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=2,
                 num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                 vocab_size=512, tie_word_embeddings=True),
    # Llama-3.2-1B and Llama-3-8B.
    "1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
               num_attention_heads=32, num_key_value_heads=8, head_dim=64,
               vocab_size=128256, tie_word_embeddings=True),
    "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, head_dim=128,
               vocab_size=128256, tie_word_embeddings=False),
}

WARMUP_STEPS = 3

ATTENTION = ["default", "cudnn", "flash", "efficient", "math"]


def attention(name):
    """A context in which PyTorch uses the attention kernels of that name."""
    if name == "default":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION,
                        "flash": SDPBackend.FLASH_ATTENTION,
                        "efficient": SDPBackend.EFFICIENT_ATTENTION,
                        "math": SDPBackend.MATH}[name])


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SHAPES, default="1b")
    parser.add_argument("--mode", default="eager",
                        choices=["eager", "graph", "compile", "compile-graph",
                                 "prefill-graph"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128, metavar="N",
                        help="tokens of the random prompt [128]")
    parser.add_argument("--steps", type=int, default=16, metavar="N",
                        help="tokens to decode after the prompt [16]")
    parser.add_argument("--cache", type=int, default=512, metavar="N",
                        help="capacity of the key/value cache [512]")
    parser.add_argument("--attention", default="default", choices=ATTENTION,
                        help="which of PyTorch's attention kernels; the "
                        "default may choose one that is not repeatable "
                        "[default]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", metavar="FILE",
                        help="write the result there; - is standard output")
    interleave.add_arguments(parser)
    graph_forms.add_arguments(parser)
    args = parser.parse_args(argv)
    interleave.check_arguments(parser, args)
    for name in ("batch", "prompt", "steps"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if args.interleave:
        args.steps = 1 + args.block_steps
    if args.prompt + args.steps > args.cache:
        parser.error(f"--prompt {args.prompt} and {args.steps} steps do not "
                     f"fit into --cache {args.cache}")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; --device cpu runs without")
    if args.compare_graphs and not args.mode.endswith("graph"):
        parser.error("--compare-graphs needs a mode with a graph")
    if args.device == "cpu" and args.mode.endswith("graph"):
        parser.error(f"--mode {args.mode} needs a CUDA device")
    return args


def make_model(args):
    """A model with random bfloat16 weights, made on the device."""
    shape = SHAPES[args.model]
    # Weights that keep the variance of what flows through them; smaller ones
    # would repeat one token for ever.
    config = LlamaConfig(**shape, max_position_embeddings=4096,
                         initializer_range=shape["hidden_size"] ** -0.5,
                         attn_implementation="sdpa")
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(args.device):
            model = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(default)
    return model, config


def digest(tensor):
    """SHA-256 of a tensor's bytes."""
    flat = tensor.detach().contiguous().view(torch.uint8).cpu()
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()


class Decoder:
    """One decode step over static buffers: token, position, logits, cache."""

    def __init__(self, model, config, args):
        self.args = args
        self.model = model
        self.cache = StaticCache(config=config, max_cache_len=args.cache)
        device = args.device
        self.token = torch.zeros(args.batch, 1, dtype=torch.long, device=device)
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self.logits = None
        self.graph = None
        self.forward = model
        if args.mode.startswith("compile"):
            self.forward = torch.compile(model.forward, dynamic=False)

    def prefill(self, prompt):
        """Fills the cache with the prompt and chooses the first token."""
        self.cache.reset()
        positions = torch.arange(prompt.shape[1], device=prompt.device)
        out = self.model(prompt, past_key_values=self.cache, use_cache=True,
                         position_ids=positions.expand(prompt.shape),
                         logits_to_keep=1)
        self.token.copy_(out.logits[:, -1:].argmax(-1))
        self.position.fill_(prompt.shape[1])

    def run_prefill(self):
        """The pass over the prompt in the buffer; its last logits."""
        positions = torch.arange(self.prompt.shape[1], device=self.prompt.device)
        for layer in self.cache.layers:
            # The cache counts its length on the device.
            for value in vars(layer).values():
                if torch.is_tensor(value) and value.dtype in (
                        torch.int32, torch.int64):
                    value.zero_()
        out = self.model(self.prompt, past_key_values=self.cache,
                         use_cache=True,
                         position_ids=positions.expand(self.prompt.shape),
                         logits_to_keep=1)
        self.token.copy_(out.logits[:, -1:].argmax(-1))
        return out.logits

    def state(self):
        """Every tensor that a step reads and that changes between steps."""
        tensors = [self.token, self.position, self.logits]
        if self.args.mode == "prefill-graph":
            tensors.append(self.prompt)
        for layer in self.cache.layers:
            tensors += [value for value in vars(layer).values()
                        if torch.is_tensor(value)]
        return tensors

    def run(self):
        """Decodes the token in the buffer; its logits stay in self.logits."""
        out = self.forward(
            self.token, past_key_values=self.cache, use_cache=True,
            position_ids=self.position.expand(self.args.batch, 1))
        logits = out.logits
        # The choice and the move to the next position are part of the step, so
        # a replayed graph continues by itself.
        self.token.copy_(logits[:, -1:].argmax(-1))
        self.position.add_(1)
        return logits

    def step(self):
        if self.graph is None:
            self.logits = self.run()
        else:
            self.graph.replay()

    def prepare(self, prompt):
        """Warms up, and captures the step if the mode asks for it."""
        self.prefill(prompt)
        self.prompt = prompt.clone()
        run = (self.run_prefill if self.args.mode == "prefill-graph"
               else self.run)
        if not self.args.mode.endswith("graph"):
            for _ in range(WARMUP_STEPS):
                self.run()
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.logits = run()
        self.graph = graph


class Timer:
    """Microseconds of a step: on the device by events, else by the clock."""

    def __init__(self, device):
        self.cuda = device == "cuda"
        if self.cuda:
            self.start_event = torch.cuda.Event(enable_timing=True)
            self.stop_event = torch.cuda.Event(enable_timing=True)

    def measure(self, function):
        if not self.cuda:
            start = time.perf_counter()
            function()
            return (time.perf_counter() - start) * 1e6
        self.start_event.record()
        function()
        self.stop_event.record()
        self.stop_event.synchronize()
        return self.start_event.elapsed_time(self.stop_event) * 1e3


@torch.no_grad()
def decode(args):
    torch.manual_seed(args.seed)
    model, config = make_model(args)
    prompt = torch.randint(0, config.vocab_size, (args.batch, args.prompt),
                           device=args.device)
    decoder = Decoder(model, config, args)
    decoder.prepare(prompt)
    decoder.prefill(prompt)
    result = describe(args)
    if args.interleave:
        result.update(compare_modes(args, decoder, prompt))
        return result
    timer = Timer(args.device)
    if args.compare_graphs:
        result.update(compare_graphs(args, decoder, prompt, timer))
        return result
    times, digests, tokens = [], [], []
    for _ in range(args.steps):
        times.append(timer.measure(decoder.step))
        digests.append(digest(decoder.logits))
        tokens.append(decoder.token.flatten().tolist())
    whole = hashlib.sha256("".join(digests).encode()).hexdigest()
    result.update({
        "digest": whole,
        "step_digests": digests,
        "tokens": tokens,
        "median_us": statistics.median(times),
        "step_us": times,
    })
    return result


def describe(args):
    return {
        "program": "pytorch-llama",
        "model": args.model,
        "mode": args.mode,
        "batch": args.batch,
        "attention": args.attention,
        "steps": args.steps,
        "seed": args.seed,
        "device": (torch.cuda.get_device_name() if args.device == "cuda"
                   else "cpu"),
        "versions": {"torch": torch.__version__,
                     "transformers": transformers.__version__},
    }


def compare_modes(args, decoder, prompt):
    """--interleave: each block decodes the same tokens after the prompt."""

    def wait():
        if args.device == "cuda":
            torch.cuda.synchronize()

    def begin():
        decoder.prefill(prompt)
        wait()

    def step():
        decoder.step()
        wait()

    def outputs():
        return [digest(decoder.logits), decoder.token.flatten().tolist()]

    compared = interleave.interleave(begin, step, outputs, args.interleave,
                                     args.block_steps)
    last_digest, last_token = outputs()
    return {"digest": last_digest, "tokens": [last_token],
            "median_us": compared["modes"][compared["baseline"]]["median_us"],
            "interleave": compared}


def compare_graphs(args, decoder, prompt, timer):
    """--compare-graphs: another token, or prompt, for every replay."""
    generator = torch.Generator(device=args.device)
    size = prompt.shape[1]

    def change_inputs(i):
        generator.manual_seed(args.seed + 1000 + i)
        tokens = torch.randint(0, decoder.model.config.vocab_size,
                               prompt.shape, generator=generator,
                               device=args.device)
        decoder.token.copy_(tokens[:, :1])
        decoder.prompt.copy_(tokens)
        decoder.logits.fill_(float("nan"))
        room = max(args.cache - size - 1, 1)
        if args.mode != "prefill-graph":
            decoder.prefill(prompt)
            decoder.token.copy_(tokens[:, :1])
            decoder.position.fill_(size + i % min(room, 8))

    return graph_forms.compare(change_inputs, decoder.graph.replay,
                               decoder.state, torch.cuda.synchronize,
                               timer.measure, args.compare_graphs)


def main(argv):
    args = parse_args(argv)
    with attention(args.attention):
        result = decode(args)
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
    if args.compare_graphs:
        print(f"{result['baseline_us']:.1f} us -> {result['value_us']:.1f} us "
              f"(x{result['ratio']:.3f}), {result['mismatches']} of "
              f"{result['replays']} replays differ, "
              f"{result['unrepeatable']} not repeatable")
        return 0
    first = [step[0] for step in result["tokens"]]
    print(f"tokens of the first sequence: {' '.join(map(str, first))}")
    print(f"digest {result['digest']}")
    print(f"{result['median_us']:.1f} us a step (median of {args.steps})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
