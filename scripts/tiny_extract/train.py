"""Trains the tiny extraction model, on a CPU or a CUDA device, on examples made while it trains.

    python train.py --run RUN_FOLDER --until 11:40 --decay-minutes 15 [--resume | --start models/tiny-extract]
    python train.py --run RUN_FOLDER --steps 6000 [--resume | --start models/tiny-extract]
    python train.py --run RUN_FOLDER --seconds 150 --device cuda --batch-tokens 30720 --workers 12 [--start models/tiny-extract]

The learning rate is constant after a short warm-up and falls linearly to zero: in the last minutes before the deadline, or in
the last half of the steps or seconds. Steps suit a machine that trains only while nothing else runs: `--resume` goes on with their count.
A moving average of the weights is kept next to them: it is what `export.py` takes for a release before the decay.
Matrices are trained with Muon (momentum made orthogonal by Newton-Schulz iterations), the embedding and the norms with Adam.
"""

import argparse
import datetime
import itertools
import json
import math
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from queue import Full

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
import torch._dynamo
import torch._inductor.config
import torch.distributed
import torch.nn.functional as F

from model import Config, TinyLlama, attend_fused, config_dict, load_hf_folder, take_weights

TOKENS = 3840                                        # the least per step; every bucket length divides it, so shapes stay fixed
LENGTHS = [64, 96, 128, 160, 192, 240, 320, 480, 640, 768, 960]

SHORT_STEPS = 500                                    # first short texts only: copying is found sooner there
LONG_SHARE = 1.0                                     # of the sequences above 320 tokens this share is kept
OUTPUTS = [1, 1, 2, 2, 3]                            # texts under one schema


def causal_examples(rng, encode):
    import gen

    ids, mask, places, parts = gen.sequence(rng, rng.choice(OUTPUTS), encode)
    yield ids, ids, mask, places, parts


def produce(queue, vocabulary, seed, start_batch, batch_tokens, diffusion):
    """Fills the queue with (inputs, ids, weights, positions, parts) batches of one length each. Runs in a process of its own."""
    import canvas
    import gen
    from tokenizers import Tokenizer
    from vocabulary import encoder

    encode = encoder(Tokenizer.from_file(vocabulary))
    parent = os.getppid()
    rng = random.Random(f"{seed}/{start_batch}")
    buckets = {length: [] for length in LENGTHS}
    made = start_batch
    endless = (example for _ in itertools.count() for example in (canvas.canvases if diffusion else causal_examples)(rng, encode))
    for example in endless:
        length = next((n for n in LENGTHS if n >= len(example[0]) - 1), None)
        if length is None or (made < SHORT_STEPS and length > 192) or (length > 320 and rng.random() > LONG_SHARE):
            continue
        buckets[length].append(example)
        rows = batch_tokens // length
        if len(buckets[length]) == rows:
            batch = [np.full((rows, length + 1), fill, dtype=kind)
                     for fill, kind in ((gen.PAD, np.int16), (gen.PAD, np.int16), (0, np.float16), (0, np.int16), (-1, np.int16))]
            for row, example in enumerate(buckets[length]):
                for array, values in zip(batch, example):
                    array[row, :len(values)] = values
            buckets[length] = []
            while os.getppid() == parent:
                try:
                    queue.put(batch, timeout=5)
                    break
                except Full:
                    pass
            else:
                return
            made += 1


@torch.no_grad()
def orthogonal(stack):
    """Newton-Schulz iteration: the nearest (roughly) orthogonal matrix of every matrix in the stack."""
    x = stack.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return (x.mT if tall else x).float()


def agreed(left: float) -> float:
    """What is left as process 0 sees it, so that all processes use the same learning rate."""
    value = torch.tensor([left], dtype=torch.float64)
    torch.distributed.broadcast(value, 0)
    return value.item()


def free_threads(most: int) -> int:
    """How many threads to use for the next step: a core that somebody else is using makes two threads slower than one."""
    if most == 1:
        return 1
    runnable = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])
    return most if runnable <= 1 else 1


class Schedule:
    """What is left of a run, by the clock or by steps, in units of the time in which the rate falls to zero."""

    def __init__(self, options, first):
        self.last, self.decay = None, 60 * options.decay_minutes
        if options.steps:
            self.last, self.decay = first + options.steps, options.steps / 2
            return
        if options.seconds:
            self.deadline, self.decay = time.time() + options.seconds, options.seconds / 2
            return
        now = datetime.datetime.now()
        hour, minute = map(int, options.until.split(":"))
        self.deadline = now.replace(hour=hour, minute=minute, second=0).timestamp()
        self.deadline += 86400 * (self.deadline < now.timestamp())

    def left(self, step):
        return (self.deadline - time.time() if self.last is None else self.last - step) / self.decay


class Muon:
    """Orthogonalised momentum for all block matrices, batched by shape."""

    def __init__(self, model, momentum=0.95):
        width = model.config.width
        self.views = {}
        for block in model.blocks:
            for parameter in (block.qkv, block.out, block.gate_up, block.down):
                rows = {block.qkv.shape: width, block.gate_up.shape: model.config.inner}.get(parameter.shape, parameter.shape[0])
                self.views.setdefault((rows, parameter.shape[1]), []).append(parameter)
        self.momentum = momentum
        self.state = {shape: torch.zeros(sum(p.shape[0] // shape[0] for p in ps), *shape) for shape, ps in self.views.items()}

    @torch.no_grad()
    def step(self, rate, decay=0.01):
        for (rows, columns), parameters in self.views.items():
            gradient = torch.cat([p.grad.view(-1, rows, columns) for p in parameters])
            state = self.state[rows, columns]
            state.lerp_(gradient, 1 - self.momentum)
            update = orthogonal(gradient.lerp(state, self.momentum)) * max(1, rows / columns) ** 0.5
            place = 0
            for p in parameters:
                count = p.shape[0] // rows
                p.mul_(1 - rate * decay).add_(update[place:place + count].reshape(p.shape), alpha=-rate)
                place += count


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--until", help="HH:MM, local time, today or tomorrow; training ends then")
    end.add_argument("--steps", type=int, help="training ends after so many steps, with those of earlier pieces of the run")
    end.add_argument("--seconds", type=float, help="training ends after so many seconds")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: without the compiler, which takes longer there than a short run saves")
    parser.add_argument("--batch-tokens", type=int, default=TOKENS, help=f"tokens a step of one process; a multiple of {TOKENS}")
    parser.add_argument("--workers", type=int, default=1, help="processes that make examples")
    parser.add_argument("--decay-minutes", type=float, default=15)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--start", help="begin with the weights of this exported folder; --layers may be more than it has")
    parser.add_argument("--diffusion", action="store_true", help="train a model that sees both sides to fill masks (canvas.py)")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=0.003)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0, help="number of this process when several train together")
    parser.add_argument("--ranks", type=int, default=1, help="processes that train together; each makes its own examples")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--inner", type=int, default=384)
    return parser.parse_args()


def make_model(options, folder):
    """The model, its two optimizers, and the parameters of the second: the embedding and the norms."""
    if options.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder.absolute()}/meeting", rank=options.rank, world_size=options.ranks)
    torch.manual_seed(options.seed)
    model = TinyLlama(Config(options.width, options.layers, options.heads, options.inner))
    model.dtype_inside = torch.bfloat16
    model.both_sides = options.diffusion
    if options.device == "cpu":
        model.compile_parts()
    elif options.diffusion:
        model.attend = attend_fused
    muon = Muon(model)
    others = [model.embed, model.norm] + [p for b in model.blocks for p in (b.input_layernorm, b.post_attention_layernorm)]
    adam = torch.optim.AdamW(others, lr=options.adam_rate, betas=(0.9, 0.95), weight_decay=0.0)
    return model, muon, adam, others


def restore(options, checkpoint, model, muon, adam):
    """The average of the weights, the steps, tokens, scored tokens and seconds so far, and the step the run began with."""
    counts = ("step", "tokens", "scored", "spent")
    if options.resume and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=False, map_location=options.device)
        model.load_state_dict(saved["model"])
        muon.state = saved["muon"]
        adam.load_state_dict(saved["adam"])
        return saved["average"], [saved[name] for name in counts], saved.get("first", saved["step"])
    past = {}
    if options.start:
        take_weights(model, load_hf_folder(options.start))
        past = json.loads((Path(options.start) / "training.json").read_text())
    average = {name: p.detach().clone() for name, p in model.named_parameters()}
    return average, [past[name] if past else 0 for name in counts], past.get("step", 0)


def tensors_of(inputs, ids, mask, places, parts, device):
    """Inputs, places and parts of a batch, and of its scored tokens where they are, their weights and targets, on the device."""
    inputs, ids = inputs.astype(np.int64), ids.astype(np.int64)
    weights = mask[:, 1:].astype(np.float32).reshape(-1)
    chosen = weights.nonzero()[0]
    arrays = (inputs[:, :-1], places[:, :-1].astype(np.int64), parts[:, :-1].astype(np.int64), chosen, weights[chosen], ids[:, 1:].reshape(-1)[chosen])
    return [torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays]


def share_gradients(model, ranks, stop):
    """Averages the gradients over the processes. False: one of them stops, and so do all."""
    flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()] + [torch.tensor([float(stop)])])
    torch.distributed.all_reduce(flat)
    if flat[-1] > 0:
        return False
    place = 0
    for p in model.parameters():
        p.grad.copy_(flat[place:place + p.numel()].view_as(p)).div_(ranks)
        place += p.numel()
    return True


def start_workers(context, folder, seed, step, options):
    queue = context.Queue(maxsize=24)
    processes = []
    for worker in range(options.workers):
        own = seed if worker == 0 else f"{seed}/{worker}"
        process = context.Process(target=produce, args=(queue, str(folder / "tokenizer.json"), own, step, options.batch_tokens, options.diffusion), daemon=True)
        process.start()
        processes.append(process)
    return processes, queue


def main():
    options = read_options()
    if options.batch_tokens % TOKENS:
        sys.exit(f"--batch-tokens {options.batch_tokens} is no multiple of {TOKENS}")
    torch.set_num_threads(options.threads)
    torch.set_default_device(options.device)
    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.recompile_limit = 64
    torch._inductor.config.cpp.dynamic_threads = True
    folder = Path(options.run)
    folder.mkdir(parents=True, exist_ok=True)
    model, muon, adam, others = make_model(options, folder)
    checkpoint = folder / "checkpoint.pt"
    average, (step, tokens, scored, spent), first = restore(options, checkpoint, model, muon, adam)
    schedule, piece = Schedule(options, first), step

    context = multiprocessing.get_context("spawn")

    def begin():
        return start_workers(context, folder, options.seed + 1000 * options.rank, step, options)

    (workers, queue), renew = begin(), []

    def save():
        if options.rank:
            return
        torch.save({"model": model.state_dict(), "muon": muon.state, "average": average, "adam": adam.state_dict(), "step": step,
                    "tokens": tokens, "scored": scored, "spent": spent, "first": first, "config": config_dict(model.config), "diffusion": options.diffusion, "seed": options.seed}, folder / "checkpoint.tmp")
        os.replace(folder / "checkpoint.tmp", checkpoint)

    log = open(folder / "log.jsonl", "a", buffering=1)
    began, last_save, loss_sum, hits, count, window = time.time(), time.time(), 0.0, 0, 0, time.time()
    spent_before, wait, doubles = spent, 0.0, 0
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    signal.signal(signal.SIGUSR1, lambda *_: renew.append(True))     # read the generator anew
    while True:
        left = schedule.left(step)
        if options.ranks == 1 and (left <= 0 or stopped):
            break
        if renew:
            renew.clear()
            for worker in workers:
                worker.terminate()
            workers, queue = begin()
        if options.threads > 1:
            threads = free_threads(options.threads)
            doubles += threads > 1
            torch.set_num_threads(threads)
        before = time.time()
        batch = queue.get()
        wait += time.time() - before
        inputs, places, parts, chosen, weights, target = tensors_of(*batch, options.device)
        logits = model.logits(model.hidden(inputs, chosen, places, parts))
        losses = F.cross_entropy(logits, target, reduction="none")
        (losses @ weights / weights.sum()).backward()
        if options.ranks > 1:
            if not share_gradients(model, options.ranks, bool(stopped or left <= 0)):
                break
            left = agreed(left)
        scale = min(1.0, (step - piece + 1) / 60) * min(1.0, left)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        muon.step(options.rate * scale)
        for group in adam.param_groups:
            group["lr"] = options.adam_rate * scale
        adam.step()
        for p in model.parameters():
            p.grad = None
        step, tokens, scored = step + 1, tokens + options.ranks * inputs.numel(), scored + options.ranks * len(chosen)
        with torch.no_grad():
            keep = min(0.995, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(average.values()), [p for _, p in model.named_parameters()], 1 - keep)
            loss_sum = loss_sum + losses.sum()           # on the device: nothing waits for it
            hits = hits + (logits.argmax(-1) == target).sum()
            count += len(chosen)
        if options.ranks > 1 and step % 100 == 0:
            for p in model.parameters():        # rounding must not let the copies drift apart
                torch.distributed.broadcast(p.detach(), 0)
        if step % 50 == 0 and options.rank:
            loss_sum, hits, count = 0.0, 0, 0
        elif step % 50 == 0:
            spent = spent_before + time.time() - began
            log.write(json.dumps({"step": step, "tokens": tokens, "scored": scored, "loss": round(float(loss_sum) / count, 4), "byte_accuracy": round(float(hits) / count, 4),
                                  "tokens_per_s": round(50 * options.ranks * options.batch_tokens / (time.time() - window)), "wait": round(wait, 1), "two_threads": doubles, "scale": round(scale, 3),
                                  "time": time.strftime("%H:%M:%S")}) + "\n")
            loss_sum, hits, count, window, wait, doubles = 0.0, 0, 0, time.time(), 0.0, 0
        if time.time() - last_save > 300:
            spent = spent_before + time.time() - began
            save()
            last_save = time.time()
    spent = spent_before + time.time() - began
    save()
    for worker in workers:
        worker.kill()


if __name__ == "__main__":
    main()
