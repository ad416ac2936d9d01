"""The OpInfo samples of torch's scaled_dot_product_attention give torch's results in all three."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.adapter import find

torch_opinfo = pytest.importorskip("conformance.suites.torch_opinfo", reason="torch is not installed")
SAMPLES = torch_opinfo.samples()


def test_torch_has_its_13_samples_without_dropout():
    assert len(SAMPLES) == 13


@pytest.mark.parametrize("op", ["attention", "flash_attention"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_sample(framework, sample, op):
    backend = find(framework)
    arrays = {name: backend.from_numpy(array) for name, array in sample.arrays.items()}
    got = backend.to_numpy(backend.call(op, arrays, sample.options)["out"])
    np.testing.assert_allclose(got, sample.out, rtol=1e-12, atol=1e-12, strict=True)
