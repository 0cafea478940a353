"""Permitted results, besides the reference's, of quantization and of operators on its tensors."""
