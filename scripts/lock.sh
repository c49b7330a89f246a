#!/usr/bin/env bash
# Write requirements.lock: every package of constraints.txt, and what only setup and bundles need, with the hashes of all
# its files, for all platforms. Needs uv (`pip install uv`) and the package index. Run it after a pin has changed.
# scripts/setup.sh installs the sections up to the one it wants; `bundle create` accepts only files with these hashes.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names() { # of the package and its extras $1
    python3 - "$1" <<'END'
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = sys.argv[1].split()
print(*project["dependencies"], *(one for name in extras for one in project["optional-dependencies"][name]), sep="\n")
END
}
compile() {
    uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11.5 \
        --unsafe-package setuptools --constraint constraints.txt --output-file "$2" "$1"
}
names "serve bundle code" > "$work/slim.in"
names "serve bundle code sentence-transformers" > "$work/torch.in"
names "serve bundle code sentence-transformers dev" > "$work/dev.in"
{ cat "$work/dev.in"; names "cluster cluster-test ocr plot"; printf '%s\n' ziglang scikit-build-core cmake ninja; } > "$work/more.in"
for section in slim torch dev more; do compile "$work/$section.in" "$work/$section.txt"; done
python3 - "$work" > "$work/lock" <<'END'
import re, sys
from pathlib import Path
print("# Written by scripts/lock.sh. torch is left out: there is one build for each kind of processor.")
seen = set()
for section in ("slim", "torch", "dev", "more"):
    print(f"# section: {section}")
    for entry in re.split(r"\n(?=\S)", (Path(sys.argv[1]) / f"{section}.txt").read_text().rstrip()):
        name = entry.partition("==")[0]
        if name not in seen and not re.match(r"torch$|triton$|nvidia-|cuda-", name):
            seen.add(name)
            print(entry)
END
mv "$work/lock" requirements.lock
