"""The node tests of ONNX `Attention` pass in the three implementations."""

from __future__ import annotations

import pytest

from conformance.adapter import find

onnx_nodes = pytest.importorskip("conformance.suites.onnx_nodes", reason="onnx is not installed")
TESTS = onnx_nodes.node_tests()


def test_onnx_has_its_93_tests():
    """A new release of onnx that adds, renames or drops tests is looked at before it is trusted."""
    assert len(TESTS) == 93


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name.removeprefix("test_"))
def test_node(framework, test):
    onnx_nodes.check(test, onnx_nodes.run(test, find(framework)))
