"""Speed and memory of the implementations and their peers, measured side by side in one run.

Each contestant has a process of its own with its own threads. The processes take turns, round by round; in its turn a
contestant is called once, or for a tenth of a second where a call is shorter than that, and the median counts. A ratio
is that of two turns of one round, and what is shown is the median over the rounds. The first call, which compiles, is
shown apart. Nobody is measured whose output is not within the error budget of the oracle.
"""
