"""The checker accepts true declarations and finds a counterexample to wrong ones."""

import numpy as np
import pyarrow as pa
import pytest

from windowpane.core.aggregates import bind
from windowpane.core.algebra_check import check_algebra
from windowpane.core.arrays import Column, Tuples
from windowpane.core.partials.base import Ranged
from windowpane.values import aggregates as ag
from windowpane.values.aggregates import Algebra
from windowpane.values.errors import BadAggregate, WrongType
from windowpane.values.user_aggregates import UserAggregate

SAMPLE = np.array([3.0, -1.0, 4.5, 0.0, 10.0, 2.0, 2.0])


class Total(UserAggregate):
    """A right one, with an inverse; the tests break one method at a time."""

    columns, algebra, type = ("x",), Algebra("distributive", invertible=True), pa.float64()

    def lift(self, x):
        return (x.astype(float),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0.0,)

    def invert(self, a, b):
        return (a[0] - b[0],)


class MeanOfMeans(Total):
    algebra = Algebra("algebraic")

    def combine(self, a, b):
        return ((a[0] + b[0]) / 2,)


class Latest(Total):
    algebra = Algebra("algebraic")

    def combine(self, a, b):
        return (np.where(np.isnan(b[0]), a[0], b[0]),)

    def identity(self):
        return (np.nan,)


class LatestInOrder(Latest):
    algebra = Algebra("algebraic", commutative=False)


class WrongInverse(Total):
    def invert(self, a, b):
        return (a[0] - abs(b[0]),)


class WrongIdentity(Total):
    def identity(self):
        return (1.0,)


class NoInverse(Total):
    invert = UserAggregate.invert


class NotAssociative(Total):
    algebra = Algebra("algebraic", associative=False)


class WrongShape(Total):
    def lift(self, x):
        return (x[:1],)


class TooManyParts(Total):
    def lift(self, x):
        return x, x


class Weighted(UserAggregate):
    """Two columns and two parts."""

    columns, algebra, type = ("x", "w"), Algebra("algebraic"), pa.float64()

    def lift(self, x, w):
        return x * w, w

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def lower(self, partial):
        return partial[0] / partial[1]

    def identity(self):
        return 0.0, 0.0


@pytest.mark.parametrize("aggregate", [Total(), LatestInOrder()], ids=lambda a: a.function)
def test_a_true_declaration_passes(aggregate):
    check_algebra(aggregate, SAMPLE)
    check_algebra(Weighted(), SAMPLE, np.ones(len(SAMPLE)))


@pytest.mark.parametrize(
    ("aggregate", "law", "remedy"),
    [
        (MeanOfMeans(), r"(x + y) + z = x + (y + z), associative", "Keep more in the partial"),
        (Latest(), "x + y = y + x, commutative", "commutative=False"),
        (WrongInverse(), "(x + y) - y = x, invertible", "invertible=False"),
        (WrongIdentity(), "identity + x = x", "Let identity() give the partial of no tuples"),
    ],
    ids=lambda v: getattr(v, "function", None),
)
def test_a_wrong_declaration_is_found_and_the_message_names_law_values_and_remedy(aggregate, law, remedy):
    with pytest.raises(BadAggregate) as error:
        check_algebra(aggregate, SAMPLE)
    message = str(error.value)
    assert message.startswith(f"{aggregate.function} breaks the law {law}: with x = [")
    assert remedy in message
    assert "the left side is" in message


def test_the_counterexample_in_the_message_is_a_real_one():
    with pytest.raises(BadAggregate) as error:
        check_algebra(WrongInverse(), np.array([-5.0]))
    assert "x = [-5.0], y = [-5.0], z = [-5.0] the left side is -15.0, the right side -5.0" in str(
        error.value
    )


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (
            NotAssociative(),
            "windowpane shares partials between windows, so the combine() of an aggregate must be",
        ),
        (NoInverse(), "is declared invertible but has no invert()"),
    ],
    ids=lambda v: getattr(v, "function", None),
)
def test_a_declaration_that_cannot_be_used_is_refused_when_bound_and_when_checked(aggregate, message):
    for use in (lambda: bind(aggregate, {"x": pa.float64()}), lambda: check_algebra(aggregate, SAMPLE)):
        with pytest.raises(BadAggregate) as error:
            use()
        assert message in str(error.value)


def test_a_lift_of_the_wrong_shape_is_refused():
    with pytest.raises(BadAggregate, match=r"part 0 with shape \(1,\) for 7 tuples"):
        check_algebra(WrongShape(), SAMPLE)
    with pytest.raises(BadAggregate, match=r"identity\(\) has 1 parts, but lift\(\) gave 2"):
        check_algebra(TooManyParts(), SAMPLE)


def test_a_sample_of_the_wrong_shape_is_refused():
    with pytest.raises(BadAggregate, match=r"reads the columns x, w, but the sample has 1 columns"):
        check_algebra(Weighted(), SAMPLE)
    with pytest.raises(BadAggregate, match="one length above 0"):
        check_algebra(ag.sum("x"), [])


def test_a_text_column_is_refused_for_a_users_aggregate():
    with pytest.raises(WrongType, match=r"column 'x' has type string"):
        bind(Total(), {"x": pa.string()})


def test_a_users_aggregate_is_named_after_its_class_unless_named():
    total = Total()
    assert total.name == "total_x"
    assert total.named("all").name == "all"
    assert total.name == "total_x"


def test_a_users_aggregate_skips_nulls_and_is_null_without_tuples():
    bound = bind(Weighted(), {"x": pa.float64(), "w": pa.float64()})
    x = Column(np.array([1.0, 5.0, 9.0, 2.0]), np.array([True, True, False, True]))
    w = Column(np.array([1.0, 3.0, 1.0, 1.0]))
    tuples = Tuples(np.arange(4), np.zeros(4, np.int64), {"x": x, "w": w})
    rows, ends = np.array([2, 0, 1, 2]), (np.array([0, 1, 0, 2]), np.array([1, 2, 3, 3]))
    ranged = tuple(Ranged(p, p.fold(tuples, rows, 3), *ends) for p in bound.partials)
    assert bound.lower(ranged, lambda _, ids: pa.array(ids)).to_pylist() == [5.0, None, 18 / 5, 1.5]


INTS = [3, None, 1, 2**40, 5, 5, -7]
FLOATS = [1.0, float("nan"), float("inf"), -0.0, 0.0, None, 2.5]
WORDS = ["a", "b", None, "", "zz", "a", "é"]


OF_NUMBERS = (
    ag.count, ag.sum, ag.min, ag.max, ag.mean, ag.geometric_mean, ag.variance, ag.stddev, ag.min_count,
    ag.max_count, ag.first, ag.last, ag.m4, ag.median, ag.distinct, ag.collect, ag.approx_distinct,
)  # fmt: skip
OF_WORDS = (ag.count, ag.first, ag.last, ag.distinct, ag.collect, ag.approx_distinct)


@pytest.mark.parametrize(
    ("aggregate", "columns"),
    [
        *((make("x"), [column]) for column in (INTS, FLOATS) for make in OF_NUMBERS),
        *((make("x"), [WORDS]) for make in OF_WORDS),
        (ag.top_k("x", 2), [WORDS]),
        (ag.heavy_hitters("x", 0.4), [WORDS]),
        (ag.arg_min("x", "y"), [WORDS, FLOATS]),
        (ag.arg_max("x", "y"), [FLOATS, INTS]),
        (ag.weighted_mean("x", "y"), [FLOATS, INTS]),
        (ag.quantile("x", [0.1, 0.9]), [INTS]),
        (ag.approx_quantile("x", 0.5), [INTS]),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_the_built_in_aggregates_declare_their_algebra_truly(aggregate, columns):
    check_algebra(aggregate, *columns, tries=50)


def test_the_checker_would_find_a_wrong_declaration_of_a_built_in():
    wrong = ag.Aggregate("collect", ("x",), Algebra("holistic", commutative=True))
    with pytest.raises(BadAggregate, match="collect breaks the law x \\+ y = y \\+ x"):
        check_algebra(wrong, WORDS)
