"""Operators on regions of interest: ROI_POOLING, ROI_ALIGN and their gradients."""
