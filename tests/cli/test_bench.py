import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import windowpane.bench
from windowpane.bench.report import Claim, Report
from windowpane.bench.runner import Bench
from windowpane.cli.main import app


def bench_that(*, holds: bool) -> Bench:
    def run(quick, progress):
        progress(0, 1, "only case")
        bar = 10 if holds else 30
        return Report("toy", {"quick": quick}, [{"case": "x", "speed": 20}], [Claim("fast", 20, bar)])

    return Bench("toy", "a toy", run)


@pytest.fixture(params=[True, False], ids=["holds", "fails"])
def holds(request, monkeypatch):
    monkeypatch.setattr(windowpane.bench, "BENCHES", (bench_that(holds=request.param),))
    return request.param


def invoke(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


def test_json_is_one_object_and_nothing_else(holds):
    outcome = invoke("toy", "--json", "--quick")
    document = json.loads(outcome.stdout)
    assert list(document) == ["bench", "machine", "parameters", "rows", "claims"]
    assert document["parameters"] == {"quick": True}
    assert document["rows"] == [{"case": "x", "speed": 20}]
    assert document["claims"] == [{"name": "fast", "value": 20, "bar": 10 if holds else 30, "holds": holds}]
    assert outcome.exit_code == (0 if holds else 1)


def test_the_table_for_people_shows_rows_and_claims(holds):
    outcome = invoke("toy")
    assert "speed" in outcome.stdout
    assert "fast" in outcome.stdout
    assert outcome.exit_code == (0 if holds else 1)


def test_the_table_says_on_which_side_of_its_bar_a_value_must_be(monkeypatch):
    claims = [Claim("fast", 1.0088, 1.01, at_most=True), Claim("slow", 20, 10)]
    report = Report("toy", {"unit": "one update"}, [{"case": "x"}], claims)
    monkeypatch.setattr(windowpane.bench, "BENCHES", (Bench("toy", "a toy", lambda *_: report),))
    shown = " ".join(invoke("toy").stdout.replace("│", " ").split())
    assert "unit: one update" in shown
    assert "fast 1.009 at most 1.01 yes" in shown
    assert "slow 20 at least 10 yes" in shown


def test_parameters_in_words_have_lines_of_their_own(monkeypatch):
    parameters = {"updates": 20_000, "x": "the load; of figure 9 slow keys", "clock": "virtual time"}
    report = Report("toy", parameters, [{"case": "x"}])
    monkeypatch.setattr(windowpane.bench, "BENCHES", (Bench("toy", "a toy", lambda *_: report),))
    lines = invoke("toy").stdout.splitlines()
    assert "updates: 20,000; clock: virtual time" in lines
    assert "x: the load; of figure 9 slow keys" in lines


def test_points_of_figures_are_a_table_for_each_figure_with_a_column_for_each_x(monkeypatch):
    places = [
        ("5a", "queue", 1.0, 0.5),
        ("5a", "queue", 2.0, 0.75),
        ("5a", "other", 2.0, 3.0),
        ("9", "q", 8, 4),
    ]
    rows = [dict(zip(("figure", "series", "x", "value"), place, strict=True)) for place in places]
    report = Report("toy", {}, rows)
    monkeypatch.setattr(windowpane.bench, "BENCHES", (Bench("toy", "a toy", lambda *_: report),))
    lines = [line.replace("┃", "│").split("│")[1:-1] for line in invoke("toy").stdout.splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if line]
    assert cells[:3] == [["series", "1", "2"], ["queue", "0.5", "0.75"], ["other", "-", "3"]]
    assert cells[3:5] == [["series", "8"], ["q", "4"]]


def test_a_pipe_gets_tables_as_wide_as_they_are(monkeypatch):
    wide = {f"column number {i}": 1_234.5 for i in range(20)}
    report = Report("toy", {}, [wide])
    monkeypatch.setattr(windowpane.bench, "BENCHES", (Bench("toy", "a toy", lambda *_: report),))
    assert all(name in invoke("toy").stdout for name in wide)


@pytest.mark.parametrize("columns", [100, 60])
def test_a_narrow_terminal_gets_words_in_several_lines_and_whole_figures(monkeypatch, columns):
    row = {"case": "updates in step, ten keys"} | {f"column {i}": 10_000.0 + i for i in range(10)}
    report = Report("toy", {}, [row])
    monkeypatch.setattr(windowpane.bench, "BENCHES", (Bench("toy", "a toy", lambda *_: report),))
    for name, value in {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": str(columns)}.items():
        monkeypatch.setenv(name, value)
    words = invoke("toy").stdout.split()
    assert {"updates", "in", "step,", "ten", "keys", *(f"{value:,}" for value in range(10_000, 10_010))} <= {
        *words
    }


def test_what_falls_short_is_told_to_people_and_programs(monkeypatch):
    bench = bench_that(holds=True)
    short = replace(bench, run=lambda *a, **o: replace(bench.run(*a, **o), falls_short=["slow [in] winter"]))
    monkeypatch.setattr(windowpane.bench, "BENCHES", (short,))
    assert "falls short: slow [in] winter" in invoke("toy").stdout
    assert json.loads(invoke("toy", "--json").stdout)["parameters"]["falls_short"] == "slow [in] winter"
    assert invoke("toy").exit_code == 0


def test_all_runs_every_benchmark(holds):
    assert invoke("--all").exit_code == (0 if holds else 1)


@pytest.mark.usefixtures("holds")
class TestRefusals:
    def test_an_unknown_name_is_answered_with_the_known_ones(self):
        outcome = invoke("toi")
        assert outcome.exit_code == 2
        assert "there is no benchmark 'toi'. There are: toy." in " ".join(outcome.stderr.split())

    def test_no_name_asks_for_one(self):
        assert "name a benchmark: toy; or give --all." in " ".join(invoke().stderr.split())

    def test_json_of_all_is_refused(self):
        assert "name one benchmark instead of --all." in " ".join(invoke("--all", "--json").stderr.split())


def test_the_list_names_the_operator_benchmark():
    outcome = invoke("--list")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("operator")


def test_a_claim_about_nothing_measured_does_not_hold():
    assert not Claim("nan", float("nan"), 0).holds
    assert not Claim("nan", float("nan"), 0, at_most=True).holds
    assert Claim("small", 1, 2, at_most=True).holds
