#!/usr/bin/env python3
"""docs/cli.md: the options of every command, as `--help` has them.

    scripts/cli_page.py --check [BUILD_DIR]    # exit code 1 when the page is not what --help says
    scripts/cli_page.py --write [BUILD_DIR]    # writes the tables of the page

The prose and the examples of the page are written by hand. The tables stand between two marks, which name the command:

    <!-- options: extract -->
    <!-- end -->

Options that several commands share, with the same meaning and default, are described once, in a group of GROUPS. The
table of a command has its other options, and a line names the options of each group that the command takes. The check
also counts: each option of each command has to be on the page, in that command's own section.
"""

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/cli.md"
COLUMN = 30  # where --help begins to describe
# Heading on the page, the command whose help describes the group, and the options.
GROUPS = [
    ("Constraint options", "generate", ["--schema", "--regex", "--choice", "--grammar", "--grammar-language", "--root", "--prepare-steps",
                                        "--structural-tag", "--substring", "--prefix", "--prefix-file", "--suffix", "--suffix-file", "--require"]),
    ("Schema options", "generate", ["--ref-dir", "--ref-base", "--profile", "--annotations", "--whitespace", "--order", "--spelling", "--separators",
                                    "--max-digits", "--max-decimals", "--max-string", "--ascii", "--additional-properties", "--memory-budget"]),
    ("Token options", "generate", ["--seed", "--temperature", "--max-tokens", "--top-k", "--top-p", "--min-p", "--draft-lanes", "--repetition-penalty",
                                   "--presence-penalty", "--frequency-penalty"]),
    ("Model options", "generate", ["--model", "--dtype", "--device", "--kv-dtype", "--kernels", "--threads"]),
    ("Draft options", "generate", ["--draft", "--draft-model", "--draft-text", "--draft-history", "--draft-nodes", "--draft-memory", "--draft-lossy",
                                   "--draft-verify", "--draft-shape"]),
    ("Diffusion options", "generate", ["--schedule", "--threshold", "--factor", "--steps", "--block-length", "--remasking", "--alg", "--alg-temp",
                                       "--eps", "--cfg-scale", "--cache", "--kv-refresh"]),
    ("Chat options", "generate", ["--chat", "--system", "--messages", "--chat-template", "--chat-template-name", "--chat-arg", "--now",
                                  "--trust-messages"]),
    ("Repository options", "complete", ["--repo", "--monitors", "--lsp-server", "--lsp-seconds"]),
]
BLOCK = re.compile(r"(<!-- (options|group): ([a-zA-Z ]+) -->\n)(.*?)(<!-- end -->)", re.S)


def help_text(pawl, command):
    return subprocess.run([pawl, *command, "--help"], capture_output=True, text=True, check=True).stdout


def read_help(pawl):
    """Command to {name: (signature, description)}, for all commands, the program itself under ()."""
    commands, waiting = {}, [()]
    while waiting:
        command = waiting.pop(0)
        options, part, name = {}, "", ""
        for line in help_text(pawl, command).splitlines():
            if line and not line.startswith(" "):
                part, name = line, ""
            elif not line.strip():
                name = ""
            elif part == "Subcommands:":
                if found := re.match(r"  ([a-z][a-z0-9_-]*)\s", line):
                    waiting.append((*command, found[1]))
            elif part.endswith(":") and part != "Example:" and re.match(r"  \S", line):
                # A signature that reaches the column of descriptions has its description on the next line.
                inside = len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " "
                signature, text = (line[:COLUMN], line[COLUMN:]) if inside else (line, "")
                name = re.match(r"\s*(?:-\w,)?(--[a-z][a-z0-9-]*|[a-z]+)", signature)[1]
                options[name] = [" ".join(signature.split()), text.strip()]
            elif name and line.startswith(" " * COLUMN):
                joint = "; " if line.startswith(" " * (COLUMN + 2)) and not options[name][1].endswith(":") else " "
                options[name][1] = (options[name][1] + joint + line.strip()).strip()
        commands[command] = {name: tuple(pair) for name, pair in options.items()}
    return commands


def cells(first, second, third):
    escaped = [cell.replace("|", "\\|") for cell in (first, second, third)]
    return "| " + " | ".join(escaped) + " |"


def table(options):
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for signature, description in options:
        parts = row_parts(signature, description)
        lines.append(cells(*parts))
    return "\n".join(lines) + "\n"


def row_parts(signature, description):
    """The three cells of an option: how it is written, what it does, and its default."""
    notes = []
    if " REQUIRED" in signature:
        notes.append("Required.")
    for word, shown in (("Excludes", "Not together with"), ("Needs", "Only with")):
        if found := re.search(rf" {word}: ((?:--[a-z-]+ ?)+)", signature):
            notes.append(f"{shown} {', '.join(f'`{name}`' for name in found[1].split())}.")
            signature = signature.replace(found[0].rstrip(), "")
    many = bool(re.search(r" \.\.\.(?= |$)", signature))
    signature = re.sub(r" REQUIRED| \.\.\.| x 2", "", signature).strip()
    short, _, signature = signature.rpartition(",") if signature.startswith("-h,") else ("", "", signature)
    name, _, argument = signature.partition(" ")
    default = ""
    if "=" in argument and not argument.endswith("=JSON"):
        argument, _, default = argument.rpartition("=")
    if found := re.fullmatch(r"(\S+?)(?::\w+)? in \[(\S+) - (\S+)\]", argument):
        argument = found[1]
        notes.append(f"From {found[2]} to {found[3]}.")
    argument = re.sub(r"^\S*:\{(.*)\}$", lambda found: found[1].replace(",", "|"), argument)
    shown = f"`{name}{' ' + argument if argument else ''}`" + (" (several)" if many else "") + (f" (`{short}`)" if short else "")
    text = description + ("" if not description or description.endswith((".", "?")) else ".")
    return shown, " ".join([text, *notes]).strip().replace("<", "\\<"), f"`{default}`" if default else ""


def anchor(heading):
    return heading.lower().replace(" ", "-")


def groups_of(commands):
    """Heading to {option: (signature, description)}."""
    return {heading: {name: commands[tuple(source.split())][name] for name in names} for heading, source, names in GROUPS}


def block_of(kind, name, commands, groups):
    """What stands between the marks."""
    if kind == "group":
        return table(groups[name].values())
    options = dict(commands[() if name == "pawl" else tuple(name.split())])
    shared = []
    for heading, members in groups.items():
        taken = [option for option, pair in members.items() if options.get(option) == pair]
        if len(taken) < 2:
            continue
        for option in taken:
            del options[option]
        listed = ", ".join(f"`{option}`" for option in taken)
        shared.append(f"- [{heading}](#{anchor(heading)}): {listed}")
    text = table(options.values())
    return text + ("\nShared with other commands:\n\n" + "\n".join(shared) + "\n" if shared else "")


def rendered(text, commands):
    groups = groups_of(commands)
    return BLOCK.sub(lambda found: f"{found[1]}\n{block_of(found[2], found[3], commands, groups)}\n{found[5]}", text)


def missing(text, commands):
    """(command, option) pairs of --help that the command's section of the page does not name."""
    blocks = {found[3]: found[4] for found in BLOCK.finditer(text) if found[2] == "options"}
    for command, options in commands.items():
        block = blocks.get(" ".join(command) or "pawl")
        for name in options:
            if block is None or not re.search(rf"`{re.escape(name)}[ `]", block):
                yield " ".join(("pawl", *command, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=ROOT / "build", type=Path)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    options = parser.parse_args()
    commands = read_help(options.build / "pawl")
    old = PAGE.read_text(encoding="utf-8")
    new = rendered(old, commands)
    if options.write:
        PAGE.write_text(new, encoding="utf-8")
    lost = list(missing(new if options.write else old, commands))
    for name in lost:
        print(f"docs/cli.md does not have: {name}")
    if not options.write and new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "docs/cli.md", "as --help has it"))
        print("run scripts/cli_page.py --write")
    names = {name for pairs in commands.values() for name in pairs if name.startswith("--")}
    print(f"{len(commands)} commands, {sum(map(len, commands.values()))} options and positionals, {len(names)} different options")
    sys.exit(1 if lost or (new != old and not options.write) else 0)


if __name__ == "__main__":
    main()
