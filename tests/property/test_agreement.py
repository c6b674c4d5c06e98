"""The law: every window with every aggregate answers as the oracle does, in any order and any batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.harness import check
from tests.property.strategies import FAMILIES, GROUPS, cases, for_each


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_every_window_with_every_aggregate_agrees_with_the_oracle(family, group, data):
    check(data.draw(cases(family, GROUPS[group])))
