"""plugin_results.py FILE DAY COMMIT: puts rows of results into the first table of a Markdown file.

The rows come on stdin, `| host | what ran | result |`; DAY and COMMIT are added to each. Rows of the same hosts that the table
has already go; those of other hosts, and all text around the table, stay. Hosts keep their place in the table. A file that is
not there is begun.
"""

import sys

HEAD = ["| host | what ran | result | on | at |", "|---|---|---|---|---|"]


def host_of(row):
    return row.split("|")[1].strip()


def merged(text, rows, day, commit):
    lines = text.splitlines() or ["# Plugins with their hosts", "", *HEAD]
    if HEAD[0] not in lines:
        raise SystemExit(f"plugin_results.py: the file has no table that begins with {HEAD[0]}")
    begin = lines.index(HEAD[0]) + len(HEAD)
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    table = lines[begin:end]
    fresh = {}
    for row in rows:
        fresh.setdefault(host_of(row), []).append(f"{row.rstrip()} {day} | {commit} |")
    out = []
    for row in table:
        host = host_of(row)
        if host not in fresh:
            out.append(row)
        elif fresh[host] is not None:
            out += fresh[host]
            fresh[host] = None
    for made in fresh.values():
        out += made or []
    return "\n".join(lines[:begin] + out + lines[end:]) + "\n"


def main():
    path, day, commit = sys.argv[1:]
    try:
        with open(path) as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    rows = [line for line in sys.stdin.read().splitlines() if line.startswith("|")]
    with open(path, "w") as file:
        file.write(merged(text, rows, day, commit))


if __name__ == "__main__":
    main()
