"""The console script `pawl`, and `python -m pawl`: the program that lies in the package."""

from __future__ import annotations

import os
import sys

from ._errors import PawlError
from ._paths import command_path


def main() -> None:
    try:
        path = command_path()
    except PawlError as error:
        sys.exit(f"pawl: {error}")
    # In place of this process, so that signals, pipes and the exit code are the program's own.
    os.execv(path, ["pawl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
