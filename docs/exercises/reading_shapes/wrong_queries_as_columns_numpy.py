"""Lacks prediction: everything is read the other way round."""

out_shape = (2, 3, 4, 5)
weights_shape = (2, 3, 7, 4)
lse_shape = (2, 3, 7)  # (B, H, T)
sums_to_1 = -2  # over the keys

shared_keys_out_shape = (4, 6)  # the leading axes come from q
padding_mask_shape = (2, 7)  # the same for every head and every query
visible_pairs = 22  # 1 + 2 + 3 + 4
last_row_of_window = (True, True, False, False)
