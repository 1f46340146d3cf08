"""The extractor without a cluster, and the router's choice. tests/ray_run.py runs a cluster."""

import json
import os

import numpy as np
import pytest

import pawl.ray as plugin

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Engine:
    """Stands in for pawl.Engine: extract(texts, schema) -> list."""

    def __init__(self, model=None, **options):
        self.model, self.options, self.calls = model, options, []

    def extract(self, texts, schema):
        assert schema == SCHEMA
        self.calls.append(list(texts))
        if any("flaky" in text for text in texts) and len(self.calls) < 3:
            raise RuntimeError("the device is busy")
        for text in texts:
            if "bad" in text:
                raise ValueError("a text of that kind is refused")
            if "broken" in text:
                raise RuntimeError("always")
        return [{"n": len(text)} for text in texts]


def extractor(**options):
    return plugin.Extractor(json.dumps(SCHEMA), make_engine=Engine, **options)


def batch(*texts):
    return {"text": np.array(texts, dtype=object), "id": np.arange(len(texts))}


def test_one_row_out_for_each_row_in():
    made = extractor()
    out = made(batch("one", "three"))
    assert [json.loads(r) for r in out["record"]] == [{"n": 3}, {"n": 5}]
    assert list(out["error"]) == [None, None] and list(out["id"]) == [0, 1]
    assert made.engine.calls == [["one", "three"]]
    assert made({"text": np.array([], dtype=object)})["record"].shape == (0,)


def test_a_bad_text_does_not_take_the_others_along():
    out = extractor()(batch("one", "bad", None, "", 7, "two"))
    assert [r is None for r in out["record"]] == [False, True, True, True, True, False]
    assert "refused" in out["error"][1] and "NoneType" in out["error"][2]
    assert "empty" in out["error"][3] and "int" in out["error"][4]


def test_what_may_pass_is_tried_again_and_what_cannot_is_not():
    made = extractor(retries=2)
    out = made(batch("flaky", "two"))
    assert list(out["error"]) == [None, None]
    made = extractor(retries=2)
    out = made(batch("broken"))
    assert "RuntimeError: always" in out["error"][0]
    assert len(made.engine.calls) == 1 + 3
    made = extractor(retries=2)
    made(batch("bad"))
    assert len(made.engine.calls) == 1


def test_names_of_columns_and_options():
    made = extractor(text_column="mail", record_column="out", error_column="why", model="m",
                     engine_options={"threads": 1})
    assert made.engine.model == "m" and made.engine.options == {"threads": 1}
    out = made({"mail": np.array(["x"], dtype=object)})
    assert set(out) == {"mail", "out", "why"}
    with pytest.raises(ValueError, match="no column 'mail'"):
        made({"text": np.array(["x"], dtype=object)})


def test_a_table_keeps_its_types():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["one", "two"], "id": [1, 2]})
    out = extractor()(table)
    assert out.schema.field("error").type == pa.string() and out["error"].null_count == 2
    assert out["record"].to_pylist() == ['{"n": 3}', '{"n": 3}'] and out["id"].to_pylist() == [1, 2]


def test_actors_leave_a_processor_for_reading():
    share = plugin.processors_of_an_actor
    assert share(2, 8) == share(2, 3) == share(2, 0) == 1
    assert share(2, 2) == 0.5 and share(3, 2) == 0.33 and share(1, 1) == 0
    for actors in range(1, 20):
        for cluster in range(1, 30):
            assert actors * share(actors, cluster) <= cluster - 1


def body(**fields):
    return json.dumps(fields).encode()


def test_requests_of_one_schema_stay_together():
    one = plugin.schema_key("/v1/extract", body(schema={"a": 1, "b": 2}, text="x"))
    assert one == plugin.schema_key("/v1/extract", body(text="y", schema={"b": 2, "a": 1}))
    assert one != plugin.schema_key("/v1/extract", body(schema={"a": 1, "b": 3}))
    assert plugin.schema_key("/v1/completions", body(prompt="x")) == ""
    assert plugin.schema_key("/metrics", b"") == "/metrics"
    assert plugin.choose(one, [0, 0, 0], 8) == plugin.ranked(one, 3)[0]


def test_a_crowded_replica_hands_over_and_few_keys_move():
    keys = [f"k{i}" for i in range(300)]
    home = plugin.ranked(keys[0], 3)
    load = [0, 0, 0]
    load[home[0]] = 9
    assert plugin.choose(keys[0], load, 8) == home[1]
    assert plugin.choose("", load, 8) != home[0]
    counts = [sum(plugin.ranked(k, 3)[0] == r for k in keys) for r in range(3)]
    assert min(counts) > 60
    moved = [k for k in keys if plugin.ranked(k, 4)[0] != plugin.ranked(k, 3)[0]]
    assert all(plugin.ranked(k, 4)[0] == 3 for k in moved)


def test_a_request_goes_to_every_replica_once():
    key = "k7"
    assert plugin.tried(key, [0, 0, 0], 8) == plugin.ranked(key, 3)
    load = [0, 0, 0]
    load[plugin.ranked(key, 3)[0]] = 9
    order = plugin.tried(key, load, 8)
    assert order[0] == plugin.ranked(key, 3)[1] and sorted(order) == [0, 1, 2]
    assert plugin.tried("", [2, 1], 8) == [1, 0]
    error = json.loads(plugin.unanswered(RuntimeError("Traceback\n  in a\nOSError: refused\n")))
    assert error["error"]["message"] == "no replica answers: OSError: refused"


@pytest.mark.skipif("PAWL_COMMAND" not in os.environ, reason="PAWL_COMMAND names no command")
def test_a_replicas_server_without_ray():
    server = plugin.Server([os.environ["PAWL_COMMAND"]], ["--threads", "1"])
    server.check_health()
    headers = [("content-type", "application/json")]
    request = body(schema=SCHEMA, text="7 apples")
    parts = list(server.stream("POST", "/v1/extract", headers, request))
    assert parts[0][0] == 200 and isinstance(json.loads(b"".join(parts[1:])), dict)
    parts = list(server.stream("POST", "/v1/extract", headers, body(schema={"minLength": "x"}, text="a")))
    assert parts[0][0] == 400 and b"minLength" in b"".join(parts[1:])
    server.process.kill()
    server.process.wait()
    with pytest.raises(RuntimeError, match="has ended"):
        server.check_health()
