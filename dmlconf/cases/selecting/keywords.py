"""The expressions of `-k`: words that identifiers contain, joined by `and`, `or` and `not`.

Expressions are evaluated in postfix form with a stack, so that no nesting is too deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dmlconf.limits import LONGEST_KEYWORDS

__all__ = ["KeywordError", "keyword_matcher", "keyword_words"]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[()])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()"']+))"""
)
_SPACE: Final = re.compile(r"\s*")

_STRENGTH: Final = {"(": 0, "or": 1, "and": 2, "not": 3}
"""How strongly operators bind; `(` binds least, so that only `)` takes it from the stack."""


class KeywordError(ValueError):
    """A keyword expression that cannot be read; the message says why."""


class _Token(NamedTuple):
    """A word, or one of `(`, `)`, `and`, `or`, `not`, with its offset in the text."""

    text: str
    offset: int
    is_word: bool


def keyword_matcher(expression: str) -> Callable[[str], bool]:
    """Return a predicate: whether a case-folded identifier fits the expression.

    A word fits an identifier that contains it, in upper or lower case. Words are joined by `and`,
    `or`, `not` and parentheses. A quoted text is a word: `"and"` fits `operand`.

    Raises:
        KeywordError: the expression cannot be read.
    """
    if len(expression) > LONGEST_KEYWORDS:
        raise KeywordError(f"-k has {len(expression):,} characters; at most {LONGEST_KEYWORDS:,}")
    postfix = [
        (token.text.casefold() if token.is_word else token.text, token.is_word)
        for token in _postfix(expression)
    ]
    if len(postfix) == 1:
        [(word, _)] = postfix
        return lambda text: word in text
    return lambda text: _holds(postfix, text)


def keyword_words(expression: str) -> list[str]:
    """Return the words of an expression, case-folded, without `and`, `or` and `not`.

    Raises:
        KeywordError: the expression cannot be read.
    """
    return [token.text.casefold() for token in _postfix(expression) if token.is_word]


def _holds(postfix: Sequence[tuple[str, bool]], text: str) -> bool:
    values: list[bool] = []
    for part, is_word in postfix:
        if is_word:
            values.append(part in text)
        elif part == "not":
            values[-1] = not values[-1]
        else:
            last = values.pop()
            values[-1] = values[-1] and last if part == "and" else values[-1] or last
    return values[-1]


def _postfix(text: str) -> list[_Token]:
    """Return an expression in postfix order: `a and not b` is `a b not and`."""
    output: list[_Token] = []
    operators: list[_Token] = []
    complete = False  # Whether the tokens so far end with a word or a closed parenthesis.
    for token in _tokens(text):
        if not complete:
            if token.is_word:
                output.append(token)
                complete = True
            elif token.text in ("not", "("):
                operators.append(token)
            else:
                raise _unexpected(text, token)
        elif token.is_word or token.text in ("not", "("):
            raise _not_joined(text, token, operators)
        elif token.text == ")":
            _move(operators, output, 1)
            if not operators:
                raise _not_joined(text, token, operators)
            operators.pop()
        else:
            _move(operators, output, _STRENGTH[token.text])
            operators.append(token)
            complete = False
    if not complete:
        raise KeywordError(f"-k {text}: a word is missing at the end")
    _move(operators, output, 1)
    if operators:
        raise _not_closed(text, operators[-1])
    return output


def _move(operators: list[_Token], output: list[_Token], strength: int) -> None:
    """Move operators from the stack to the output while they bind at least this strongly."""
    while operators and _STRENGTH[operators[-1].text] >= strength:
        output.append(operators.pop())


def _tokens(text: str) -> Iterator[_Token]:
    offset = 0
    while (begin := _end_of_space(text, offset)) < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise KeywordError(f"-k {text}: the quote at column {begin + 1} is not closed")
        kind = str(match.lastgroup)
        value, is_word = match[kind], kind != "mark"
        if kind == "word" and value.lower() in ("and", "or", "not"):
            value, is_word = value.lower(), False
        yield _Token(value, match.start(kind), is_word)
        offset = match.end()


def _end_of_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _unexpected(text: str, token: _Token) -> KeywordError:
    return KeywordError(f"-k {text}: `{token.text}` at column {token.offset + 1} is unexpected")


def _not_closed(text: str, parenthesis: _Token) -> KeywordError:
    return KeywordError(
        f"-k {text}: the parenthesis at column {parenthesis.offset + 1} is not closed"
    )


def _not_joined(text: str, token: _Token, operators: Sequence[_Token]) -> KeywordError:
    """Return the error of a token that cannot follow, or of a parenthesis that is still open."""
    opened = [each for each in operators if each.text == "("]
    if opened:
        return _not_closed(text, opened[-1])
    return KeywordError(
        f"-k {text}: `{token.text}` at column {token.offset + 1} is unexpected; "
        "words are joined by `and` or `or`"
    )
