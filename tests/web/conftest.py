"""A browser for the tests of one module: outside of it, other tests run event loops of their own."""

import pytest

from . import pages


@pytest.fixture(scope="module")
def chromium():
    if not pages.CHROMIUM:
        pytest.skip(pages.NO_CHROMIUM)
    with pages.browser() as found:
        yield found
