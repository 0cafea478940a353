"""The functions for DirectML's faults, by the names that `schemas/known-faults.yaml` uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlconf.faults.attention import mask_divided_by_scale
from dmlconf.faults.bounds import infinity_as_the_least_integer
from dmlconf.faults.channels import bias_by_a_product
from dmlconf.faults.computed import Formula
from dmlconf.faults.copies import (
    lengths_not_clamped,
    window_read_without_gaps,
    window_written_without_gaps,
)
from dmlconf.faults.gates import bounded_before_activations
from dmlconf.faults.gradient_sums import gradient_of_bias_in_passes, gradients_in_passes
from dmlconf.faults.graphs.fused_sums import sum_before_the_activation
from dmlconf.faults.graphs.order import read_before_written
from dmlconf.faults.graphs.sequences import sequences_in_place_of_each_other
from dmlconf.faults.moments import moments_read_as_parameters
from dmlconf.faults.normalization import element_in_place_of_its_variance
from dmlconf.faults.one_hot import (
    first_value_in_place_of_the_second,
    low_word_as_index,
    second_value_after_the_first,
    unsigned_index_as_signed,
)
from dmlconf.faults.passes import first_pass_truncated
from dmlconf.faults.regions import parts_beyond_32_bits_left_out
from dmlconf.faults.scatters import (
    scattered_by_other_tuples,
    scattered_by_other_tuples_in_a_graph,
)
from dmlconf.faults.signed_low_words import low_words_compared_as_signed
from dmlconf.faults.windows import (
    first_group_of_filter_and_input,
    one_product_of_filter_and_input,
    squares_left_out,
    zeros_of_a_dilation_of_zero,
)

__all__ = ["FORMULAS"]

FORMULAS: Final[Mapping[str, Formula]] = {
    function.__name__: function
    for function in (
        bias_by_a_product,
        bounded_before_activations,
        element_in_place_of_its_variance,
        first_group_of_filter_and_input,
        first_pass_truncated,
        first_value_in_place_of_the_second,
        gradient_of_bias_in_passes,
        gradients_in_passes,
        infinity_as_the_least_integer,
        lengths_not_clamped,
        low_word_as_index,
        low_words_compared_as_signed,
        mask_divided_by_scale,
        moments_read_as_parameters,
        one_product_of_filter_and_input,
        parts_beyond_32_bits_left_out,
        read_before_written,
        scattered_by_other_tuples,
        scattered_by_other_tuples_in_a_graph,
        second_value_after_the_first,
        sequences_in_place_of_each_other,
        squares_left_out,
        sum_before_the_activation,
        unsigned_index_as_signed,
        window_read_without_gaps,
        window_written_without_gaps,
        zeros_of_a_dilation_of_zero,
    )
}
