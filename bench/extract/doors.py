#!/usr/bin/env python3
"""Records of the 400 orders through every interface, with a plain Pydantic model and no option.

    PYTHONPATH=build/python/site python3 bench/extract/doors.py --build build --json out.json

The command, the C++ library, the C library, the Python package and /v1/extract read the same texts
with the shipped model. The script compares their records byte by byte, checks each record with
jsonschema against the schema as Pydantic gives it, scores them with `pawl eval`, and counts tokens
next to those of a schema closed by hand. It needs pydantic, jsonschema, a C and a C++ compiler. The
exit code is 1 if a bar of the table that it prints is missed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import typing
import urllib.request

import jsonschema
import pydantic

import pawl

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent


class Order(pydantic.BaseModel):
    order_id: str = pydantic.Field(pattern=r"^[A-Z]{2}-[0-9]{4}$")
    customer: str
    company: str | None = None
    city: str | None = None
    total: float | None = None
    status: typing.Literal["new", "paid", "shipped", "cancelled"] | None = None


def run(*args, **more):
    return subprocess.run([str(one) for one in args], check=True, stdout=subprocess.PIPE, **more).stdout


def of_command(build, model, schema, texts, folder):
    """The records, and the tokens of all of them."""
    source, stats = folder / "texts.jsonl", folder / "stats.json"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = run(build / "pawl", "extract", "--model", model, "--schema", schema, "--json-lines", "--file",
              source, "--stats-json", stats)
    tokens = sum(json.loads(line)["output_tokens"] for line in stats.read_text().splitlines())
    return out.decode().splitlines(), tokens


def of_program(build, model, schema, texts, folder, source):
    program = folder / ("door_" + source.suffix[1:])
    # With CUDA kernels the libraries need more.
    kernels = build / "libpawl_cuda_kernels.a"
    cuda = [kernels, "-L/usr/local/cuda/lib64", "-lcudart_static", "-ldl", "-lrt"] if kernels.exists() else []
    if source.suffix == ".c":
        run("cc", "-std=c11", "-I", ROOT / "include", source, "-L", build, "-lpawl", f"-Wl,-rpath,{build.resolve()}",
            "-o", program)
    else:
        run("c++", "-std=c++20", "-I", ROOT / "include", source, build / "libpawl_engine.a",
            build / "libpawl_core.a", *cuda, "-lpthread", "-o", program)
    out = run(program, model, schema, input="".join(text + "\0" for text in texts).encode())
    return out.decode().splitlines()


def of_server(build, model, schema, texts):
    server = subprocess.Popen([str(build / "pawl"), "serve", "--model", str(model), "--port", "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        url = ""
        while not url:
            for word in (server.stdout.readline() + " ").split():
                url = word if word.startswith("http://") else url
            if not url and server.poll() is not None:
                raise SystemExit("the server has ended")
        body = {"texts": texts, "schema": json.loads(schema.read_text())}
        request = urllib.request.Request(url + "/v1/extract", json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as reply:
            body = reply.read().decode()
        records, decoder, mark = [], json.JSONDecoder(), '"record":'
        at = body.find(mark)
        while at >= 0:
            begin = at + len(mark)
            end = decoder.raw_decode(body, begin)[1]
            records.append(body[begin:end])
            at = body.find(mark, end)
        return records
    finally:
        server.terminate()
        server.wait()


def score(build, schema, data, records, folder):
    """Fields right in percent, and keys that were invented."""
    written, texts = folder / "written.jsonl", folder / "data.jsonl"
    written.write_text("".join('{"record": ' + record + "}\n" for record in records))
    texts.write_text("".join(json.dumps(one) + "\n" for one in data))
    out = run(build / "pawl", "eval", "--schema", schema, "--data", texts, "--written", written, "--json")
    report = json.loads(out)["settings"][0]
    figures = report["all"]
    right = figures["right"] + figures["right_nulls"]
    return 100 * right / (figures["values"] + figures["nulls"]), report["invented_keys"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models" / "tiny-extract")
    parser.add_argument("--limit", type=int, default=0, help="the first texts of each half; 0: all")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    options = parser.parse_args()
    build, model = options.build.resolve(), options.model.resolve()
    data = [json.loads(line) for line in (HERE / "orders.jsonl").read_text().splitlines()]
    halves = {name: [one for one in data if one["split"] == name] for name in ("known", "kept")}
    if options.limit:
        halves = {name: half[: options.limit] for name, half in halves.items()}
    data = [one for half in halves.values() for one in half]
    texts = [one["text"] for one in data]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        plain = Order.model_json_schema()
        schema, closed = folder / "order.json", folder / "closed.json"
        schema.write_text(json.dumps(plain))
        closed.write_text(json.dumps({**plain, "additionalProperties": False, "required": list(plain["properties"])}))
        command, tokens = of_command(build, model, schema, texts, folder)
        closed_tokens = of_command(build, model, closed, texts, folder)[1]
        doors = {"command": command}
        for name, source in (("C++", "door.cc"), ("C", "door.c")):
            doors[name] = of_program(build, model, schema, texts, folder, HERE / source)
        engine = pawl.Engine(str(model))
        doors["Python"] = [one.text for one in engine.extract(texts, plain, details=True)]
        instances = engine.extract(texts, Order)
        doors["/v1/extract"] = of_server(build, model, schema, texts)
        rows = [("records of " + name, sum(a == b for a, b in zip(records, command)), len(command),
                 records == command) for name, records in doors.items()]
        same = sum(Order.model_validate_json(record) == one for record, one in zip(command, instances))
        rows.append(("instances of Python", same, len(command), same == len(command)))
        judge = jsonschema.Draft202012Validator(plain)
        valid = sum(judge.is_valid(json.loads(record)) for record in command)
        rows.append(("valid by jsonschema", valid, len(command), valid == len(command)))
        begin = 0
        for (name, half), bar in zip(halves.items(), (80, 70)):
            right, invented = score(build, schema, half, command[begin : begin + len(half)], folder)
            begin += len(half)
            rows.append((f"fields right, {name} shapes, %", round(right, 1), bar, right >= bar))
            rows.append((f"invented keys, {name} shapes", invented, 0, invented == 0))
        ratio = tokens / closed_tokens
        rows.append(("tokens, by those of the closed schema", round(ratio, 3), 1.5, ratio <= 1.5))
    print("| what | measured | bar | held |\n|---|---|---|---|")
    for what, measured, bar, held in rows:
        print(f"| {what} | {measured} | {bar} | {'yes' if held else 'no'} |")
    if options.json:
        names = ("what", "measured", "bar", "held")
        options.json.write_text(json.dumps({"model": model.name, "rows": [dict(zip(names, row)) for row in rows]},
                                           indent=1) + "\n")
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
