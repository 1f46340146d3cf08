from __future__ import annotations
import abc, asyncio, collections, contextlib, dataclasses, enum, functools, itertools, json, logging, os, pathlib, re, sys, typing as t
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    ClassVar,
    Generic,
    Iterable,
    Iterator,
    NamedTuple,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
    overload,
)
from concurrent.futures import ThreadPoolExecutor, as_completed
import xml.etree.ElementTree as ET
import datetime as dt
from decimal import Decimal
from fractions import Fraction

T = TypeVar("T")


class Color(enum.Enum):
    RED = 1
    GREEN = "g"

    @property
    def pretty(self) -> str:
        return self.name.title()

    @classmethod
    def parse(cls, s: str) -> "Color":
        return cls[s.upper()]

    def __str__(self):
        return f"{self.value!r:>10}"


class Flag(enum.IntFlag):
    A = enum.auto()
    B = enum.auto()


@dataclass(order=True, frozen=True)
class Point(Generic[T]):
    x: T
    y: T
    tags: list[str] = field(default_factory=list, compare=False)
    origin: ClassVar[Optional["Point"]] = None

    def __post_init__(self):
        object.__setattr__(self, "x", self.x)

    def __add__(self, o: Point) -> Point:
        return dataclasses.replace(self, x=self.x + o.x)


class Emp(NamedTuple):
    name: str
    age: int = 3

    def greet(self) -> str:
        return self.name.upper() + str(self._asdict()) + self._replace(age=1).name


Pt = namedtuple("Pt", "a b", defaults=(1,))


class TD(TypedDict, total=False):
    k: int


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...
    @staticmethod
    def unit() -> "Shape":
        return Sq(1)


class Sq(Shape):
    __slots__ = ("s", "_c")

    def __init__(self, s: float) -> None:
        self.s = s
        self.extra = 1

    def area(self) -> float:
        return self.s**2

    @property
    def side(self) -> float:
        return self.s

    @side.setter
    def side(self, v: float) -> None:
        self.s = v

    @functools.cached_property
    def big(self) -> str:
        return "x" * int(self.s)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __getitem__(self, i):
        return self.s

    def __iter__(self) -> Iterator[int]:
        yield from range(3)


class Meta(type):
    def __call__(cls, *a, **k):
        return super().__call__(*a, **k)


class WithMeta(metaclass=Meta):
    def __getattr__(self, n):
        return n


@overload
def conv(x: int) -> str: ...
@overload
def conv(x: str) -> int: ...
def conv(x):
    return x


def deco(f: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(f)
    def inner(*a: Any, **k: Any) -> T:
        inner.calls += 1
        return f(*a, **k)

    inner.calls = 0
    return inner


@deco
def add(a: int, b: int = 2, *, c: int = 3, **kw) -> int:
    return a + b + c


print(add(1, b=2, c=4, zz=5).bit_length(), add.calls, conv(1).upper(), conv("a").bit_length())
p = Point(1, 2)
q = Point[int](3, 4)
print(
    (p + q).x,
    p.tags,
    dataclasses.asdict(p),
    Color.RED.pretty.lower(),
    Color.parse("red").name,
    Color["RED"].value,
    Color(1).name,
    [c.name for c in Color],
    Color.__members__.items(),
    Flag.A | Flag.B,
    (Flag.A).name,
)
e = Emp("n")
n, a = e
print(
    e.greet().strip(),
    e.name.title(),
    e.age.bit_length(),
    e._fields,
    Emp._make(["a", 1]).age,
    Pt(1).a,
    Pt._fields,
    n.upper(),
    a.bit_length(),
    e.index(1),
    e.count(2),
)
s = Sq(2)
s.side = 4
s.other = 3
print(
    s.side.is_integer(),
    s.big.upper(),
    s.extra,
    s.other,
    Shape.unit().area().hex(),
    [v.bit_length() for v in s],
)
with Sq(3) as z, contextlib.suppress(ValueError), open("f") as fh:
    print(z.area(), fh.readline().strip().split(",")[0].lower())
    fh.seek(0)
d: dict[str, list[int]] = defaultdict(list)
d["a"].append(1)
print(
    {k: v.copy() for k, v in d.items()},
    d.get("x", []).count(1),
    sorted(d, key=lambda k: d[k].__len__()),
    max(d.values(), key=len).pop(),
)
c = Counter("hello")
c.update(l=1)
print(c.most_common(1)[0][0].upper(), c.total(), (c - Counter("l")).elements(), c["q"].bit_length())
dq = deque([1], maxlen=3)
dq.appendleft(2)
dq.rotate(1)
print(dq.popleft().bit_length(), dq.maxlen)
m = re.match(r"(?P<k>\w+)", "abc")
if m:
    print(m.group("k").upper(), m.groupdict().items(), m.span()[0].bit_length(), m.re.pattern)
for i, (x, y) in enumerate(zip("ab", [1, 2]), start=1):
    print(i.bit_length(), x.upper(), y.bit_length())
print(
    [w.strip() for w in "a b".split() if w.isalpha()],
    {w: len(w) for w in ("a",)},
    sum(v * 2 for v in range(3)).bit_length(),
    list(map(str.upper, "ab")),
    (lambda v, *a, k=1, **o: v)(1),
    *[1, 2],
    f"{p.x!r:>{10}} {'a'.upper()} {d['a'][0]:03d}",
    b"x".hex(),
    1j.imag.hex(),
    (1).bit_length(),
    (1.5).is_integer(),
    "%s" % "a".upper(),
    "{}".format(1).zfill(3),
)


async def go(n: int) -> str:
    async with asyncio.Lock():
        await asyncio.sleep(0)
    rs = await asyncio.gather(*(go(i) for i in range(n)), return_exceptions=True)
    async for v in agen():
        print(v)
    return "x".join(str(r) for r in rs)


async def agen():
    yield 1


asyncio.run(go(1)).upper()
loop = asyncio.new_event_loop()
loop.run_until_complete(go(0)).strip()
loop.close()
try:
    json.loads("x")["a"].foo
except (json.JSONDecodeError, KeyError) as err:
    print(
        err.args,
        err.__class__.__name__.upper(),
        getattr(err, "pos", 0),
        err.msg if isinstance(err, json.JSONDecodeError) else "",
    )
except OSError as oe:
    print(oe.errno, oe.strerror, oe.filename)
else:
    print("ok".upper())
finally:
    logging.getLogger(__name__).warning("x %s", 1, exc_info=True, stacklevel=2)
path = pathlib.Path(__file__).resolve().parent / "x.txt"
print(
    path.suffix.upper(),
    path.stem.title(),
    path.read_text(encoding="utf-8").splitlines()[0].strip(),
    [f.name for f in path.parent.glob("*")],
    path.exists() and path.stat().st_size.bit_length(),
    os.path.join("a", "b").upper(),
    os.environ.get("HOME", "").split(":"),
    os.environ["x"].lower(),
    sys.argv[1:],
    sys.version_info.major,
    sys.stdout.write("x"),
    sys.modules[__name__],
    os.sep.join([]),
    os.getcwd().upper(),
)
now = dt.datetime.now(tz=dt.timezone.utc)
print(
    (now - dt.timedelta(days=1)).isoformat().upper(),
    now.date().year.bit_length(),
    now.strftime("%Y").strip(),
    (now - now).total_seconds().hex(),
    dt.date.today().replace(day=1).weekday(),
    Decimal("1.0").quantize(Decimal("0.1")).is_nan(),
    Fraction(1, 3).numerator.bit_length(),
    (Fraction(1) + 1).denominator,
)
root = ET.fromstring("<a/>")
print(
    [c.tag for c in root.iter("b")],
    root.find("x").text if root.find("x") is not None else "",
    root.attrib.get("k"),
    ET.tostring(root, encoding="unicode").strip(),
)
with ThreadPoolExecutor(max_workers=2) as ex:
    futs = {ex.submit(pow, 2, 3): 1}
    for fut in as_completed(futs):
        print(fut.result(), futs[fut].bit_length(), fut.exception())


def gen(n: int) -> t.Generator[int, str, None]:
    got = yield n
    got.upper()
    yield from (1, 2)


g = gen(1)
next(g).bit_length()
g.send("a")
g.close()
it = itertools.groupby(sorted("ab"), key=str.lower)
print(
    [(k.upper(), list(v)) for k, v in it],
    list(itertools.chain.from_iterable([[1]])),
    [*itertools.islice(itertools.count(), 3)],
    functools.reduce(lambda a, b: a + b, [1]).bit_length(),
    functools.partial(int, base=2)("1").bit_length(),
    list(itertools.zip_longest([1], [], fillvalue=0)),
    next(itertools.product("a", "b"))[0].upper(),
    collections.ChainMap({}, {}).maps,
)
match [1, 2, {"k": Point(0, 0)}]:
    case [int(a1), b1, {"k": Point(x=0, y=yy), **rest}] if a1 > 0:
        print(a1.bit_length(), rest.keys(), yy)
    case str(st) | [st]:
        print(st)
    case _:
        pass
if (nn := len("abc")) > 2:
    print(nn.bit_length())


class Lazy:
    def __init__(self, **kw):
        self.__dict__.update(kw)
        setattr(self, "dyn", 1)

    def __getattribute__(self, n):
        return object.__getattribute__(self, n)

    class Inner:
        z = 1

    attr = property(lambda self: self.Inner.z)

    def chain(self):
        return self


print(
    Lazy(a=1).a,
    Lazy().chain().chain().attr,
    Lazy.Inner.z.bit_length(),
    Lazy.chain.__name__,
    type(Lazy()).__mro__,
    WithMeta().anything,
    super.__name__,
    globals()["p"].x,
    vars(p)["x"],
    Lazy().Inner().z,
)


def f(pos, /, both=1, *args: int, kw: str = "a", **kwargs: float) -> tuple[int, ...]:
    nonlocal_ = [a.bit_length() for a in args]
    kwargs.setdefault("z", 1.0).is_integer()
    kw.upper()
    return tuple(nonlocal_)


f(1, 2, 3, kw="x", z=1.0).count(1)
f(*[1], **{"kw": "b"})
u: Union[int, str, None] = 3
if isinstance(u, str):
    print(u.upper())
elif u is not None:
    print(u.bit_length())
x: int | str = "s" if u else 1
print(x.upper() if isinstance(x, str) else x.bit_length())
lst = [1, "a", None]
lst[1].upper()
tup = 1, "a"
tup[1].upper()
tup[0].bit_length()
l2 = [[0] * 3 for _ in range(3)]
l2[0][1].bit_length()
st = {1} | {2}
st.add(3)
(st & {1}).pop().bit_length()
"a" "b".upper()
(1, 2)[0].bit_length()
not_ = not u
print(
    not_.real,
    "abc"[::-1].upper(),
    "abc"[0].upper(),
    [1, 2][1:].copy(),
    bytes(3)[0].bit_length(),
    bytearray(b"x").decode().upper(),
    memoryview(b"a").tobytes().hex(),
    range(3).start,
    slice(1).stop,
    complex(1).real,
    divmod(1, 2)[0].bit_length(),
    input().strip(),
    print,
    print.__name__,
    NotImplemented,
    Ellipsis,
    __debug__,
    round(1.5).bit_length(),
    abs(-1).bit_length(),
    str(1).join("a"),
    repr(1).upper(),
    chr(1).upper(),
    ord("a").bit_length(),
    hash("a").bit_length(),
    id(1),
    open,
    any([]),
    all([]),
    sum([1.0]).is_integer() if False else 0,
    min("a", "b").upper(),
    reversed([1]).__next__(),
    frozenset([1]).union([2]),
    int("1").to_bytes(2, "big").hex(),
    int.from_bytes(b"a", "big").bit_length(),
    float("1").as_integer_ratio()[0].bit_length(),
    dict(a=1).items(),
    dict.fromkeys("a", 1).popitem()[1].bit_length(),
    object().__class__,
    type("X", (), {})().foo,
    Exception("a").with_traceback(None).args,
    __name__.upper(),
    __file__.upper(),
    __doc__,
)
