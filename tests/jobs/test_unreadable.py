"""Job files that readers of YAML, of TOML and of numbers give up at: a line and a remedy, no traceback."""

import pytest

from windowpane.jobs import BadJob, load

YAML = """\
source: {format: rate, options: {a: OPTION}}
stream: {time: timestamp, delay: DELAY}
query:
  window: WINDOW
  aggregates: count()
sink: {format: console}
trigger: {processing_time: EVERY}
memory: MEMORY  # NOTE
"""
TOML = """\
memory = MEMORY
OTHER

[source]
format = "rate"
options = {a = OPTION}
[stream]
time = "timestamp"
delay = "2 s"
[query]
window = "tumbling(1 s)"
aggregates = "count()"
[sink]
format = "console"
"""
USUAL = {
    "OPTION": "1",
    "DELAY": "2 s",
    "WINDOW": "tumbling(1 s)",
    "EVERY": "1 s",
    "MEMORY": '"64 MB"',
    "NOTE": "ours",
    "OTHER": "",
}
DEEP, LONG, SIGNS = 1000, "1" * 5000, "\\"
TOO_DEEP = "values are nested too deeply. Is a bracket left open, or does an alias refer to itself?"
TOO_WIDE = "this number has too many digits. Write a smaller one, or put it in quotes if it is a text."


def complaint(folder, name, text, changed):
    """The line and the message; a message stays short whatever the file holds."""
    for word, usual in USUAL.items():
        text = text.replace(word, changed.get(word, usual))
    file = folder / name
    file.write_text(text, "utf-8")
    with pytest.raises(BadJob) as raised:
        load(file)
    line, told = str(raised.value).removeprefix(f"{file}:").split(": ", 1)
    assert len(told) < 300
    return int(line), told


def unreadable(value, kind):
    return (
        f"{value!r} cannot be read as {kind}. Correct it, or put it in quotes, without a tag such as !!int, "
        "if it is a text."
    )


def test_the_usual_files_are_sound(tmp_path):
    for name, text in (("job.yaml", YAML), ("job.toml", TOML)):
        for word, usual in USUAL.items():
            text = text.replace(word, usual)  # noqa: PLW2901 - word by word
        (tmp_path / name).write_text(text, "utf-8")
        assert load(tmp_path / name).memory == 64_000_000


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2024-02-30", "a date or time"),
        ("2024-01-01T25:00:00Z", "a date or time"),
        ("2024-01-01T00:00:00+99:99", "a date or time"),
        ("0x_", "a whole number"),
    ],
)
def test_a_value_that_only_looks_like_a_date_or_a_number_is_told(tmp_path, value, kind):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"OPTION": value})
    assert (line, told) == (1, f"source.options.a: {unreadable(value, kind)}")


@pytest.mark.parametrize(
    ("tag", "value", "kind"),
    [
        ("!!int", "abc", "a whole number"),
        ("!!int", "", "a whole number"),
        ("!!float", "abc", "a number"),
        ("!!bool", "abc", "true or false"),
        ("!!timestamp", "abc", "a date or time"),
    ],
)
def test_a_value_that_does_not_fit_its_tag_is_told(tmp_path, tag, value, kind):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"MEMORY": f"{tag} '{value}'"})
    assert (line, told) == (8, f"memory: {unreadable(value, kind)}")


def test_a_control_character_is_told_with_its_line_even_in_a_comment(tmp_path):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"NOTE": "\a"})
    assert (line, told) == (8, r"this is no YAML: '\x07' cannot stand there. Remove this character.")
    assert complaint(tmp_path, "job.toml", TOML, {"OTHER": "# \a"})[0] == 2


@pytest.mark.parametrize("escape", ["UFFFFFFFF", "U00110000"])
def test_an_escape_of_no_character_is_told(tmp_path, escape):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"OPTION": f'"{SIGNS}{escape}"'})
    assert line == 1
    assert "Check the escapes such as" in told


@pytest.mark.parametrize(
    ("name", "text", "changed", "line"),
    [
        ("job.yaml", YAML, {"MEMORY": "[" * DEEP}, 8),
        ("job.yaml", YAML, {"MEMORY": "[" * DEEP + "]" * DEEP}, 8),
        ("job.yaml", YAML, {"MEMORY": "{a: " * DEEP}, 8),
        ("job.yaml", YAML, {"MEMORY": "64 MB\nspark:\n  " + "- " * DEEP + "1"}, 10),
        ("job.yaml", YAML, {"MEMORY": "[" * 60 + "]" * 60}, 8),
        ("job.toml", TOML, {"OTHER": "x = " + "[" * DEEP}, 2),
        ("job.toml", TOML, {"OTHER": "x = " + "[" * DEEP + "]" * DEEP}, 2),
        ("job.toml", TOML, {"OTHER": "x = " + "[" * 60 + "]" * 60}, 2),
        ("job.toml", TOML, {"OTHER": "x = " + "{a = " * DEEP}, 2),
        ("job.toml", TOML, {"OTHER": ".".join("a" * DEEP) + " = 1"}, 2),
        ("job.toml", TOML, {"OTHER": f"[{'.'.join('a' * DEEP)}]"}, 2),
    ],
    ids=lambda value: str(value)[:40],
)
def test_values_that_are_nested_too_deeply_are_told(tmp_path, name, text, changed, line):
    assert complaint(tmp_path, name, text, changed) == (line, TOO_DEEP)


@pytest.mark.parametrize("window", ["melded(" * DEEP + ")" * DEEP, f"rows({'[' * DEEP}{']' * DEEP})"])
def test_calls_that_are_nested_too_deeply_are_told(tmp_path, window):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"WINDOW": window})
    assert line == 4
    assert told.startswith(f"query.window: '{window[:60]}...' is no window: its brackets are nested too deep")
    assert told.endswith("Write one such as sliding(10 min, 1 s).")


def test_a_long_call_with_an_open_bracket_is_told_by_its_beginning(tmp_path):
    line, told = complaint(tmp_path, "job.yaml", YAML, {"WINDOW": "f(" * DEEP})
    assert (line, "...' has brackets that do not match." in told) == (4, True)


@pytest.mark.parametrize(
    ("changed", "line", "message"),
    [
        ({"MEMORY": LONG}, 8, f"memory: {unreadable(LONG[:60] + '...', 'a whole number')}"),
        ({"MEMORY": f"0x{LONG}"}, 8, f"memory: {TOO_WIDE}"),
        ({"OPTION": "1" + ":01" * 3000}, 1, f"source.options.a: {TOO_WIDE}"),
        ({"MEMORY": f"{LONG} MB"}, 8, f"memory: '{LONG[:60]}...' has too many digits. Write less."),
        ({"DELAY": f"{LONG} s"}, 2, f"stream.delay: '{LONG[:60]}...' has too many digits. Write less."),
        ({"DELAY": f"{LONG}.5 s"}, 2, f"stream.delay: '{LONG[:60]}...' has too many digits. Write less."),
        ({"EVERY": f"{LONG} s"}, 7, f"'{LONG[:60]}...' has too many digits. Write less."),
        ({"WINDOW": f"tumbling({LONG})"}, 4, "...' is no window: a number has too many digits. Write one"),
        ({"WINDOW": f"tumbling({LONG} s)"}, 4, "...' is no window: a number has too many digits. Write one"),
        ({"WINDOW": f"tumbling({LONG}s)"}, 4, "...' is no window: a number has too many digits. Write one"),
        ({"WINDOW": f"tumbling('{LONG}.5 s')"}, 4, "tumbling(...) cannot take these arguments"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_number_of_too_many_digits_is_told(tmp_path, changed, line, message):
    found, told = complaint(tmp_path, "job.yaml", YAML, changed)
    assert found == line
    assert message in told


@pytest.mark.parametrize("number", [LONG, f"0x{LONG}"])
def test_a_number_of_too_many_digits_is_told_of_toml(tmp_path, number):
    line, told = complaint(tmp_path, "job.toml", TOML, {"OPTION": number})
    assert line == 6
    assert told.endswith(TOO_WIDE)
