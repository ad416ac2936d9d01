"""What the judge's own tests share."""

from __future__ import annotations

import pytest

FRAMEWORKS = ("numpy", "torch", "jax")


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    """The name of each installed framework in turn, which is also that of its backend."""
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return request.param
