#!/usr/bin/env bash
# What to run before a commit: format, lint, tests.
#
#   scripts/check.sh          formats are checked everywhere, clang-tidy runs on what differs from the main branch
#   scripts/check.sh --fix    also rewrites badly formatted files
#   scripts/check.sh --all    clang-tidy on every file (minutes)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fix=no
all=no
for arg in "$@"; do
  case "$arg" in
    --fix) fix=yes ;;
    --all) all=yes ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' scripts/check.sh; exit 0 ;;
    *) echo "check.sh: unknown argument '$arg'" >&2; exit 2 ;;
  esac
done
scripts/install_deps.sh --dev

echo "== format"
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh')
if [[ $fix == yes ]]; then clang-format -i "${sources[@]}"; fi
clang-format --dry-run --Werror "${sources[@]}"

echo "== shell scripts"
shellcheck scripts/*.sh .ci/run

echo "== build"
scripts/build.sh release

echo "== clang-tidy"
if [[ $all == yes ]]; then
  mapfile -t changed < <(git ls-files '*.cc')
else
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" -- '*.cc'
                           git ls-files --others --exclude-standard '*.cc'; } | sort -u)
fi
# Only what the build compiles has a command line for clang-tidy.
tidy=()
for file in "${changed[@]}"; do
  if grep -q "/$file\"" build/compile_commands.json; then tidy+=("$file"); fi
done
if [[ ${#tidy[@]} -eq 0 ]]; then
  echo "nothing changed"
else
  printf '%s\n' "${tidy[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy -p build --quiet
fi

echo "== tests"
scripts/test.sh
