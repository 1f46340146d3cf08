"""The texts that the tiny code model learns from: sources of packages under permissive licences.

    python corpus.py --out RUN_FOLDER [--packages FOLDER]

Source distributions are fetched with pip, which also checks them; TypeScript and Python files are taken out of them. Files that are generated,
minified or very long are left out. One file in sixteen, chosen by a hash of its name, is held back.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path

# Name, version, licence. All are under the three-clause BSD licence.
PACKAGES = [("jupyterlab", "4.6.6", "BSD-3-Clause"), ("bokeh", "3.9.2", "BSD-3-Clause"), ("nbdime", "4.0.4", "BSD-3-Clause")]
LONGEST = 60_000


def fetch(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    for name, version, _ in PACKAGES:
        if not list(folder.glob(f"{name}-{version}.tar.gz")):
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, "--dest", str(folder),
                            f"{name}=={version}"], check=True)


def wanted(path: str) -> str | None:
    if "node_modules" in path or "/static/" in path or "schema" in path:
        return None
    if path.endswith((".ts", ".tsx")) and not path.endswith(".d.ts"):
        return "typescript"
    return "python" if path.endswith(".py") else None


def files(folder: Path):
    """(language, name, text) of every file, in a fixed order."""
    for name, version, _ in PACKAGES:
        with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
            for member in sorted(archive.getmembers(), key=lambda m: m.name):
                language = wanted(member.name) if member.isfile() else None
                if language is None or not 200 <= member.size <= LONGEST:
                    continue
                text = archive.extractfile(member).read().decode("utf-8", "replace").replace("\r\n", "\n")
                if max(map(len, text.splitlines()), default=0) <= 400:
                    yield language, member.name, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--packages", help="where the archives are kept (default: RUN_FOLDER/packages)")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    packages = Path(options.packages or out / "packages")
    fetch(packages)
    seen, sums = set(), {}
    with open(out / "train.jsonl", "w") as train, open(out / "held.jsonl", "w") as held:
        for language, name, text in files(packages):
            digest = hashlib.sha256(text.encode()).hexdigest()
            if digest in seen:
                continue
            seen.add(digest)
            back = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 16 == 0
            (held if back else train).write(json.dumps({"language": language, "name": name, "text": text}) + "\n")
            key = f"{language} {'held back' if back else 'trained on'}"
            count, size = sums.get(key, (0, 0))
            sums[key] = (count + 1, size + len(text))
    for key, (count, size) in sorted(sums.items()):
        print(f"{key}: {count} files, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
