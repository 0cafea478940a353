"""Operators on regions of interest: ROI_POOLING, ROI_ALIGN1 and the gradients of the latter."""
