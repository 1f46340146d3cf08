#!/usr/bin/env bash
# check_exports.sh LIBRARY HEADER: the library shows exactly the functions that the header declares.
set -euo pipefail
shown=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u)
declared=$(grep -v '^ \*\|^/\*' "$2" | grep -o 'pawl_[a-z_]*(' | tr -d '(' | sort -u)
diff <(echo "$declared") <(echo "$shown")
