"""The energies of three states over four orthogonal patterns, and how fast one of them settles."""

import importlib

import numpy as np

from conformance.grading.learner import ARRAYS


def values(framework: str) -> dict:
    """Give what is to be predicted."""
    recall, arrays = importlib.import_module(f"impl_{framework}").recall, ARRAYS[framework]()
    patterns = 4 * np.eye(4, dtype=np.float32)
    states = {"zero": 0 * patterns[0], "half": patterns[0] / 2, "pattern": patterns[0]}

    def step(state):
        """The state after one update, and its energy before it."""
        after, energy = recall(*map(arrays.from_numpy, (state, patterns)))
        return arrays.to_numpy(after), float(arrays.to_numpy(energy)[0])

    moves, state = [], states["half"]
    while not moves or moves[-1] > 1e-3:
        after, _ = step(state)
        moves.append(np.abs(after - state).max())
        state = after
    return {
        "lowest_energy_first": tuple(sorted(states, key=lambda name: step(states[name])[1])),
        "steps_to_settle": len(moves) - 1,  # the last one hardly moved
    }
