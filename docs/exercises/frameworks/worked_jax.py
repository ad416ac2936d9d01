"""Three frameworks compared: what JAX does."""

float32_by_root = "float32"  # np.sqrt(8) is a float64, which JAX makes a float32
float16_by_root = "float32"  # and that is wider than float16
float16_by_power = "float16"  # a number of Python has no number of bits

hidden_row_of_softmax = "nan"  # -inf - -inf
hidden_row_of_library = "mean of v"  # hidden scores are a low number, all of them equal
hidden_row_here = "zeros"  # clause E1

low_number_in_float16 = "-inf"
mixed_dtypes_here = "TypeError"  # clause B2
