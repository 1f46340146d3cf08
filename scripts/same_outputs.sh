#!/usr/bin/env bash
# What users get through every door, and one hash of it; --compare tells what differs. scripts/same_outputs.py explains.
#
#   scripts/same_outputs.sh [BUILD_DIR] [--out FOLDER]
#   scripts/same_outputs.sh --compare OLD_FOLDER NEW_FOLDER
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/same_outputs.py" "$@"
