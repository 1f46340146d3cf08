#!/usr/bin/env bash
# From a fresh clone to a record out of a text: installs what is missing, builds the command, runs it on a sample with
# the model that ships. The second time it is done in seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  -h | --help) sed -n '2,3s/^# \{0,1\}//p' scripts/quickstart.sh; exit 0 ;;
esac
scripts/install_deps.sh
if [[ ! -x build/pawl ]]; then echo "Building (a few minutes the first time) ..."; fi
if ! PAWL_PROGRESS=20 scripts/build.sh release pawl; then
  echo "quickstart.sh: the build failed (see above)" >&2
  exit 1
fi

schema=schemas/examples/invoice.json
echo
echo "The text (examples/invoice.txt):"
sed 's/^/    /' examples/invoice.txt
echo "\$ build/pawl extract --schema $schema --file examples/invoice.txt"
build/pawl extract --schema "$schema" --file examples/invoice.txt
cat <<'END'

Try next:
    build/pawl extract --schema schemas/examples/contact.json --text "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018."
    build/pawl generate --prompt "A colour: " --choice red --choice green --choice blue --temperature 1
END
