"""Clients that people use, against a running server: tests/clients/run.sh starts one and runs this.

Each test is a function; a client that is not installed is reported as skipped, never as passed.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from typing import Iterable

BASE = os.environ["PAWL_URL"]  # http://127.0.0.1:PORT
TEXT = "Ann Lee, ann@example.org, phone 555-1234"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "email": {"type": "string", "format": "email"}},
    "required": ["name", "email"],
    "additionalProperties": False,
}


class AnyValues(dict):
    """Equal to what has the same keys: another model than the one that ships need not find the values."""

    def __eq__(self, other):
        return isinstance(other, dict) and set(self) == set(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None


EXPECTED = {"name": "Ann Lee", "email": "ann@example.org"}
if os.environ.get("PAWL_ANY_VALUES"):
    EXPECTED = AnyValues(EXPECTED)


def openai_client():
    import openai

    return openai.OpenAI(base_url=BASE + "/v1", api_key="unused", max_retries=0)


def contact_model():
    from pydantic import BaseModel

    class Contact(BaseModel):
        name: str
        email: str

    return Contact


def ask(text=TEXT):
    return [{"role": "user", "content": text}]


SAVE = {"type": "function", "function": {"name": "save", "parameters": SCHEMA, "strict": True}}


def test_openai_models():
    assert [m.id for m in openai_client().models.list()] == ["tiny-extract"]


def test_openai_parse():
    out = openai_client().chat.completions.parse(
        model="m", messages=ask(), response_format=contact_model(), temperature=0
    )
    assert out.choices[0].message.parsed.model_dump() == EXPECTED
    assert out.usage.total_tokens == out.usage.prompt_tokens + out.usage.completion_tokens


def test_openai_stream():
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}}
    client = openai_client()
    whole = client.chat.completions.create(
        model="m", messages=ask(), response_format=form, temperature=0
    )
    with client.chat.completions.stream(
        model="m", messages=ask(), response_format=contact_model(), temperature=0,
        stream_options={"include_usage": True},
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed.model_dump() == EXPECTED
    deltas = "".join(e.delta for e in events if e.type == "content.delta")
    assert deltas == final.choices[0].message.content == whole.choices[0].message.content
    assert final.usage.completion_tokens == whole.usage.completion_tokens


def test_openai_tools():
    client = openai_client()
    for choice in ("required", {"type": "function", "function": {"name": "save"}}):
        out = client.chat.completions.create(
            model="m", messages=ask(), tools=[SAVE], tool_choice=choice, temperature=0,
            parallel_tool_calls=False,
        )
        (call,) = out.choices[0].message.tool_calls
        assert call.function.name == "save" and json.loads(call.function.arguments) == EXPECTED
        stream = client.chat.completions.create(
            model="m", messages=ask(), tools=[SAVE], tool_choice=choice, temperature=0,
            parallel_tool_calls=False, stream=True,
        )
        arguments, names, ids = "", [], []
        for chunk in stream:
            for delta in chunk.choices[0].delta.tool_calls or []:
                arguments += delta.function.arguments
                names += [delta.function.name] if delta.function.name else []
                ids += [delta.id] if delta.id else []
        assert arguments == call.function.arguments and names == ["save"] and len(ids) == 1


def test_openai_responses():
    client = openai_client()
    parsed = client.responses.parse(model="m", input=TEXT, text_format=contact_model(), temperature=0)
    assert parsed.output_parsed.model_dump() == EXPECTED
    tool = {"type": "function", "name": "save", "parameters": SCHEMA, "strict": True}
    called = client.responses.create(
        model="m", input=TEXT, tools=[tool], tool_choice={"type": "function", "name": "save"},
        temperature=0,
    )
    assert json.loads(called.output[0].arguments) == EXPECTED
    with client.responses.stream(
        model="m", input=TEXT, text_format=contact_model(), temperature=0
    ) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert json.loads(text) == EXPECTED and final.output_text == text
    with client.responses.stream(
        model="m", input=TEXT, tools=[tool], tool_choice="required", parallel_tool_calls=False,
        temperature=0,
    ) as stream:
        pieces = [e.delta for e in stream if e.type == "response.function_call_arguments.delta"]
        final = stream.get_final_response()
    assert "".join(pieces) == final.output[0].arguments
    custom = {"type": "custom", "name": "pick",
              "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]{3}"}}
    out = client.responses.create(
        model="m", input=TEXT, tools=[custom], tool_choice={"type": "custom", "name": "pick"}
    )
    assert out.output[0].type == "custom_tool_call" and len(out.output[0].input) == 3


def test_openai_stored_responses():
    import openai

    client = openai_client()
    tool = {"type": "function", "name": "save", "parameters": SCHEMA, "strict": True}
    first = client.responses.create(
        model="m", input=TEXT, tools=[tool], tool_choice={"type": "function", "name": "save"},
        temperature=0,
    )
    again = client.responses.retrieve(first.id)
    assert again.output == first.output
    result = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "saved"}
    second = client.responses.create(
        model="m", input=[result], previous_response_id=first.id, temperature=0, max_output_tokens=8
    )
    assert second.previous_response_id == first.id
    whole = client.responses.create(
        model="m", input=[{"role": "user", "content": TEXT}, first.output[0].model_dump(), result],
        temperature=0, max_output_tokens=8, store=False,
    )
    assert whole.output_text == second.output_text
    assert whole.usage.input_tokens == second.usage.input_tokens
    client.responses.delete(first.id)
    for gone in (first.id, whole.id):
        try:
            client.responses.retrieve(gone)
            raise AssertionError("found")
        except openai.NotFoundError as error:
            assert gone in error.message


def test_openai_errors():
    import openai

    client = openai_client()
    bad = {"type": "json_schema", "json_schema": {"name": "c", "schema": {"type": "thing"}}}
    try:
        client.chat.completions.create(model="m", messages=ask(), response_format=bad)
        raise AssertionError("accepted")
    except openai.BadRequestError as error:
        assert error.param == "/response_format/json_schema/schema/type", error.body
        assert error.response.headers["x-should-retry"] == "false"
    try:
        client.responses.create(model="m", input="x", previous_response_id="resp_1")
        raise AssertionError("accepted")
    except openai.BadRequestError as error:
        assert "previous_response_id" in error.message
    try:
        client.chat.completions.parse(
            model="m", messages=ask(), response_format=contact_model(), max_tokens=3
        )
        raise AssertionError("accepted")
    except openai.LengthFinishReasonError:
        pass


def test_openai_completions():
    out = openai_client().completions.create(
        model="m", prompt=["a", "b"], max_tokens=4, n=2, logprobs=2, seed=1, temperature=1
    )
    assert [c.index for c in out.choices] == [0, 1, 2, 3]
    assert all(len(c.logprobs.tokens) <= 4 for c in out.choices)


def test_langchain():
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(base_url=BASE + "/v1", api_key="unused", model="m", temperature=0)
    for method in ("json_schema", "function_calling"):
        out = model.with_structured_output(contact_model(), method=method).invoke(TEXT)
        assert out.model_dump() == EXPECTED, (method, out)
    out = model.with_structured_output({**SCHEMA, "title": "Contact"}, method="json_schema").invoke(TEXT)
    assert out == EXPECTED


# What a mode of Instructor sends to the model, and with which client. The modes of the last row leave the form of the
# answer to the model: their tests give the schema besides, as a user of a small model does.
INSTRUCTOR_MODES = {
    "openai": ["FUNCTIONS", "TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "JSON_O1", "RESPONSES_TOOLS",
               "RESPONSES_TOOLS_WITH_INBUILT_TOOLS"],
    "anthropic": ["ANTHROPIC_TOOLS"],
    "schema besides": ["JSON", "MD_JSON", "ANTHROPIC_JSON"],
    "model decides": ["PARALLEL_TOOLS", "ANTHROPIC_PARALLEL_TOOLS", "ANTHROPIC_REASONING_TOOLS"],
}


def test_instructor():
    import anthropic
    import instructor
    from instructor.core import exceptions as errors

    contact = contact_model()

    def create(mode, **arguments):
        arguments = {"model": "m", "messages": ask(), "max_retries": 0, **arguments}
        if mode.startswith("ANTHROPIC"):
            native = anthropic.Anthropic(base_url=BASE, api_key="unused", max_retries=0)
            client = instructor.from_anthropic(native, mode=instructor.Mode[mode])
            return client.messages.create(**{"max_tokens": 300, **arguments})
        client = instructor.from_openai(openai_client(), mode=instructor.Mode[mode])
        return client.chat.completions.create(temperature=0, **arguments)

    for mode in INSTRUCTOR_MODES["openai"] + INSTRUCTOR_MODES["anthropic"]:
        out = create(mode, response_model=contact)
        assert out.model_dump() == EXPECTED, (mode, out)
    for mode in INSTRUCTOR_MODES["schema besides"]:
        form = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}}
        body = {"response_format": form} if mode == "JSON" else {"structured_outputs": {"json": SCHEMA}}
        out = create(mode, response_model=contact, extra_body=body)
        assert set(out.model_dump()) == set(EXPECTED), (mode, out)
    for mode in INSTRUCTOR_MODES["model decides"]:
        try:
            several = "PARALLEL" in mode
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1200}
            out = create(mode, response_model=Iterable[contact] if several else contact,
                         **(thinking if "REASONING" in mode else {"max_tokens": 60}))
            assert all(isinstance(one, contact) for one in (out if several else [out]))
        except (errors.InstructorRetryException, errors.IncompleteOutputException) as error:
            # The model wrote text in place of a call: the client read the answer and says so.
            assert "tool" in str(error).lower() or "incomplete" in str(error) or "too_short" in str(error), error
    partial = instructor.from_openai(openai_client(), mode=instructor.Mode.TOOLS)
    last = None
    for last in partial.chat.completions.create_partial(
        model="m", messages=ask(), response_model=contact, temperature=0
    ):
        pass
    assert last.model_dump() == EXPECTED


def test_anthropic():
    import anthropic

    client = anthropic.Anthropic(base_url=BASE, api_key="unused", max_retries=0)
    tool = {"name": "save", "description": "Saves a contact.", "input_schema": SCHEMA}
    asked = {"model": "m", "max_tokens": 300, "messages": ask(), "tools": [tool],
             "tool_choice": {"type": "tool", "name": "save"}, "extra_body": {"temperature": 0}}
    out = client.messages.create(**asked)
    (call,) = out.content
    assert out.stop_reason == "tool_use" and call.name == "save" and call.input == EXPECTED
    with client.messages.stream(**asked) as stream:
        pieces = "".join(
            event.delta.partial_json
            for event in stream
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
        )
        final = stream.get_final_message()
    assert json.loads(pieces) == EXPECTED and final.content[0].input == EXPECTED
    assert final.usage.output_tokens == out.usage.output_tokens
    counted = client.messages.count_tokens(
        model="m", messages=ask(), tools=[tool], tool_choice=asked["tool_choice"]
    )
    assert counted.input_tokens == out.usage.input_tokens + (out.usage.cache_read_input_tokens or 0)
    try:
        client.messages.create(model="m", max_tokens=8, messages=[])
        raise AssertionError("accepted")
    except anthropic.BadRequestError as error:
        assert "messages" in str(error)


def test_openai_agents():
    import agents
    import openai

    agents.set_tracing_disabled(True)
    saved = []

    @agents.function_tool
    def save(name: str, email: str) -> str:
        """Saves a contact."""
        saved.append({"name": name, "email": email})
        return "saved"

    async def run():
        client = openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="unused", max_retries=0)
        for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
            model = kind(model="m", openai_client=client)
            reader = agents.Agent(
                name="reader", model=model, output_type=contact_model(),
                model_settings=agents.ModelSettings(temperature=0),
            )
            out = await agents.Runner.run(reader, TEXT)
            assert out.final_output.model_dump() == EXPECTED, (kind, out.final_output)
            keeper = agents.Agent(
                name="keeper", model=model, tools=[save], tool_use_behavior="stop_on_first_tool",
                model_settings=agents.ModelSettings(temperature=0, tool_choice="required"),
            )
            saved.clear()
            out = await agents.Runner.run(keeper, TEXT)
            assert out.final_output == "saved" and saved == [EXPECTED], (kind, saved)
            saved.clear()
            stream = agents.Runner.run_streamed(keeper, TEXT)
            kinds = {event.type async for event in stream.stream_events()}
            assert "raw_response_event" in kinds and saved == [EXPECTED], (kind, kinds, saved)

    asyncio.run(run())


def test_pydantic_ai():
    from pydantic_ai import Agent, NativeOutput, ToolOutput
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    contact = contact_model()
    provider = OpenAIProvider(base_url=BASE + "/v1", api_key="unused")
    models = [
        (OpenAIChatModel("m", provider=provider), {"temperature": 0}, [NativeOutput, ToolOutput]),
        (OpenAIResponsesModel("m", provider=provider), {"temperature": 0}, [NativeOutput, ToolOutput]),
        (AnthropicModel("m", provider=AnthropicProvider(base_url=BASE, api_key="unused")),
         {"max_tokens": 300}, [ToolOutput]),
    ]

    async def run():
        for model, settings, forms in models:
            for form in forms:
                agent = Agent(model, output_type=form(contact), retries=0)
                out = await agent.run(TEXT, model_settings=settings)
                assert out.output.model_dump() == EXPECTED, (model, form, out.output)
            async with agent.run_stream(TEXT, model_settings=settings) as stream:
                last = None
                async for last in stream.stream_output(debounce_by=None):
                    pass
            assert last.model_dump() == EXPECTED, (model, last)

    asyncio.run(run())


def test_ollama():
    import ollama

    client = ollama.Client(host=BASE)
    out = client.chat(model="m", messages=ask(), format=SCHEMA, options={"temperature": 0})
    assert json.loads(out.message.content) == EXPECTED and out.done_reason == "stop"
    text = "".join(
        part.message.content
        for part in client.chat(
            model="m", messages=ask(), format=SCHEMA, options={"temperature": 0}, stream=True
        )
    )
    assert json.loads(text) == EXPECTED
    out = client.generate(model="m", prompt=TEXT, format=SCHEMA, options={"temperature": 0})
    assert json.loads(out.response) == EXPECTED
    assert [m.model for m in client.list().models] == ["tiny-extract"]
    try:
        client.chat(model="m", messages=ask(), format={"type": "thing"})
        raise AssertionError("accepted")
    except ollama.ResponseError as error:
        assert error.status_code == 400 and "#/format/type" in error.error, error.error


def test_lm_eval():
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    model = LocalCompletionsAPI(
        base_url=BASE + "/v1/completions", model="m", tokenizer_backend="remote",
        tokenized_requests=True, max_length=2048,
    )
    pairs = [("Ann Lee lives in", " Paris"), ("Ann Lee lives in", " xqzv"), ("a b c", " d e f")]
    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
    scores = model.loglikelihood(requests)
    assert len(scores) == 3 and all(score < 0 for score, _ in scores), scores
    # The same, computed from the tokens' own probabilities.
    client = openai_client()
    import requests

    def tokens(text):
        body = {"prompt": text, "add_special_tokens": False}
        return requests.post(BASE + "/tokenize", json=body, timeout=10).json()["tokens"]

    for (context, rest), (score, _) in zip(pairs, scores):
        whole, first = tokens(context + rest), len(tokens(context))
        out = client.completions.create(
            model="m", prompt=[whole], max_tokens=0, logprobs=1, echo=True, temperature=0
        ).choices[0].logprobs
        assert len(out.token_logprobs) == len(whole)
        assert abs(sum(out.token_logprobs[first:]) - score) < 1e-3, (out.token_logprobs, score)


def test_ray_data():
    import ray
    from ray.data.llm import HttpRequestProcessorConfig, build_processor

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    config = HttpRequestProcessorConfig(
        url=BASE + "/v1/chat/completions", headers={}, qps=500, concurrency=1, batch_size=64
    )
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}}
    processor = build_processor(
        config,
        preprocess=lambda row: {
            "payload": {
                "model": "m", "temperature": 0, "response_format": form,
                "messages": ask(f"Person {row['id']} Smith, p{row['id']}@mail.example"),
            }
        },
        postprocess=lambda row: {
            "record": row["http_response"]["choices"][0]["message"]["content"]
        },
    )
    rows = processor(ray.data.range(1000)).take_all()
    assert len(rows) == 1000
    assert all(set(json.loads(row["record"])) == {"name", "email"} for row in rows)


def main():
    failed = 0
    tests = {name[5:]: test for name, test in sorted(globals().items()) if name.startswith("test_")}
    # The arguments: names of the tests to run, or -NAME for each that is left out.
    only = [name for name in sys.argv[1:] if not name.startswith("-")]
    without = [name[1:] for name in sys.argv[1:] if name.startswith("-")]
    if unknown := sorted({*only, *without} - set(tests)):
        sys.exit(f"there is no test {', '.join(unknown)}; there are {', '.join(tests)}")
    for name, test in tests.items():
        if name in without or (only and name not in only):
            continue
        begin = time.time()
        try:
            test()
            result = "passed"
        except ImportError as error:
            result = f"SKIPPED ({error})"
        except Exception:  # noqa: BLE001: whatever a client raises is a failure of that test
            traceback.print_exc()
            result = "FAILED"
            failed += 1
        print(f"{name:24} {result:10} {time.time() - begin:6.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
