"""How we know: for each planted bug, name a check that sees it.

A check is one of these properties, or the id of a case (python -m conformance list --op attention):
"returns-arrays", "dtype-kept", "has-the-shape", "inputs-unchanged", "stays-finite", "rows-sum-to-1",
"hidden-weights-are-0", "empty-rows-are-0", "hidden-changes-nothing".
"""

# The softmax runs over the queries instead of the keys.
softmax_of_columns = ...

# Every output is float64, whatever the inputs are.
outputs_in_float64 = ...

# The queries are scaled where they lie.
queries_scaled_in_place = ...

# No maximum is subtracted before exp.
exp_of_the_scores_themselves = ...

# A query that sees no key gets the mean of all values.
empty_rows_see_everything = ...

# The mask is not applied.
mask_dropped = ...

# Weights of 0 are multiplied with hidden values as well.
weights_times_all_values = ...

# The scores are divided by sqrt(Dv) and not by sqrt(D). No property above sees it: name a case.
scale_by_dv = ...
