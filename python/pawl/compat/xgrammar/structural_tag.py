"""Structural tags as objects: each class writes the JSON of one format."""

from __future__ import annotations

import json
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, Type, Union

from pydantic import BaseModel, Field

_Budget = Annotated[Optional[int], Field(ge=0, le=2**31 - 1)]
_Style = Literal["json", "qwen_xml", "minimax_xml", "deepseek_xml", "glm_xml", "cohere_xml",
                 "kimi_k3_xml"]
_Token = Union[int, str]


class ConstStringFormat(BaseModel):
    type: Literal["const_string"] = "const_string"
    value: str


class JSONSchemaFormat(BaseModel):
    type: Literal["json_schema"] = "json_schema"
    json_schema: Union[bool, Dict[str, Any]]
    style: _Style = "json"
    any_order: bool = False
    max_whitespace_cnt: Optional[int] = None


class QwenXMLParameterFormat(BaseModel):
    type: Literal["qwen_xml_parameter"] = "qwen_xml_parameter"
    json_schema: Union[bool, Dict[str, Any]]


class AnyTextFormat(BaseModel):
    type: Literal["any_text"] = "any_text"
    excludes: List[str] = []
    max_tokens: _Budget = None
    max_chars: _Budget = None


class TokenFormat(BaseModel):
    type: Literal["token"] = "token"
    token: _Token


class ExcludeTokenFormat(BaseModel):
    type: Literal["exclude_token"] = "exclude_token"
    exclude_tokens: List[_Token] = []


class AnyTokensFormat(BaseModel):
    type: Literal["any_tokens"] = "any_tokens"
    exclude_tokens: List[_Token] = []
    max_tokens: _Budget = None


class GrammarFormat(BaseModel):
    type: Literal["grammar"] = "grammar"
    grammar: str


class RegexFormat(BaseModel):
    type: Literal["regex"] = "regex"
    pattern: str
    excludes: List[str] = []


class SequenceFormat(BaseModel):
    type: Literal["sequence"] = "sequence"
    elements: List["Format"]


class OrFormat(BaseModel):
    type: Literal["or"] = "or"
    elements: List["Format"]


class TagFormat(BaseModel):
    type: Literal["tag"] = "tag"
    begin: Union[str, TokenFormat]
    content: "Format"
    end: Union[str, List[str], TokenFormat]


class TriggeredTagsFormat(BaseModel):
    type: Literal["triggered_tags"] = "triggered_tags"
    triggers: List[str]
    tags: List[TagFormat]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: List[str] = []


class TokenTriggeredTagsFormat(BaseModel):
    type: Literal["token_triggered_tags"] = "token_triggered_tags"
    trigger_tokens: List[_Token]
    tags: List[TagFormat]
    exclude_tokens: List[_Token] = []
    at_least_one: bool = False
    stop_after_first: bool = False


class TagsWithSeparatorFormat(BaseModel):
    type: Literal["tags_with_separator"] = "tags_with_separator"
    tags: List[TagFormat]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


class OptionalFormat(BaseModel):
    type: Literal["optional"] = "optional"
    content: "Format"


class PlusFormat(BaseModel):
    type: Literal["plus"] = "plus"
    content: "Format"


class StarFormat(BaseModel):
    type: Literal["star"] = "star"
    content: "Format"


class RepeatFormat(BaseModel):
    type: Literal["repeat"] = "repeat"
    min: int
    max: int
    content: "Format"


class DispatchFormat(BaseModel):
    type: Literal["dispatch"] = "dispatch"
    rules: List[Tuple[str, "Format"]]
    loop: bool = True
    excludes: List[str] = []


class TokenDispatchFormat(BaseModel):
    type: Literal["token_dispatch"] = "token_dispatch"
    rules: List[Tuple[_Token, "Format"]]
    loop: bool = True
    exclude_tokens: List[_Token] = []


_FORMATS = (
    AnyTextFormat, ConstStringFormat, JSONSchemaFormat, GrammarFormat, RegexFormat,
    QwenXMLParameterFormat, OrFormat, SequenceFormat, TagFormat, TriggeredTagsFormat,
    TokenTriggeredTagsFormat, TagsWithSeparatorFormat, OptionalFormat, PlusFormat, StarFormat,
    TokenFormat, ExcludeTokenFormat, AnyTokensFormat, RepeatFormat, DispatchFormat,
    TokenDispatchFormat,
)
Format = Annotated[Union[_FORMATS], Field(discriminator="type")]

for _format in _FORMATS:
    _format.model_rebuild()


class StructuralTagItem(BaseModel):
    """One tag of the older form: triggers and tags."""

    begin: str
    schema_: Union[str, Type[BaseModel], Dict[str, Any]] = Field(alias="schema")
    end: str

    def schema_value(self) -> Any:
        if isinstance(self.schema_, str):
            return json.loads(self.schema_)
        return self.schema_ if isinstance(self.schema_, dict) else self.schema_.model_json_schema()


class StructuralTag(BaseModel):
    type: Literal["structural_tag"] = "structural_tag"
    format: Format

    @staticmethod
    def from_legacy_structural_tag(
        tags: List[StructuralTagItem], triggers: List[str]
    ) -> "StructuralTag":
        read = [
            TagFormat(begin=tag.begin, end=tag.end,
                      content=JSONSchemaFormat(json_schema=tag.schema_value()))
            for tag in tags
        ]
        return StructuralTag(format=TriggeredTagsFormat(triggers=triggers, tags=read))

    @staticmethod
    def from_json(json_str: Union[str, Dict[str, Any]]) -> "StructuralTag":
        if isinstance(json_str, str):
            return StructuralTag.model_validate_json(json_str)
        if isinstance(json_str, dict):
            return StructuralTag.model_validate(json_str)
        raise ValueError("a structural tag is a JSON text or a dict")
