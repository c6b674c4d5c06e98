"""One Spark session for all tests: two threads, UTC, no UI, few shuffle partitions."""

import pytest


@pytest.fixture(scope="session")
def spark():
    from windowpane.spark.session import open_session

    session = open_session("tests", "local[2]", {"spark.driver.memory": "2g"}, "FATAL")
    yield session
    session.stop()


def pytest_collection_modifyitems(items):
    """Tests that take the session run with those of Spark; its own warnings are not ours."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore"))
