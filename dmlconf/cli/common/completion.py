"""Complete words in the shell: operators, cases, tags, levels, profiles, backends with options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmlconf.catalogue.loader import UnknownOperatorError, operator_name, operator_names
from dmlconf.catalogue.model import FEATURE_LEVELS
from dmlconf.cli.common.configuration import configured_profiles

# Slow imports come late, since few processes complete words.
if TYPE_CHECKING:
    from dmlconf.cases.loading.loader import Suite

__all__ = [
    "complete_backend",
    "complete_case",
    "complete_config_profile",
    "complete_level",
    "complete_operator",
    "complete_profile",
    "complete_tag",
    "completion_among",
    "operators_of",
]

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_operator(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the operators whose names begin with the text, which may be in lower case."""
    return [name for name in operator_names() if name.startswith(incomplete.upper())]


def complete_case(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the identifiers that begin with the text, in the given paths or the bundled suite."""
    suite = _suite(list(ctx.params.get("paths") or ()), operators_of([incomplete]))
    return [case.identifier for case in suite.plan() if case.identifier.startswith(incomplete)]


def complete_tag(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the tags of the bundled suite that begin with the text."""
    suite = _suite()
    tags = {tag for template in suite.templates for tag in template.tags}
    return sorted(tag for tag in tags if tag.startswith(incomplete))


def complete_level(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the feature levels that begin with the text."""
    return [level for level in map(str, FEATURE_LEVELS) if level.startswith(incomplete)]


def complete_profile(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the certification and configuration profiles whose names begin with the text."""
    from dmlconf.certification.profiles import profile_names

    names = [*configured_profiles(), *profile_names()]
    return [name for name in names if name.startswith(incomplete)]


def complete_config_profile(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the names of configuration profiles that begin with the text."""
    return [name for name in configured_profiles() if name.startswith(incomplete)]


def completion_among(words: Iterable[str]) -> Complete:
    """Return a function that returns those of the words that begin with the text."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_backend(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the backend names that begin with the text; after a name and a colon, its options."""
    from dmlconf.backends import registry

    name, colon, argument = incomplete.partition(":")
    if not colon:
        return [each for each in registry.backend_names() if each.startswith(incomplete)]
    before = argument.rpartition(",")[0]
    begun = argument[len(before) + 1 :] if before else argument
    beginning = f"{name}:{before}," if before else f"{name}:"
    return [beginning + each for each in registry.option_words(name) if each.startswith(begun)]


def _suite(paths: Sequence[Path] = (), operators: Collection[str] = ()) -> Suite:
    from dmlconf.cases.loading.loader import load_suite
    from dmlconf.cli.common.cache import checked_files
    from dmlconf.resources import cases_directory

    return load_suite(
        list(paths) or [cases_directory()], operators=operators, store=checked_files()
    )


def operators_of(identifiers: Iterable[str]) -> set[str]:
    """Return the operators that identifiers name before a slash; an empty set if one is unknown.

    Args:
        identifiers: whole identifiers or their beginnings, such as `gather/doc`; those without a
            slash are ignored.
    """
    parts = (identifier.partition("/") for identifier in identifiers)
    try:
        return {operator_name(name) for name, slash, _ in parts if slash}
    except UnknownOperatorError:
        return set()
