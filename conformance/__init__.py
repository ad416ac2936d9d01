"""The judge: cases, an oracle and error budgets for attention, masking and retrieval."""
