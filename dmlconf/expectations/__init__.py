"""Expectations of cases: recorded, filled into case files, and checked against the reference.

`recorder` makes a recording, `renewal` brings the files of an earlier one up to date, `into_cases`
writes outputs into case files, `checked` finds expectations that the reference contradicts, and
`valid_files` remembers the files in which `validate` has found nothing wrong.
"""
