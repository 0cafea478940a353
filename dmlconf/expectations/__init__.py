"""Expectations of cases: recorded, filled into case files, and checked against the reference.

`recorder` makes a recording, `renewal` brings the files of an earlier one up to date, `into_cases`
writes outputs into case files, and `checked` finds expectations that the reference contradicts.
"""
