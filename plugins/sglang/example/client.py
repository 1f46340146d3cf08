"""client.py [URL]: a record from a server that was started with --grammar-backend pawl."""

import json
import sys
import urllib.request

SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False,
          "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:30000"
    body = {"text": "Ann Lee is 41 years old. As JSON: ",
            "sampling_params": {"max_new_tokens": 100, "json_schema": json.dumps(SCHEMA)}}
    request = urllib.request.Request(f"{url}/generate", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    print(json.load(urllib.request.urlopen(request))["text"])


if __name__ == "__main__":
    main()
