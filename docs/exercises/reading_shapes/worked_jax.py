"""How to read shapes: a quiz."""

out_shape = (2, 3, 4, 6)  # (B, H, T, Dv)
weights_shape = (2, 3, 4, 7)  # (B, H, T, S)
lse_shape = (2, 3, 4)  # (B, H, T)
sums_to_1 = -1  # over the keys

shared_keys_out_shape = (2, 3, 4, 6)  # the leading axes come from q
padding_mask_shape = (2, 1, 1, 7)  # the same for every head and every query
visible_pairs = 10  # 1 + 2 + 3 + 4
last_row_of_window = (False, False, True, True)
