"""Lacks prediction: NumPy is taken for PyTorch."""

float32_by_root = "float32"
float16_by_root = "float16"
float16_by_power = "float64"

hidden_row_of_softmax = "zeros"
hidden_row_of_library = "zeros"
hidden_row_here = "nan"

low_number_in_float16 = "OverflowError"
mixed_dtypes_here = "float32"
