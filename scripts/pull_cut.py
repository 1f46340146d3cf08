#!/usr/bin/env python3
"""`pawl pull` of a large file whose connection is cut again and again, on the loopback with TLS.

    scripts/pull_cut.py [--command build/pawl] [--bytes 1000000000] [--cuts 5] [--out FILE]

The file must be whole at the end, no byte but those behind a cut may be sent twice, and nothing that is not whole may have
the file's name in between. The output is JSON. Exit status 1: a condition does not hold. Needs openssl and curl.
"""

import argparse
import functools
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))
import loopback_hub  # noqa: E402
from loopback_hub import Hub, certificate, cut  # noqa: E402

# The hub names its files by their checksums in every answer: a gigabyte is read once.
loopback_hub.sha256 = functools.cache(loopback_hub.sha256)
loopback_hub.git_sha1 = functools.cache(loopback_hub.git_sha1)

FILE = "model-Q8_0.gguf"


def named(cache):
    """Bytes of what has the file's name, or None."""
    for folder, _, names in os.walk(cache):
        if FILE in names:
            return os.path.getsize(os.path.join(folder, FILE))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=str(ROOT / "build/pawl"))
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--out")
    args = parser.parse_args()
    generator = random.Random(1)
    data = b"".join(generator.randbytes(1 << 20) for _ in range(args.bytes // (1 << 20) + 1))[: args.bytes]
    places = sorted(generator.randrange(1, args.bytes) for _ in range(args.cuts))
    sent = [b - a for a, b in zip([0, *places], places)]
    seen = []
    with tempfile.TemporaryDirectory() as folder, Hub({"org/name": {FILE: data}}, tls=certificate(folder)) as hub:
        cache = os.path.join(folder, "cache")
        os.mkdir(cache)
        hub.spoil(FILE, *[cut(count) for count in sent])
        begin = time.monotonic()
        pull = subprocess.Popen([args.command, "pull", "org/name:Q8_0"], env=hub.environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stop = threading.Event()

        def watch():
            while not stop.wait(0.02):
                size = named(cache)
                if size is not None and (not seen or seen[-1] != size):
                    seen.append(size)

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, errors = pull.communicate()
        stop.set()
        watcher.join()
        seconds = time.monotonic() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = pull.returncode == 0 and hashlib.sha256(Path(out.strip()).read_bytes()).digest() == hashlib.sha256(data).digest()
        ranges = hub.ranges(FILE)
    starts = [int(text[len("bytes="):].split("-")[0]) if text else 0 for text in ranges]
    report = {
        "bytes": args.bytes, "cuts": places, "requests": ranges, "exit": pull.returncode, "stderr": errors, "whole": whole,
        "sizes_under_the_name": seen, "seconds": round(seconds, 1), "processor_s": round(usage.ru_utime + usage.ru_stime, 1),
    }
    # Curl may not have read all that was sent before a cut.
    report["sent_again"] = sum(max(0, place - start) for place, start in zip(places, starts[1:]))
    text = json.dumps(report, indent=1)
    print(text)
    if args.out:
        Path(args.out).write_text(text + "\n")
    good = whole and len(starts) == args.cuts + 1 and set(seen) <= {args.bytes} and report["sent_again"] < 1 << 20
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
