"""Three frameworks compared: predict what JAX does. Answers are texts, such as "float32"."""

# The dtype of an array x of float32 or float16, divided by sqrt(8)
float32_by_root = ...  # x / np.sqrt(8)
float16_by_root = ...  # x / np.sqrt(8)
float16_by_power = ...  # x / 8**0.5

# jax.nn.softmax of three scores of -inf: "nan", "zeros" or "thirds"
hidden_row_of_softmax = ...

# A query that sees no key, in jax.nn.dot_product_attention and in attention here: "nan", "zeros" or "mean of v"
hidden_row_of_library = ...
hidden_row_here = ...

# x.at[0].set(-1e9) for x of float16: "-inf", or the name of an exception
low_number_in_float16 = ...

# attention here, with q and k of float32 and v of float16: a dtype, or the name of an exception
mixed_dtypes_here = ...
