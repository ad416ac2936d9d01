"""Lacks catches-it: sums of 1 are thought to show everything."""

softmax_of_columns = "rows-sum-to-1"
outputs_in_float64 = "rows-sum-to-1"
queries_scaled_in_place = "rows-sum-to-1"
exp_of_the_scores_themselves = "stays-finite"  # exp(89) is infinite in float32
empty_rows_see_everything = "rows-sum-to-1"
mask_dropped = "rows-sum-to-1"
weights_times_all_values = "rows-sum-to-1"  # 0 * NaN is NaN
scale_by_dv = "equal-sizes-do-not-hide-a-swap"
