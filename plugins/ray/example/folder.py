"""folder.py IN OUT SCHEMA: a record for every row of a folder of parquet files with a column "text"."""

import json
import sys

import pawl.ray
import ray


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, target, schema = sys.argv[1:4]
    texts = ray.data.read_parquet(source)
    with open(schema) as file:
        records = pawl.ray.extract(texts, json.load(file), actors=2)
    records.write_parquet(target)
    wrong = ray.data.read_parquet(target).filter(lambda row: row["error"] is not None)
    print(f"{wrong.count()} rows without a record")


if __name__ == "__main__":
    main()
