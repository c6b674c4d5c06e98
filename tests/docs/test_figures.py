"""The README's figures are what the benchmark printed."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = {
    "bench": "operator",
    "machine": {"cpu": "Some CPU", "python": "3.11.0"},
    "parameters": {"published_on": "one thread of a Xeon"},
    "rows": [
        {
            "case": "a",
            "variant": 20,
            "rate": 100_000,
            "tuples_per_second": 98_700_000,
            "published": 32_000_000,
        },
        {
            "case": "a",
            "variant": 20,
            "rate": 2_000,
            "tuples_per_second": 123_400_000,
            "published": 32_000_000,
        },
        {"case": "f", "variant": 1_000, "rate": 2_000, "tuples_per_second": 5_000_000, "published": None},
        {"case": "f", "variant": 1_000, "rate": 100_000, "tuples_per_second": 6_000_000, "published": None},
    ],
    "claims": [{"name": "a is fast", "holds": True}, {"name": "f is fast", "holds": False}],
}


@pytest.fixture
def figures():
    spec = importlib.util.spec_from_file_location("bench_table", ROOT / "scripts" / "bench_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_shows_each_case_beside_the_published_figure(figures):
    assert figures.table(DOCUMENT).splitlines() == [
        "| million tuples/s | published Java | at 2,000/s | at 100,000/s |",
        "|---|---:|---:|---:|",
        "| 20 tumbling windows, in order | 32 | 123 | 98.7 |",
        "| 1,000 count windows, 20% late | - | 5 | 6 |",
        "",
        (
            "Ours: one core of Some CPU, Python 3.11.0. The Java: one thread of a Xeon, so "
            "machines may differ. Claims that did not hold: f is fast."
        ),
    ]


def test_the_readme_has_a_place_for_it(figures):
    page = figures.fill((ROOT / "README.md").read_text("utf-8"), DOCUMENT)
    assert "| 20 tumbling windows, in order | 32 | 123 | 98.7 |" in page
    assert figures.fill(page, DOCUMENT) == page


def test_a_page_without_a_place_is_left_alone(figures):
    with pytest.raises(SystemExit, match="no place for the figures of 'operator'"):
        figures.fill("# Another page", DOCUMENT)
