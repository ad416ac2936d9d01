"""Three frameworks compared: predict what NumPy does. Answers are texts, such as "float32"."""

# The dtype of an array x of float32 or float16, divided by sqrt(8)
float32_by_root = ...  # x / np.sqrt(8)
float16_by_root = ...  # x / np.sqrt(8)
float16_by_power = ...  # x / 8**0.5

# exp(x - max) / sum, of three scores of -inf: "nan", "zeros" or "thirds"
hidden_row_of_softmax = ...

# A query that sees no key: softmax(scores) @ v as the formula says, and attention here: "nan", "zeros" or "mean of v"
hidden_row_of_library = ...
hidden_row_here = ...

# -1e9 written into a float16 array: "-inf", or the name of an exception
low_number_in_float16 = ...

# attention here, with q and k of float32 and v of float16: a dtype, or the name of an exception
mixed_dtypes_here = ...
