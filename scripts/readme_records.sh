# shellcheck shell=bash
# For scripts that try a command in a folder of its own (check_static.sh, check_windows.sh): source this file.
#
#   record_files FOLDER        # the model that ships, and what the records are made of
#   check_records COMMAND ...  # COMMAND prefix of `pawl`, run in or at the folder: the records of quickstart.sh and of the README
#   check_health LISTENING     # the file that `pawl serve` writes to: /health answers
record_files() {
  mkdir -p "$1/models"
  cp -r models/tiny-extract "$1/models/"
  cp examples/invoice.txt schemas/examples/invoice.json "$1/"
  echo '{"type":"object","properties":{"name":{"type":"string"},"phone":{"type":["string","null"]},"city":{"enum":["Leeds","Porto",null]}},"required":["name","phone","city"],"additionalProperties":false}' >"$1/person.json"
}

expect_record() {  # what is to be printed, command
  local printed
  printed=$("${@:2}" | tr -d '\r')
  if [[ $printed != "$1" ]]; then
    printf '%s printed:\n%s\nand not:\n%s\n' "${*:2}" "$printed" "$1" >&2
    return 1
  fi
  echo "$printed"
}

check_records() {
  expect_record '{"invoice_number":"INV-2041","vendor":"Northwind Traders","customer":"Alder & Sons","invoice_date":"2025-03-03","due_date":"2025-04-02","total":1240.50,"currency":"EUR","items":[]}' \
    "$@" extract --schema invoice.json --file invoice.txt &&
    expect_record '{"name":"Ann Lee","phone":"020 7946 0018","city":"Porto"}' \
      "$@" extract --schema person.json --text "Ann Lee lives in Porto. Phone: 020 7946 0018."
}

check_health() {
  local address
  for _ in {1..300}; do
    [[ ! -s $1 ]] || break
    sleep 0.2
  done
  address=$(sed -n 's/^listening on \([^[:space:]]*\).*/\1/p' "$1")
  if [[ $(curl -s -o /dev/null -w '%{http_code}' "$address/health") != 200 ]]; then
    echo "no /health at '$address'" >&2
    return 1
  fi
  echo "$address/health: 200"
}
