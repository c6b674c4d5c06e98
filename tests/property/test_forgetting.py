"""Keys and texts that no open window needs are forgotten at every step here; no answer may change for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.harness import check
from tests.property.strategies import AGGREGATES, FAMILIES, Shape, cases, for_each
from windowpane.core import operator

ALWAYS_FORGET = -(10**9)
TEXTS = {
    name: AGGREGATES[name]
    for name in ("count", "first_s", "last_s", "arg_min_s", "distinct_s", "top_s", "approx_distinct_s")
}
TEXTS_IN_ORDER = {**TEXTS, "collect_s": AGGREGATES["collect_s"]}
texts = st.sampled_from(["commutative", "ordered"]).map({"commutative": TEXTS, "ordered": TEXTS_IN_ORDER}.get)


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_forgetting_at_every_step_changes_no_answer(family, data):
    lateness = data.draw(st.sampled_from([0, 15]))
    emit = data.draw(st.sampled_from(["final", "update"]))
    shape = Shape(most=25, wide=40, late=lateness > 0)
    case = data.draw(cases(family, data.draw(texts), shape, lateness=lateness, emit=emit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "SPARE", ALWAYS_FORGET)
        check(case, steps=True)
