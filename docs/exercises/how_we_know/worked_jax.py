"""How we know: for each planted bug, a check that sees it."""

softmax_of_columns = "rows-sum-to-1"
outputs_in_float64 = "dtype-kept"
queries_scaled_in_place = "inputs-unchanged"
exp_of_the_scores_themselves = "stays-finite"  # exp(89) is infinite in float32
empty_rows_see_everything = "empty-rows-are-0"
mask_dropped = "hidden-weights-are-0"
weights_times_all_values = "hidden-changes-nothing"  # 0 * NaN is NaN
scale_by_dv = "values-narrower-than-keys"  # D = 8, Dv = 3
