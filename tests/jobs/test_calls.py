"""Windows, aggregates and policies as texts, and what is said of texts that are none."""

import pytest

import windowpane as wp
from windowpane.jobs.calls import NAMES, BadCall, make, parse


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("tumbling(1 min)", wp.tumbling("1 min")),
        ("sliding(10 min, 1 s)", wp.sliding("10 min", "1 s")),
        ("sliding('10 min', \"1 s\")", wp.sliding("10 min", "1 s")),
        ("sliding(10min,1s)", wp.sliding("10 min", "1 s")),
        ("sliding(1 h 30 min, slide=5 min, origin=15 s)", wp.sliding("90 min", "5 min", origin="15 s")),
        ("sliding(100, 10, on=odometer)", wp.sliding(100, 10, on="odometer")),
        ("landmark(1 min)", wp.landmark("1 min")),
        ("cumulative(1 min, 1 day)", wp.cumulative("1 min", "1 day")),
        ("session(1.5 s)", wp.session("1.5 s")),
        ("rows(1000, slide=10).per(srcIP)", wp.rows(1000, slide=10).per("srcIP")),
        ("rows(1000).per(srcIP, 'dst port')", wp.rows(1000).per("srcIP", "dst port")),
        ("rows(10, order=arrival).per()", wp.rows(10, order="arrival").per()),
        ("delimited(start=opened, end=closed)", wp.delimited(start="opened", end="closed")),
        ("delimited(start=opened, end=none)", wp.delimited(start="opened")),
        ("per_row(5 min, every=5)", wp.per_row("5 min", every=5)),
        (" last_rows ( 10 , every = 5 s ) ", wp.last_rows(10, every="5 s")),
    ],
)
def test_a_window_reads_as_in_python(text, window):
    assert make(parse(text, "window"), "window") == window


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("count()", wp.count()),
        ("n = count()", wp.count().named("n")),
        ("vwap = weighted_mean(price, volume)", wp.weighted_mean("price", "volume").named("vwap")),
        ("quantile(price, 0.5)", wp.quantile("price", 0.5)),
        ("quantile(price, q=[0.1, 0.9,])", wp.quantile("price", [0.1, 0.9])),
        ("sum('two words')", wp.sum("two words")),
        ("top_k(name, 3)", wp.top_k("name", 3)),
        ("stddev(x, ddof=0)", wp.stddev("x", ddof=0)),
        ("sum(größe)", wp.sum("größe")),
    ],
)
def test_an_aggregate_reads_as_in_python(text, aggregate):
    assert make(parse(text, "aggregate"), "aggregate") == aggregate


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("ordered()", wp.ordered()),
        ("delay(2 s)", wp.delay("2 s")),
        ("external(marker)", wp.external("marker")),
        ("heartbeat(30 s, delay=5 s)", wp.heartbeat("30 s", delay="5 s")),
        ("melded(router, delay(1 s), sources=[a, b])", wp.melded("router", wp.delay("1 s"), ["a", "b"])),
    ],
)
def test_a_policy_reads_as_in_python(text, policy):
    assert make(parse(text, "policy"), "policy") == policy


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("window", "slidng(1 s, 1 s)", "there is no window 'slidng'. Did you mean 'sliding'?"),
        ("window", "count()", "count is no window (it is of another kind: aggregate)."),
        ("aggregate", "stream()", "there is no aggregate 'stream'."),
        ("aggregate", "check_algebra(x)", "there is no aggregate 'check_algebra'."),
        ("aggregate", "__import__('os')", "there is no aggregate '__import__'."),
        ("window", "sliding(10 min)", "missing a required argument: 'slide'. Write sliding(size, slide, "),
        ("window", "sliding(10 min 1 s)", "missing a required argument: 'slide'"),
        ("window", "session(1 s, gap=2 s)", "multiple values for argument 'gap'"),
        ("window", "session(gop=2 s)", "has no argument 'gop'. Did you mean 'gap'? Write session(gap"),
        ("window", "session(30 parsecs)", "'30 parsecs' is no duration."),
        ("window", "session(0)", "gap is 0, but it must be above 0."),
        ("window", "session 30 s", "'(' is missing before '30'. Write one such as sliding(10 min, 1 s)."),
        ("window", "session(30 s) x", "'x' is too much"),
        ("window", "session(30 s).per(k)", "session(...) has no .per(...)."),
        ("window", "rows(3).with(k)", ".with(...) cannot follow"),
        ("window", "rows(3).per(k).per(j)", "only one .per(...) can"),
        ("window", "rows(3).per(x=1)", ".per(...) takes column names only"),
        ("window", "rows(3).per(4)", "4 is no column name"),
        ("window", "sliding(size=1 s, 1 s)", "an argument without a name follows one with a name"),
        ("window", "sliding(size=1 s, size=1 s)", "'size' is given twice"),
        ("window", "sliding(1 s,, 1 s)", "an argument is missing"),
        ("window", "sliding(1 s; 1 s)", "';' cannot stand there"),
        ("window", "", "a function is missing"),
        ("aggregate", "= count()", "a function is missing"),
        ("aggregate", "sum(5)", "sum(...): 5 is no column name."),
        ("aggregate", "quantile(price, 2)", "q is 2, but it must be from 0 to 1."),
        ("aggregate", "sum(lambda: 1)", "cannot stand there"),
        ("aggregate", "sum(a + b)", "cannot stand there"),
        ("policy", "delay()", "missing a required argument: 'duration'"),
    ],
)
def test_a_text_that_is_no_call_is_told_why(kind, text, message):
    with pytest.raises(wp.errors.WindowpaneError) as raised:
        make(parse(text, kind), kind)
    assert message in str(raised.value)


def test_only_functions_of_the_public_api_can_be_called():
    for names in NAMES.values():
        assert set(names) <= set(wp.__all__)


def test_a_quoted_text_is_never_evaluated():
    call = parse("sum('__import__(\"os\")')", "aggregate")
    assert make(call, "aggregate").columns == ('__import__("os")',)
    with pytest.raises(BadCall):
        parse("sum(os.system(x))", "aggregate")
