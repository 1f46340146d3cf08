#!/usr/bin/env bash
# Processor time of two builds for the same work, in turn; exit code 1 when the new one is slower. compare_builds.py explains.
#
#   scripts/compare_builds.sh OLD NEW [--rounds 7] [--data DIR]
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/compare_builds.py" "$@"
