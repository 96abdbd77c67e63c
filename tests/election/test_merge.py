"""JSON samples merged field by field."""

import csv
import json
import random
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.cli import cli
from rangevote.election.summary import why
from rangevote.errors import DataError, SetupError, UsageError
from rangevote.similarity.json_leaves import canonical, leaves, path_steps


def merge(*values, **options):
    return rv.elect([x if isinstance(x, str) else json.dumps(x) for x in values], rule="merge", **options)


def merged(*values, **options):
    result = merge(*values, **options)
    return None if result.winner is None else json.loads(result.winner)


def test_each_field_is_elected_by_itself():
    result = merge(
        {"name": "Ann", "age": 31, "city": "Paris"},
        {"name": "Ann", "age": 32, "city": "Paris"},
        {"name": "Anna", "age": 32, "city": "Lyon"},
    )
    assert result.winner == '{"name":"Ann","age":32,"city":"Paris"}'
    assert result.merged.shares == pytest.approx({"name": 2 / 3, "age": 2 / 3, "city": 2 / 3})
    assert (result.merged.left_out, result.merged.equal, result.index) == ((), 1, 1)
    assert result.hypothesis.text == json.dumps({"name": "Ann", "age": 32, "city": "Paris"})


def test_the_best_whole_candidate_is_named_where_none_says_what_was_merged():
    result = merge({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 1}, {"a": 2, "b": 1, "c": 1})
    assert result.winner == '{"a":1,"b":1,"c":1}'
    assert (result.merged.equal, result.index) == (None, 0)
    assert result.hypothesis == rv.Hypothesis('{"a":1,"b":1,"c":1}')
    assert result.margin == pytest.approx(1 / 3)
    fields = result.fields()
    assert fields["winners"] == [{"index": 0, "winner": result.winner}]
    assert fields["merged"]["shares"] == pytest.approx({"a": 2 / 3, "b": 2 / 3, "c": 2 / 3})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1.0, 2], 1),
        (["Paris", " paris", "Rome"], " paris"),  # of equally many forms the first in the alphabet
        (["2024-01-05", "5 January 2024", "2024/01/05"], "2024-01-05"),
        (["05/01/2024", "2024-01-05", "01/05/2024"], None),  # which day comes first is not guessed
        ([True, True, "true"], True),
        ([1, True, "1"], None),  # three types
        ([None, None, 5], None),
        (["5", 5, 5], 5),
        ([{"x": 1}, [1], [1]], [1]),
        ([[], [], [1]], []),
        ([{}, {}, {"x": 1}], {}),
    ],
)
def test_values_are_equal_after_normalising_and_types_are_never_mixed(values, expected):
    result = merge(*({"id": 1, "f": value} for value in values))
    winner = json.loads(result.winner)
    if values.count(None) == 2:
        assert winner == {"id": 1, "f": None}
    elif expected is None:
        assert (winner, result.merged.left_out) == ({"id": 1}, ("f",))
    else:
        assert winner["f"] == expected
        assert type(winner["f"]) is type(expected)


LONG = list("abcdef")
#: what it shows -> (samples, min_share, the merged value, what is left out)
MERGED = {
    "absence is a vote": ([{"a": 1, "fax": 5}, {"a": 1}, {"a": 1}], None, {"a": 1}, ()),
    "that may split": ([{"a": 1, "fax": 5}, {"a": 1, "fax": 6}, {"a": 1}], None, {"a": 1}, ("fax",)),
    "or tie": ([{"a": 1, "fax": 5}, {"a": 1}], None, {"a": 1}, ("fax",)),
    "paths in objects": (
        [{"id": 1, "to": {"city": city, "zip code": code}} for city, code in ("P1", "P2", "R3")],
        None,
        {"id": 1, "to": {"city": "P"}},
        ('to."zip code"',),
    ),
    "nothing left": (
        [{"id": 1, "a": {k: v}} for k, v in (("x", 1), ("x", 2), ("y", 3))],
        None,
        {"id": 1},
        ("a.x",),
    ),
    "nor a name": ([{"id": 1, "a": {k: 1}} for k in "xyz"], None, {"id": 1}, ("a",)),
    "names are no free text": ([{"id": 1, "n": n} for n in ("Bo", "Ida")], None, {"id": 1}, ("n",)),
    "items are counted": ([["x", "x", "y"], ["x", "y", "x"], ["x", "y"]], None, ["x", "x", "y"], ()),
    "by most": ([["x"], ["x", "x"], ["x"]], None, ["x"], ()),
    "no item": ([{"id": 1, "a": ["x"]}, {"id": 1, "a": ["y"]}], None, {"id": 1}, ("a[]",)),
    "in most samples' order": ([LONG, LONG, LONG, ["f"], ["f"]], None, LONG, ()),
    "three of four": ([{"a": 1, "b": 1}] * 3 + [{"a": 1, "b": 2}], None, {"a": 1, "b": 1}, ()),
    "are not enough": ([{"a": 1, "b": 1}] * 3 + [{"a": 1, "b": 2}], 0.9, {"a": 1}, ("b",)),
    "half is": ([{"a": 1}, {"a": 1}, {"a": 2}, {"a": 3}], 0.5, {"a": 1}, ()),
    "no tie": ([{"id": 1, "a": 1}, {"id": 1, "a": 2}], 0.5, {"id": 1}, ("a",)),
    "absence first": ([{"id": 1, "a": 1}] * 2 + [{"id": 1}] * 3, 0.3, {"id": 1}, ()),
}


@pytest.mark.parametrize(("samples", "share", "expected", "left_out"), MERGED.values(), ids=MERGED)
def test_a_value_needs_a_majority_and_what_has_none_is_left_out(samples, share, expected, left_out):
    result = merge(*samples, min_share=share)
    assert (json.loads(result.winner), result.merged.left_out) == (expected, left_out)


def test_free_text_is_elected_by_the_similarity():
    texts = [
        "the train to Paris leaves at ten",
        "the train to Paris leaves at ten o'clock",
        "the train leaves for Paris at ten",
        "no idea",
    ]
    result = merge(*({"id": 1, "note": text} for text in texts), similarity="overlap_1")
    assert json.loads(result.winner)["note"] == rv.elect(texts, similarity="overlap_1", cutoff=0.5).winner
    assert result.merged.shares["note"] == pytest.approx(3 / 4)
    strict = merge(*({"id": 1, "note": text} for text in texts), similarity="overlap_1", cutoff=1.0)
    assert strict.merged.left_out == ("note",)


def test_lists_are_aligned_by_their_items():
    a, b, c = ({"item": name, "price": price} for name, price in (("ink", 3), ("pen", 2), ("pad", 5)))
    result = merge([a, b, c], [b, c], [a, {**b, "price": 9}, c])
    assert json.loads(result.winner) == [a, b, c]
    assert result.merged.shares["[1].price"] == pytest.approx(2 / 3)
    assert result.merged.shares["[1].item"] == pytest.approx(1.0)


def test_weights_and_shares_of_a_panel_count():
    assert merged({"a": 1}, {"a": 2}, {"a": 3}, weights=[0.2, 0.6, 0.2]) == {"a": 2}
    voters = {"m": ['{"a": 1}'], "n": ['{"a": 2}', '{"a": 2}', '{"a": 2}']}
    standing = ['{"a": 1}', '{"a": 2}']
    result = rv.elect(standing, voters=voters, rule="merge", shares={"m": 3, "n": 1})
    assert (result.winner, result.merged.shares) == ('{"a":1}', {"a": 0.75})


def test_only_candidates_stand():
    result = rv.elect(['{"a": 1}'], voters=['{"a": 2}'] * 3 + ['{"a": 1}'] * 2, rule="merge")
    assert result.no_winner == "no field has a majority of the samples"


def test_samples_that_are_not_json_abstain():
    result = merge('{"a": 1}', "sorry", '```json\n{"a": 1}\n```', "<think>hm</think>\n" + '{"a": 2}', "x")
    assert (result.winner, result.merged.abstained, result.index) == ('{"a":1}', 2, 0)
    assert result.merged.shares == pytest.approx({"a": 2 / 3})
    nobody = merge("sorry", "no", "[" * 10_000)
    assert (nobody.winner, nobody.index, nobody.no_winner) == (None, None, "no sample is JSON")
    deep = "[" * 100 + "1" + "]" * 100
    assert merge('{"a": 1}', deep).merged.abstained == 1


SCHEMA = {
    "type": "object",
    "required": ["a", "b"],
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}


def test_samples_that_do_not_fit_the_schema_abstain():
    values = [{"a": 1, "b": 2}, {"a": "1", "b": 2}, {"a": "1", "b": 2}]
    result = merge(*values, schema=SCHEMA)
    assert (result.winner, result.merged.abstained) == ('{"a":1,"b":2}', 2)
    assert "|schema:" in result.signature
    assert merge({"a": "x"}, schema=SCHEMA).no_winner == "no sample is JSON that fits the schema"


def test_a_whole_sample_is_taken_where_the_merged_object_does_not_fit():
    values = [{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 4}]
    result = merge(*values, schema=SCHEMA)
    assert result.winner == json.dumps(values[0])
    assert "'b' is a required property" in result.merged.whole
    assert result.fields()["merged"]["whole"] == result.merged.whole


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"required": 5}, [], "x"])
def test_a_schema_that_is_none_is_refused(schema):
    with pytest.raises(UsageError, match="schema"):
        merge({"a": 1}, schema=schema)


def test_a_schema_fetches_nothing():
    with pytest.raises(UsageError, match="schema cannot be used"):
        merge({"a": 1}, schema={"$ref": "http://localhost:1/schema.json"})


@pytest.mark.parametrize(
    "options",
    [{"winners": 2}, {"likelihood": 0.1}, {"scores": {"reward": 1.0}}, {"rule": "range", "schema": {}}],
)
def test_options_without_a_meaning_for_merging_are_refused(options):
    with pytest.raises(UsageError, match="merge"):
        rv.elect(["{}"], **{"rule": "merge", **options})


def test_tool_calls_are_not_merged():
    call = rv.Hypothesis(tool_calls=[rv.ToolCall("f", {"a": 1})])
    with pytest.raises(UsageError, match="tool calls"):
        rv.elect([call], rule="merge")


def test_an_electorate_merges_the_same():
    samples = ['{"a": 1, "b": 1}', '{"a": 1, "b": 2}', '{"a": 2, "b": 2}']
    electorate = rv.Electorate(samples, rule="merge").add(samples[:1]).add(samples[1:])
    assert electorate.result().merged == rv.elect(samples, rule="merge").merged
    with pytest.raises(UsageError, match="merge"):
        electorate.decided()


def test_the_reason_names_the_weakest_field_and_what_is_left_out():
    samples = [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}]
    reason = "".join(why(merge(*samples)))
    assert '{"a":1,"b":1}' in reason
    assert "least agreement, b, has 67 % of the vote" in reason
    assert "majority: c." in reason
    assert "best whole candidate" in reason
    assert "required property" in "".join(why(merge(*samples, schema={"required": ["c"]})))


def test_fields_of_a_candidate_are_explained():
    explained = merge({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}).explain()
    assert [(field.path, field.agree, field.of) for field in explained.fields] == [("a", 3, 3), ("b", 2, 3)]


def rows_of(path):
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text().splitlines()))
    return list(map(json.loads, path.read_text().splitlines()))


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_vote_writes_the_merged_object(tmp_path, to):
    path, schema, out = tmp_path / "in.jsonl", tmp_path / "schema.json", tmp_path / f"out.{to}"
    samples = ['{"a": 1, "b": 1}', '{"a": 1, "b": 2}', '{"a": 2, "b": 2}', "none"]
    lines = [{"id": 1, "candidates": samples}, {"id": 2, "candidates": ["none", "nothing"]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    schema.write_text(json.dumps(SCHEMA))
    options = ["--rule", "merge", "--schema", str(schema), "-o", str(out), "--to", to]
    done = CliRunner().invoke(cli, ["vote", str(path), *options])
    assert done.exit_code == 0, done.output
    first, second = rows_of(out)
    merged = first["merged"] if to == "jsonl" else json.loads(first["merged"])
    assert (first["winner"], int(first["index"]), merged["abstained"]) == ('{"a":1,"b":2}', 1, 1)
    assert (second["winner"] or None, second["no_winner"]) == (None, "no sample is JSON that fits the schema")


@pytest.mark.parametrize(
    ("text", "error"), [("{", DataError), ("[]", UsageError), ('{"type": 5}', UsageError), (None, SetupError)]
)
def test_vote_refuses_a_file_that_is_no_schema(tmp_path, text, error):
    path, schema = tmp_path / "in.jsonl", tmp_path / "schema.json"
    path.write_text(json.dumps({"id": 1, "candidates": ["{}"]}))
    if text is not None:
        schema.write_text(text)
    done = CliRunner().invoke(cli, ["vote", str(path), "--rule", "merge", "--schema", str(schema)])
    assert type(done.exception) is error


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["a", "A", "b c d", "b c e", "2024-01-05"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(values, st.integers(1, 4))
def test_merging_equal_values_gives_the_value_back(value, times):
    result = merge(*[json.dumps(value)] * times)
    assert result.winner == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert list(result.merged.shares.values()) == pytest.approx([1.0] * len(result.merged.shares))
    assert (result.merged.left_out, result.merged.equal) == ((), 0)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(values, st.sampled_from([0.1, 0.2, 0.3, 1])), min_size=1, max_size=5),
    st.sampled_from([None, 0.2, 0.5, 0.7]),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_samples_does_not_matter(samples, share, shuffler):
    first, second = (
        merge(*(json.dumps(value) for value, _ in some), weights=[x for _, x in some], min_share=share)
        for some in (samples, shuffler.sample(samples, len(samples)))
    )
    assert (first.winner, first.no_winner) == (second.winner, second.no_winner)
    if first.merged is not None:
        assert first.merged.shares == pytest.approx(second.merged.shares)
        assert set(first.merged.left_out) == set(second.merged.left_out)


def without_indices(value):
    """The leaves with the names on the way to them, whatever their place in lists."""
    return {
        (tuple(step for step in path_steps(path) if isinstance(step, str)), leaf)
        for path, leaf in leaves(value)
    }


def lists_of(value, path=()):
    """Every list with the names on the way to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from lists_of(inner, (*path, name))
    if isinstance(value, list):
        yield path, Counter(map(canonical, value))
        for inner in value:
            yield from lists_of(inner, (*path, 0))


@settings(max_examples=200)
@given(st.lists(values, min_size=1, max_size=5))
def test_every_leaf_occurs_in_some_sample_and_no_item_more_often_than_there(samples):
    result = merge(*map(json.dumps, samples))
    if result.winner is None:
        return
    value = json.loads(result.winner)
    assert without_indices(value) <= set().union(*map(without_indices, samples))
    most = {}
    for path, counts in (one for sample in samples for one in lists_of(sample)):
        most[path] = most.get(path, Counter()) | counts
    for path, counts in lists_of(value):
        assert all(number <= max(1, most[path][item]) for item, number in counts.items())
    assert len(result.merged.shares) == len(leaves(value))


def test_many_items_are_merged_in_time():
    shuffler = random.Random(1)
    items = [{"item": f"thing {i}", "price": i} for i in range(60)]
    samples = [[{**x, "price": shuffler.choice([x["price"]] * 9 + [0])} for x in items] for _ in range(9)]
    assert merged(*samples) == items


def test_a_candidate_without_a_text_is_named():
    with pytest.raises(DataError):
        rv.elect([[1, 2], [1, 3]], rule="merge")
