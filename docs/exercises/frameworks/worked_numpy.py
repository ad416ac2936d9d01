"""Three frameworks compared: what NumPy does."""

float32_by_root = "float64"  # np.sqrt(8) is a float64
float16_by_root = "float64"
float16_by_power = "float16"  # a number of Python has no number of bits

hidden_row_of_softmax = "nan"  # -inf - -inf
hidden_row_of_library = "nan"  # NaN times v
hidden_row_here = "zeros"  # clause E1

low_number_in_float16 = "-inf"
mixed_dtypes_here = "TypeError"  # clause B2
