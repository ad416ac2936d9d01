"""Three frameworks compared: what PyTorch does."""

float32_by_root = "float32"  # a number of the same kind leaves the dtype alone
float16_by_root = "float16"
float16_by_power = "float16"  # a number of Python has no number of bits

hidden_row_of_softmax = "nan"  # -inf - -inf
hidden_row_of_library = "zeros"
hidden_row_here = "zeros"  # clause E1

low_number_in_float16 = "RuntimeError"
mixed_dtypes_here = "TypeError"  # clause B2
